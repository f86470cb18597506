"""Building the programs before a session: each by itself, each told of, and kept with how it was compiled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.setup import build_programs as building
from postprocess.setup.build_programs import BuildOutcome, build_programs
from postprocess.setup.prepare import PreparedMachine
from site_configs.mpi.family import Mpi
from site_configs.mpi.inventory import Inventory
from site_configs.programs.program import PRODUCTS
from site_configs.topology.machine import Machine
from spack_envs.errors import SpackEnvironmentError
from spack_envs.installation import RECORD, Installation
from spack_envs.layout import SpackLayout
from spack_envs.programs import keep_installed, locate_program_file, read_program
from spack_envs.provide import Spack
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT

MACHINE = Machine("n1", "a processor", "6.1", 2, 2, 1, 8 * 10**9, ())
SPACK = Spack(Path("/bin/spack"), Path("/packages"), "1.1.0", "PATH")
MPIS = tuple(
    Mpi(name, "mpich", "1", "library", "path", "/p", "/p/mpicc", "/p/mpiexec")
    for name in ("mpich-1", "mpich-2")
)
FOUND = Inventory(MACHINE, MPIS, ())
BOTH = PreparedMachine(FOUND, SPACK, by_spack=("mpich-1", "mpich-2"))
TOLD = {"version": "7.4", "compiler": "gcc 12.2.0", "flags": "-O2"}


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    """A work directory with a Spack environment for each MPI."""
    work = WorkDirectory(tmp_path / "home", ROOT)
    for mpi in MPIS:
        directory = SpackLayout(work.root).environment(mpi.name)
        directory.mkdir(parents=True)
        for name in ("spack.yaml", "spack.lock"):
            (directory / name).write_text(f"{name} of {mpi.name}")
    return work


def installed(root: Path, place: Path, program: str) -> Installation:
    """An installation that tells of itself."""
    prefix = root / "installed" / place.name / program
    (prefix / RECORD).parent.mkdir(parents=True, exist_ok=True)
    (prefix / RECORD).write_text(json.dumps(TOLD))
    package = PRODUCTS[program].package
    return Installation(program, str(prefix), f"{package}/abc", str(place), "key")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], tuple[str, bool]]:
    """Why what does not build, by environment and program, and whether it has no source; the rest builds."""
    failing: dict[tuple[str, str], tuple[str, bool]] = {}

    def build(work, spack, environments, program, folder, say) -> list[BuildOutcome]:
        return [
            BuildOutcome(name, 1.0, None, *failing[name, program])
            if (name, program) in failing
            else BuildOutcome(name, 1.0, installed(work.root, place_of(work, name), program))
            for name in environments
        ]

    monkeypatch.setattr(building, "build_at_once", build)
    return failing


def place_of(work: WorkDirectory, name: str) -> Path:
    return SpackLayout(work.root).environment(name)


def lines(progress: Progress) -> list[str]:
    return progress.console.file.getvalue().splitlines()


def test_every_program_is_built_for_every_mpi(work, broken, progress):
    assert build_programs(work, BOTH, progress) == 0
    assert len(lines(progress)) == len(MPIS) * len(PRODUCTS)
    assert lines(progress)[2].startswith("mpich-1: osu 7.4 is built (")
    assert lines(progress)[2].endswith("gcc 12.2.0 -O2)")
    for mpi in MPIS:
        for name in PRODUCTS:
            assert read_program(work.root, mpi.name, name).version == "7.4"


def test_program_that_cannot_be_built_is_noted_and_hurts_no_other(work, broken, progress):
    broken |= {
        ("mpich-2", "mpicost"): ("mpicost: does not compile", False),
        ("mpich-1", "osu"): ("osu: cannot be solved", False),
        ("mpich-2", "imb"): ("imb: cannot be fetched from a cold store", False),
    }
    assert build_programs(work, BOTH, progress) == 3
    assert progress.notes == [
        "mpich-2: mpicost: does not compile",
        "mpich-1: osu: cannot be solved",
        "mpich-2: imb: cannot be fetched from a cold store",
    ]
    assert read_program(work.root, "mpich-1", "imb").spec == "intel-mpi-benchmarks/abc"
    assert not locate_program_file(work.root, "mpich-1", "osu").exists()


def test_program_without_a_source_is_noted_and_no_failure(work, broken, progress):
    """Its cases are skipped: a machine without a network must not fail every day."""
    broken[("mpich-1", "osu")] = ("osu: another sentence", True)
    assert build_programs(work, BOTH, progress) == 0
    assert progress.notes == ["mpich-1: osu: another sentence"]


def test_mpi_that_has_no_environment_is_left_to_cmake(work, broken, progress):
    prepared = PreparedMachine(FOUND, SPACK, by_spack=("mpich-2",), by_cmake=("mpich-1",))
    build_programs(work, prepared, progress)
    assert {line.partition(":")[0] for line in lines(progress)} == {"mpich-2"}


@pytest.mark.parametrize("prepared", [PreparedMachine(FOUND, None), PreparedMachine(None, SPACK)])
def test_what_only_a_session_builds_is_said(work, broken, progress, prepared):
    assert build_programs(work, prepared, progress) == 0
    assert lines(progress) == [f"programs: built by the first session, with {prepared.built_with}"]


def test_solution_is_kept_beside_what_was_built_by_it(work, tmp_path):
    place = place_of(work, "mpich-1")
    session = tmp_path / "session"
    for name in PRODUCTS:
        program = keep_installed(session, "mpich-1", installed(work.root, place, name))
        assert read_program(session, "mpich-1", name) == program
        lock = session / "programs" / "mpich-1" / f"{name}.lock"
        assert lock.read_text() == "spack.lock of mpich-1"
    assert read_program(session, "mpich-1", "mpicost").path.endswith("/mpicost/bin/mpicost")
    said = read_program(session, "mpich-1", "osu").path
    assert said.endswith("/osu/libexec/osu-micro-benchmarks/mpi")


@plants("builds", "a record of its build that is damaged", "an installation of Spack", "incomplete", 1,
        "is damaged")  # fmt: skip
def test_installation_that_does_not_tell_is_named(work, declared: Declared):
    done = installed(work.root, place_of(work, "mpich-1"), "osu")
    (Path(done.prefix) / RECORD).unlink()
    with declared.raises(SpackEnvironmentError):
        keep_installed(work.root, "mpich-1", done)
