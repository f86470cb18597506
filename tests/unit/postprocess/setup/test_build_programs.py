"""Building the programs before a session: each by itself, each told of, and kept with how it was compiled."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from postprocess import setup as building
from postprocess.base.processes import find_processes
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.setup import BuildOutcome, PreparedMachine, build_at_once, build_programs
from site_configs.mpi.inventory import Inventory
from site_configs.programs.program import PRODUCTS
from site_configs.schema.variables import SESSION
from spack_envs import installation
from spack_envs.layout import SpackEnvironmentError, SpackLayout
from tests.support.factories.setup import MACHINE, SPACK, make_mpi
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT
from tests.support.plumbline_runner import unwrap

MPIS = ("mpich-1", "mpich-2")
FOUND = Inventory(MACHINE, tuple(map(make_mpi, MPIS)), ())
BOTH = PreparedMachine(FOUND, SPACK, by_spack=MPIS)
TOLD = {"version": "7.4", "compiler": "gcc 12.2.0", "flags": "-O2"}


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    """A work directory with a Spack environment for each MPI."""
    work = WorkDirectory(tmp_path / "home", ROOT)
    for mpi in MPIS:
        directory = SpackLayout(work.root).environment(mpi)
        directory.mkdir(parents=True)
        for name in ("spack.yaml", "spack.lock"):
            (directory / name).write_text(f"{name} of {mpi}")
    return work


def installed(root: Path, place: Path, program: str) -> installation.Installation:
    """An installation that tells of itself."""
    prefix = root / "installed" / place.name / program
    (prefix / installation.RECORD).parent.mkdir(parents=True, exist_ok=True)
    (prefix / installation.RECORD).write_text(json.dumps(TOLD))
    package = PRODUCTS[program].package
    return installation.Installation(program, str(prefix), f"{package}/abc", str(place), "key")


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
    return unwrap(progress.console.file.getvalue())


def test_every_program_is_built_for_every_mpi(work, broken, progress):
    assert build_programs(work, BOTH, progress) == 0
    assert len(lines(progress)) == len(MPIS) * len(PRODUCTS)
    assert lines(progress)[2].startswith("mpich-1: osu 7.4 is built (")
    assert lines(progress)[2].endswith("gcc 12.2.0 -O2)")
    for mpi in MPIS:
        for name in PRODUCTS:
            assert installation.read_program(work.root, mpi, name).version == "7.4"


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
    assert installation.read_program(work.root, "mpich-1", "imb").spec == "intel-mpi-benchmarks/abc"
    assert not installation.locate_program_file(work.root, "mpich-1", "osu").exists()


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
        program = installation.keep_installed(session, "mpich-1", installed(work.root, place, name))
        assert installation.read_program(session, "mpich-1", name) == program
        lock = session / "programs" / "mpich-1" / f"{name}.lock"
        assert lock.read_text() == "spack.lock of mpich-1"
    assert installation.read_program(session, "mpich-1", "mpicost").path.endswith("/mpicost/bin/mpicost")
    said = installation.read_program(session, "mpich-1", "osu").path
    assert said.endswith("/osu/libexec/osu-micro-benchmarks/mpi")


@plants("builds", "a record of its build that is damaged", "an installation of Spack", "incomplete", 1,
        "is damaged")  # fmt: skip
def test_installation_that_does_not_tell_is_named(work, declared: Declared):
    done = installed(work.root, place_of(work, "mpich-1"), "osu")
    (Path(done.prefix) / installation.RECORD).unlink()
    with declared.raises(SpackEnvironmentError):
        installation.keep_installed(work.root, "mpich-1", done)


# Builds of several MPIs beside each other, by commands that stand for Spack's.


#: Ends well once all builds have begun.
MEET = """
import json, pathlib, sys, time
result = pathlib.Path(sys.argv[-1])
name = result.parent.stem
names = "program prefix spec place key".split()
result.write_text(json.dumps(dict.fromkeys(names, name)))
limit = time.monotonic() + 60
while len(list(result.parent.parent.glob("*/*.json"))) < 2 and time.monotonic() < limit:
    time.sleep(0.01)
print("all have begun:", len(list(result.parent.parent.glob("*/*.json"))))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(building.os, "cpu_count", lambda: 2)
    return tmp_path / "builds"


def build_by(program: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[BuildOutcome]:
    """Build for two MPIs by a program in Python, which gets the words of the real one."""
    monkeypatch.setattr(building, "start_module", lambda *_: [sys.executable, "-c", program])
    return build_at_once(WorkDirectory(folder.parent, ROOT), SPACK, MPIS, "osu", folder)


def test_builds_run_beside_each_other(folder, monkeypatch):
    outcomes = build_by(MEET, folder, monkeypatch)
    assert [outcome.done and outcome.done.place for outcome in outcomes] == list(MPIS)
    for name in MPIS:
        assert (folder / f"{name}.osu" / building.LOG).read_text() == "all have begun: 2\n"


@pytest.mark.parametrize("without_source", [False, True])
def test_build_that_fails_says_why(folder, monkeypatch, without_source):
    """The reason is the last line, and the kind of failure is beside it."""
    kind = f"import pathlib; p = pathlib.Path(sys.argv[-1]).parent / {installation.FAILURE!r}; "
    kind += f"""p.write_text('{{"reason": "", "without_source": {str(without_source).lower()}}}'); """
    program = f"import sys; {kind}print('and so on', flush=True); sys.exit('no such compiler')"
    outcomes = build_by(program, folder, monkeypatch)
    assert [outcome.environment for outcome in outcomes] == list(MPIS)
    for outcome in outcomes:
        told = (outcome.done, outcome.problem, outcome.without_source)
        assert told == (None, "no such compiler", without_source)


def test_interrupt_leaves_no_build_behind(folder, monkeypatch, request):
    def interrupt() -> None:
        while len(find_processes(SESSION, str(folder))) < len(MPIS):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGUSR1)

    # Not SIGINT itself: the processes that tests run in ignore it.
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGUSR1, before))
    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        build_by("import time; time.sleep(600)", folder, monkeypatch)
    assert not find_processes(SESSION, str(folder))
