"""The work directory belongs to one session at a time, and the lock goes with its process."""

import os
import signal
import subprocess
import sys

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.workdir import WorkDirectory
from tests.support.faults import plants
from tests.support.paths import ROOT

HOLD = """
import sys
from pathlib import Path
from postprocess.base.workdir import WorkDirectory
with WorkDirectory(Path(sys.argv[1]), Path()).held():
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(work: WorkDirectory):
    """Another process that holds the work directory."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(work.root)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


@plants("use", "a second command in one work directory", "another process", "", 2,
        "in use by process …; wait for it, or use another work directory (PLUMBLINE_HOME)")  # fmt: skip
def test_a_second_process_is_refused_in_one_line_that_names_the_first(work, holder, declared):
    for _ in range(2):
        with pytest.raises(UsageError) as refused, work.held():
            pytest.fail("held twice")
        declared.check_error(refused.value)
        assert str(refused.value) == (
            f"{work.root}: in use by process {holder.pid}; "
            "wait for it, or use another work directory (PLUMBLINE_HOME)"
        )


def test_the_lock_goes_with_a_process_that_is_killed(work, holder):
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    with work.held():
        assert (work.root / "lock").read_text() == f"process {os.getpid()}\n"


def test_a_program_that_was_started_does_not_keep_the_lock(work: WorkDirectory):
    with work.held():
        child = subprocess.Popen(["sleep", "60"])
    try:
        with work.held():
            assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def test_the_lock_is_given_back_after_an_error(work: WorkDirectory):
    with pytest.raises(KeyError), work.held():
        raise KeyError
    with work.held():
        pass


def test_sessions_started_in_one_second_have_different_directories(work: WorkDirectory):
    sessions = [work.new_session() for _ in range(2)]
    assert len(set(sessions)) == 2
    assert sorted(sessions) == sessions
    assert all(session.is_dir() and session.parent == work.sessions for session in sessions)


def test_a_session_that_cannot_be_made_is_one_line_with_the_fix(work: WorkDirectory):
    work.root.mkdir()
    work.sessions.write_text("a file")
    with pytest.raises(UsageError) as refused:
        work.new_session()
    assert str(refused.value).startswith(f"{work.sessions}/")
    assert str(refused.value).endswith("; PLUMBLINE_HOME chooses another place")


def test_without_a_summary_there_is_no_last_session(work: WorkDirectory):
    assert work.find_last_session() is None
    work.new_session()
    assert work.find_last_session() is None


def test_the_last_session_is_the_one_whose_summary_came_last(work: WorkDirectory):
    """A night that calibrates first begins before its calibration and ends after it."""
    names = ("20261121T090000Z-1", "20261121T090001Z-1", "20261121T090002Z-1")
    night, calibration, unfinished = (work.sessions / name for name in names)
    for order, session in enumerate((calibration, night)):
        session.mkdir(parents=True)
        (session / "summary.json").write_text("{}")
        os.utime(session / "summary.json", (1000 + order, 1000 + order))
    unfinished.mkdir()
    assert work.find_last_session() == night


def test_reviewed_references_come_before_provisional_ones(work: WorkDirectory):
    assert work.reference_roots == [ROOT / "reference_data", work.root / "references"]
