"""What Slurm's commands say of jobs, understood: states, reasons, refusals, and what cannot be used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from postprocess.leftovers import end_jobs
from site_configs import slurm_jobs
from site_configs.slurm_jobs import (
    MARK,
    JobState,
    NoAnswer,
    QueuedJob,
    SlurmError,
    UnknownJob,
    parse_account,
    parse_job,
    refusal,
    sick_nodes,
    unwell,
)

RUNNING = (
    "JobId=7 JobName=rfm_job UserId=me(1) Dependency=(null) JobState=RUNNING Reason=None "
    "Partition=work AllocNode:Sid=head:1 ReqNodeList=(null) ExcNodeList=(null) NodeList=n[1-2] "
    "ExitCode=0:0 DerivedExitCode=3:0 NumNodes=2 StdErr=/tmp/JobState=FAILED Power="
)
WAITING = (
    "JobId=8 JobState=PENDING Reason=ReqNodeNotAvail,_UnavailableNodes:n2 Partition=work "
    "NodeList=(null) ExitCode=0:0"
)


def test_a_job_that_runs():
    assert parse_job("7", RUNNING) == JobState("7", "RUNNING", "", "work", "n[1-2]", 0)


def test_a_job_that_waits_tells_why():
    job = parse_job("8", WAITING)
    assert (job.state, job.nodes) == ("PENDING", "")
    assert job.reason == "ReqNodeNotAvail, UnavailableNodes:n2"


@pytest.mark.parametrize(
    ("text", "state", "code"),
    [
        ("COMPLETED|0:0|n1\n", "COMPLETED", 0),
        ("CANCELLED by 1000|0:15|n1\n", "CANCELLED", 0),
        ("FAILED|3:0|n[1-2]\n", "FAILED", 3),
    ],
)
def test_a_job_of_accounting(text: str, state: str, code: int):
    job = parse_account("9", text)
    assert (job.state, job.exit_code) == (state, code)


@pytest.mark.parametrize("text", ["", "\n", "COMPLETED|0:0\n"])
def test_a_job_that_accounting_does_not_know_is_an_error(text: str):
    with pytest.raises(ValueError):
        parse_account("9", text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("slurm_load_jobs error: Invalid job id specified\n", UnknownJob),
        ("Unable to contact slurm controller (connect failure)\n", NoAnswer),
        ("sbatch: error: Batch job submission failed: Socket timed out on send/recv\n", NoAnswer),
        ("sbatch: error: Batch job submission failed: Zero Bytes were transmitted\n", NoAnswer),
        ("sbatch: error: invalid partition specified: none\n", SlurmError),
        ("", SlurmError),
    ],
)
def test_a_controller_that_is_away_is_told_from_one_that_refuses(text: str, kind: type):
    error = refusal("sbatch", text)
    assert type(error) is kind
    assert "\n" not in str(error) and str(error).startswith("sbatch")


def test_nodes_that_cannot_be_used():
    words = ["n1", "idle", "n2", "down*", "n3", "drained", "n4", "allocated", "n5", "mixed*"]
    assert dict(sick_nodes(words)) == {"n2": "down*", "n3": "drained", "n5": "mixed*"}


def test_a_reason_names_a_few_nodes_and_counts_the_others(monkeypatch: pytest.MonkeyPatch):
    said = "".join(f"n{number} down*\n" for number in range(1, 8))
    monkeypatch.setattr(slurm_jobs, "ask", lambda *_: said)
    named = unwell(JobState("1", "PENDING", partition="work"))
    assert named == "n1 (down*), n2 (down*), n3 (down*), n4 (down*) and 3 more"


def test_command_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SlurmError, match="squeue: No such file or directory; is Slurm on the"):
        slurm_jobs.own_jobs()


def fake_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str) -> Path:
    """A queue with these lines; the file into which cancelled jobs are written."""
    cancelled = tmp_path / "cancelled"
    scripts = {
        "squeue": f"cat <<'END'\n{lines}END",
        "scancel": f"echo $1 >> {cancelled}",
    }
    for name, text in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return cancelled


def test_job_names_and_directories_may_hold_what_they_like(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fake_queue(tmp_path, monkeypatch, "1|RUNNING|rfm job|/a|b c\n2|COMPLETING|rfm|/a\n")
    assert slurm_jobs.own_jobs() == [QueuedJob("1", "RUNNING", "rfm job", Path("/a|b c"))]


def test_only_jobs_of_the_sessions_are_cancelled_and_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    mine, other, quiet = (tmp_path / name for name in ("mine", "mine-not", "quiet"))
    for session in (mine, other, quiet):
        (session / "stage").mkdir(parents=True)
    lines = f"1|PENDING|a|{mine}/stage\n2|RUNNING|b|{other}/stage\n3|RUNNING|c|{quiet}/stage\n"
    cancelled = fake_queue(tmp_path, monkeypatch, lines)
    (mine / MARK).touch()
    assert end_jobs([mine, quiet]) == ["a (1, PENDING)"]
    assert cancelled.read_text() == "1\n"
    assert end_jobs([mine, quiet]) == []  # Slurm is not asked again


def test_jobs_that_could_not_be_cancelled_are_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / MARK).touch()
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(SlurmError):
        end_jobs([tmp_path])
    assert (tmp_path / MARK).exists()
