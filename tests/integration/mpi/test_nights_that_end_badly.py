"""Nights whose output nobody reads, or in hostile surroundings: what they measured is kept."""

import shutil
import subprocess
from pathlib import Path

import pytest

from postprocess.results import store
from tests.support.faults import Declared, each_of, plants
from tests.support.interactive_job import IN_A_JOB
from tests.support.mpi import of_family
from tests.support.paths import ROOT
from tests.support.plumbline_runner import Ended, Workshop

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def words() -> list[str]:
    chosen = ["--environment", of_family("mpich").name, "--mpis", "mpich", "--program", "mpicost"]
    return ["nightly", *chosen, "--routine", "barrier", "--processes", "2", "--trials", "5"]


#: What a shell does with the standard streams of a night.
STREAMS = {
    ">&-": plants("lost", "standard output closed", "a strict night without references",
                  "no-reference", 1, "no reference for this case"),
    "| head -1": plants("lost", "standard output a pipe that nobody reads any more",
                        "a strict night without references",
                        "no-reference", 1, "no reference for this case"),
    ">&- 2>&-": plants("lost", "standard output and error closed",
                       "a strict night without references",
                       "no-reference", 1, "no reference for this case"),
    "<&- >&- 2>&-": plants("lost", "all standard streams closed",
                           "a strict night without references",
                           "no-reference", 1, "no reference for this case"),
}  # fmt: skip


@pytest.mark.parametrize("redirection", each_of(STREAMS))
def test_a_night_whose_output_nobody_reads_is_kept(workshop, words, redirection, declared):
    """With the exit status of its verdicts: there is no reference, which ``--strict`` refuses."""
    before = {*workshop.home.glob("store/*.parquet")}
    command = workshop.command(*words, "--launches", "1", "--strict")
    shell = ["bash", "-o", "pipefail", "-c", f'"$@" {redirection}', "bash", *command]
    done = subprocess.run(shell, check=False, env=workshop.environment(), capture_output=True, text=True)
    assert done.stderr == ""
    (kept,) = {*workshop.home.glob("store/*.parquet")} - before
    rows = store.read_session(kept)
    declared.check(rows["verdict"], done.returncode, rows["reason"])
    session = workshop.home / "sessions" / kept.stem
    assert (session / "summary.json").exists() and (session / "report.html").exists()


@plants("environment", "a copy of it, whose builds are of another place", "the work directory",
        "no-reference", 1, "no reference for this case")  # fmt: skip
def test_a_copied_work_directory_builds_anew(tmp_path: Path, words: list[str], declared: Declared):
    """CMake refuses a cache of another place; the launches of the copy are measured all the same."""
    first = Workshop(tmp_path / "home").measure(*words[1:], "--launches", "1", "--strict")
    shutil.copytree(tmp_path / "home", tmp_path / "copy", symlinks=True)
    copied = Workshop(tmp_path / "copy")
    again = copied.measure(*words[1:], "--launches", "1", "--strict")
    assert set(first.verdicts().values()) == {"no-reference"}
    declared.check_session(again)
    assert (tmp_path / "copy" / "build").is_dir()
    for stamp in copied.home.glob("build/*/made_for"):
        assert stamp.read_text().splitlines() == [str(ROOT), str(stamp.parent)]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> Ended:
    """A night in a shell in which all is set that a cluster may set."""
    foreign = tmp_path_factory.mktemp("foreign")
    for name in ("json", "statistics", "numpy", "subprocess", "reframe"):
        (foreign / f"{name}.py").write_text("raise SystemExit('foreign')\n")
    python = {"PYTHONPATH": str(foreign), "PYTHONWARNINGS": "error"}
    workshop = Workshop(tmp_path_factory.mktemp("hostile") / "home")
    return workshop.measure(*words[1:], "--launches", "1", "--strict", **python, **IN_A_JOB)


@plants("environment", "PYTHONPATH with another `json`, `statistics`, `numpy`, and PYTHONWARNINGS=error",
        "the shell", "no-reference", 1, "no reference for this case")  # fmt: skip
def test_python_of_the_user_is_not_ours(hostile: Ended, declared: Declared) -> None:
    """Another Python's packages on PYTHONPATH, or a file with the name of a module: likely on clusters."""
    assert hostile.errors == ""
    declared.check_session(hostile)


@plants("environment", "SLURM_, PBS_ and LSB_ variables of an interactive job on other nodes",
        "the shell of a site without scheduler", "no-reference", 1, "no reference for this case")  # fmt: skip
def test_the_job_of_a_batch_system_is_not_ours(hostile: Ended, declared: Declared) -> None:
    """MPIs would look for its nodes, and every launch would run into its limit."""
    declared.check_session(hostile)


@plants("environment", "a PATH without a compiler, and CC=/bin/false", "`--set-env`", "no-reference", 1,
        "no reference for this case")  # fmt: skip
def test_a_variable_for_programs_does_not_reach_the_build(tmp_path, words: list[str], declared):
    """Without the rest of the PATH there is no compiler, and no CMake."""
    workshop = Workshop(tmp_path / "home")
    chosen = ["--set-env", f"{words[2]}:PATH=/bin", "--set-env", f"{words[2]}:CC=/bin/false"]
    ended = workshop.measure(*words[1:], "--launches", "1", "--strict", *chosen)
    declared.check_session(ended)
    (job,) = workshop.home.glob("sessions/*/reframe/stage/*/*/*/mpicost*/rfm_job.sh")
    assert "export PATH=/bin\n" in job.read_text()
