"""IMB of Intel MPI under other MPIs: taken only if a program that ran says that it ran on the right one."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from site_configs.mpi import imb_wheel, inventory
from site_configs.mpi.family import Mpi
from site_configs.mpi.imb_wheel import LIBRARY, list_imb_folders, parse_imb_library, try_imb
from site_configs.mpi.inventory import collect_inventory, load_inventory
from tests.support.fake_mpis import install, script

ENDED = "# All processes entering MPI_Finalize"
SAYS = "MPICH Version: 5.0.2 MPICH Release date: today"


def ran(library: str = "MPICH Version:\\t5.0.2\\nMPICH Release date:\\ttoday", world: int = 2) -> str:
    """The body of a launcher under which IMB ends like this."""
    return f"printf '{ENDED}\\nplumbline: a world of {world} of\\n{library}\\nplumbline: end\\n'"


@pytest.fixture
def mpi(tmp_path: Path) -> Mpi:
    """An MPI of the common binary interface."""
    mpicc = install(tmp_path / "mpich", starts=ran())
    script(tmp_path / "mpich" / "lib" / LIBRARY, "")
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
    found = try_imb(mpi, [folder], print)
    assert (found.folder, found.libraries) == ("", "")
    assert "\n" not in found.problem
    return found.problem


def test_imb_that_runs_on_the_right_mpi_is_taken(mpi: Mpi, folder: Path):
    said: list[str] = []
    found = try_imb(mpi, [folder], said.append)
    assert (found.folder, found.libraries, found.problem) == (str(folder), f"{mpi.prefix}/lib", "")
    assert (found.installed.folder, found.installed.origin) == (str(folder), "wheel")
    assert said == ["trying IMB under a"]


@pytest.mark.parametrize(("before", "after"), [("", "{}"), ("/else", "{}:/else")])
def test_its_variables_put_the_libraries_in_front(mpi: Mpi, folder: Path, before: str, after: str):
    libraries = f"{mpi.prefix}/my lib"
    imb = replace(try_imb(mpi, [folder], print), libraries=libraries)
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


def test_it_is_started_as_it_will_be_for_measuring(mpi: Mpi, folder: Path, tmp_path: Path):
    log = tmp_path / "log"
    try_imb(launched_by(mpi, f'echo "words $@" > {log}; {ran()}'), [folder], print)
    words = shlex.split(log.read_text())[1:]
    assert words[:4] == ["-n", "2", "env", f"LD_LIBRARY_PATH={mpi.prefix}/lib"]
    assert words[4].startswith("LD_PRELOAD=/")
    assert words[5] == f"{folder}/IMB-MPI1"


def test_an_mpi_of_another_binary_interface_is_not_even_tried(mpi: Mpi, folder: Path):
    Path(mpi.prefix, "lib", LIBRARY).unlink()
    said: list[str] = []
    found = try_imb(mpi, [folder], said.append).problem
    assert found == "Intel MPI's IMB needs libmpi.so.12, which this MPI has not"
    assert said == []


def test_without_an_intel_mpi_there_is_no_imb(mpi: Mpi):
    assert try_imb(mpi, [], print).problem == "no Intel MPI is here to bring IMB"


def test_an_mpi_takes_the_imb_that_it_brings_itself(mpi: Mpi, folder: Path):
    own = script(Path(mpi.prefix, "bin", "IMB-MPI1"), "").parent
    assert try_imb(mpi, [folder, own], print).folder == str(own)


def test_imb_is_looked_for_in_intel_mpis_and_in_the_wheel(mpi: Mpi, folder: Path, tmp_path: Path):
    intel = replace(mpi, family="intel-mpi", prefix=str(folder.parent))
    wheel = tmp_path / "mpi" / f"intel-mpi-{imb_wheel.wheels.read_locked_version('intel-mpi')}" / "bin"
    assert list_imb_folders([mpi, intel], tmp_path / "mpi") == [folder]
    script(wheel / "IMB-MPI1", "")
    assert list_imb_folders([mpi, intel], tmp_path / "mpi") == [folder, wheel]


@pytest.mark.parametrize("cut", range(4))
def test_an_output_that_was_cut_proves_nothing(cut: int):
    whole = f"{ENDED}\nplumbline: a world of 2 of\nMPICH\nplumbline: end\n"
    assert parse_imb_library(whole) == "MPICH"
    part = "".join(line for at, line in enumerate(whole.splitlines(True)) if at != cut)
    if cut == 2:
        assert parse_imb_library(part) == ""
    else:
        with pytest.raises(imb_wheel.ProbeError):
            parse_imb_library(part)


# What the inventory remembers.


@pytest.fixture
def look(mpi: Mpi, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Take the inventory; IMB for its one MPI, and whether it was tried."""
    asks = f"case \"$*\" in *IMB-MPI1*) {ran()};; *) printf 'world of 2\\n{SAYS}\\n';; esac"
    script(Path(mpi.mpiexec), asks)
    monkeypatch.setenv("PATH", str(Path(mpi.mpicc).parent))
    monkeypatch.setattr(inventory, "find_in_modules", lambda: [])
    monkeypatch.setattr(imb_wheel, "list_imb_folders", lambda *_: [folder] if folder.exists() else [])

    def look(fresh: bool = False):
        said: list[str] = []
        found = collect_inventory(tmp_path / "work", (), said.append, fresh)
        assert load_inventory(tmp_path / "work").imb == found.imb
        return found.imb_of(found.mpis[0]), any(line.startswith("trying IMB") for line in said)

    return look


def test_imb_is_tried_once(look, folder: Path):
    first, tried = look()
    assert (first.folder, tried) == (str(folder), True)
    assert look() == (first, False)
    assert look(fresh=True) == (first, True)


@pytest.mark.parametrize("changed", ["bin/mpiexec", "bin/mpicc", f"lib/{LIBRARY}", "IMB-MPI1"])
def test_imb_is_tried_again_if_a_file_of_it_has_changed(look, mpi, folder, changed: str):
    look()
    path = folder / changed if changed == "IMB-MPI1" else Path(mpi.prefix, changed)
    path.chmod(0o755)
    path.touch()
    assert look()[1]


def test_imb_that_is_gone_is_not_remembered(look, folder: Path):
    look()
    shutil.rmtree(folder)
    imb, _ = look()
    assert (imb.folder, imb.problem) == ("", "no Intel MPI is here to bring IMB")


def test_imb_that_did_not_run_is_tried_every_time(look, folder: Path, mpi: Mpi):
    script(Path(mpi.mpiexec), f"case \"$*\" in *IMB-MPI1*) exit 1;; *) printf 'world of 2\\n{SAYS}\\n';; esac")
    assert look()[1]
    assert look()[1]
