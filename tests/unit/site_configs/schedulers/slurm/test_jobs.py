"""What Slurm's commands say of jobs, understood: states, reasons, refusals, and what cannot be used."""

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from postprocess.base.progress import Progress
from postprocess.runner.reframe_pass import cancel_jobs, end_jobs
from site_configs.schedulers import slurm_jobs
from site_configs.schedulers.base import OwnJob, RefusedOption
from site_configs.schedulers.slurm import SLURM

RUNNING = (
    "JobId=7 JobName=rfm_job UserId=me(1) Dependency=(null) JobState=RUNNING Reason=None "
    "Partition=work AllocNode:Sid=head:1 ReqNodeList=(null) ExcNodeList=(null) NodeList=n[1-2] "
    "ExitCode=0:0 DerivedExitCode=3:0 NumNodes=2 StdErr=/tmp/JobState=FAILED Power="
)
ENDED = ("COMPLETED", "COMPLETING", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL")
WAITING = (
    "JobId=8 JobState=PENDING Reason=ReqNodeNotAvail,_UnavailableNodes:n2 Partition=work "
    "NodeList=(null) ExitCode=0:0"
)


def test_a_job_that_runs_and_one_that_waits_and_tells_why():
    assert slurm_jobs.parse_job("7", RUNNING) == slurm_jobs.JobState("7", "RUNNING", "", "work", "n[1-2]", 0)
    job = slurm_jobs.parse_job("8", WAITING)
    assert (job.state, job.nodes, job.reason) == ("PENDING", "", "ReqNodeNotAvail, UnavailableNodes:n2")


@pytest.mark.parametrize(
    ("text", "state", "code"),
    [
        ("COMPLETED|0:0|n1\n", "COMPLETED", 0),
        ("CANCELLED by 1000|0:15|n1\n", "CANCELLED", 0),
        ("FAILED|3:0|n[1-2]\n", "FAILED", 3),
    ],
)
def test_a_job_of_accounting(text: str, state: str, code: int):
    job = slurm_jobs.parse_account("9", text)
    assert (job.state, job.exit_code) == (state, code)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "COMPLETED|0:0\n",
        " |0:0|n1",
        "FAILED||n1",
        f"FAILED|{'9' * 9999}:0|n1",
        "FAILED|0:0|n1\nFAILED|0:0|n2",
        "ODD|0:0|",
    ],
)
def test_a_job_that_accounting_does_not_know_is_an_error(text: str):
    with pytest.raises(slurm_jobs.SlurmError, match="sacct says what is not understood"):
        slurm_jobs.parse_account("9", text)


@pytest.mark.parametrize(
    "text", ["", "\n", "garbage\nfor many lines", "JobId=7 JobState=(null)", "JobId=7 JobState=ODD"]
)
def test_an_answer_without_a_state_that_is_known_is_not_taken_for_a_job_that_runs(text: str):
    with pytest.raises(slurm_jobs.SlurmError, match="scontrol says what is not understood") as error:
        slurm_jobs.parse_job("7", text)
    assert "\n" not in str(error.value)


@given(st.text())
@example("3|RUNNING|/\0")
def test_whatever_slurm_says_is_understood_or_is_its_error(said: str):
    for reading in (slurm_jobs.parse_job, slurm_jobs.parse_account):
        with contextlib.suppress(slurm_jobs.SlurmError):
            assert reading("7", said).state
    with contextlib.suppress(slurm_jobs.SlurmError):
        list(slurm_jobs.parse_nodes(said))
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(slurm_jobs.SlurmError):
        patch.setattr(slurm_jobs, "ask", lambda *_, **__: said)
        assert all(os.path.realpath(job.directory) for job in slurm_jobs.list_own_jobs())


def test_job_that_neither_controller_nor_accounting_understands_is_not_known(tmp_path, monkeypatch):
    no_job = "echo slurm_load_jobs error: Invalid job id specified >&2; exit 1"
    commands(tmp_path, monkeypatch, scontrol=no_job, sacct="echo ' |0:0|n1'")
    with pytest.raises(slurm_jobs.UnknownJob, match="Invalid job id specified"):
        slurm_jobs.look_up_job("1")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("slurm_load_jobs error: Invalid job id specified\n", slurm_jobs.UnknownJob),
        ("Unable to contact slurm controller (connect failure)\n", slurm_jobs.NoAnswer),
        ("sbatch: error: Batch job submission failed: Socket timed out on send/recv\n", slurm_jobs.NoAnswer),
        ("sbatch: error: Batch job submission failed: Zero Bytes were transmitted\n", slurm_jobs.NoAnswer),
        ("sbatch: error: invalid partition specified: none\n", slurm_jobs.SlurmError),
        ("", slurm_jobs.SlurmError),
    ],
)
def test_a_controller_that_is_away_is_told_from_one_that_refuses(text: str, kind: type):
    error = slurm_jobs.refusal("sbatch", text)
    assert type(error) is kind
    assert "\n" not in str(error) and str(error).startswith("sbatch")


def test_nodes_that_cannot_be_used():
    lines = (
        "n1|idle|Unknown|none\nn2|down*|2026-11-25T09:12:07|Not  responding\n"
        "n3|drained |2026-11-25T09:12:00|bad DIMM\nn4|allocated|Unknown|none\nn5|mixed*|Unknown|none\n"
    )
    assert [node.shown for node in slurm_jobs.parse_nodes(lines) if node.unhealthy] == [
        "n2 (down* since 2026-11-25 09:12:07: Not responding)",
        "n3 (drained since 2026-11-25 09:12: bad DIMM)",
        "n5 (mixed*)",
    ]


@pytest.mark.parametrize(
    "said", ["n1|down*|Unknown|none\nwarning\n", "n1|down*|none\na warning|of words\n", "\n"]
)
def test_nodes_are_not_named_if_the_answer_is_not_understood(said: str, monkeypatch):
    monkeypatch.setattr(slurm_jobs, "ask", lambda *_, **__: said)
    assert slurm_jobs.describe_unhealthy_nodes(slurm_jobs.JobState("1", "PENDING", partition="work")) == ""


def test_a_reason_names_a_few_nodes_and_counts_the_others(monkeypatch: pytest.MonkeyPatch):
    said = "".join(f"n{number}|down*|Unknown|none\n" for number in range(1, 8))
    monkeypatch.setattr(slurm_jobs, "ask", lambda *_, **__: said)
    named = slurm_jobs.describe_unhealthy_nodes(slurm_jobs.JobState("1", "PENDING", partition="work"))
    assert named == "n1 (down*), n2 (down*), n3 (down*), n4 (down*) and 3 more"


def test_command_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(slurm_jobs.SlurmError, match="squeue: No such file or directory; is Slurm on the"):
        slurm_jobs.list_own_jobs()


def commands(directory: Path, monkeypatch: pytest.MonkeyPatch, **scripts: str) -> None:
    """Stand-ins for Slurm's commands: shell scripts."""
    for name, text in scripts.items():
        (directory / name).write_text(f"#!/bin/sh\n{text}\n")
        (directory / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")


def fake_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str) -> Path:
    """A queue with these lines; the file into which cancelled jobs are written."""
    cancelled = tmp_path / "cancelled"
    queue = f"cat <<'END'\n{lines}END"
    commands(tmp_path, monkeypatch, squeue=queue, scancel=f"echo $1 >> {cancelled}")
    return cancelled


def test_lines_of_the_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fake_queue(tmp_path, monkeypatch, "1|RUNNING|/a|b c\n5_[1-9%2]|PENDING|/a\n7+1|RUNNING|\n")
    jobs = [OwnJob("1", "RUNNING", Path("/a|b c"), True), OwnJob("5_[1-9%2]", "PENDING", Path("/a"), True)]
    assert slurm_jobs.list_own_jobs() == jobs
    fake_queue(tmp_path, monkeypatch, "")
    assert slurm_jobs.list_own_jobs() == []


@pytest.mark.parametrize("line", ["warning: old", "b|/a", "3|RUNNING", "|RUNNING|/a", "3||/a", "3|R|a"])
def test_odd_line_of_the_queue_is_a_note_and_the_jobs_are_looked_for_again(line: str, tmp_path, monkeypatch):
    (tmp_path / slurm_jobs.MARK).touch()
    cancelled = fake_queue(tmp_path, monkeypatch, f"2|RUNNING|/b\n{line}\n1|RUNNING|{tmp_path}/a\n")
    progress = Progress()
    cancel_jobs([tmp_path], "this session", progress)
    assert "may still be in the queue (squeue says what is not understood: " in progress.notes[0]
    assert line in progress.notes[0]
    assert (tmp_path / slurm_jobs.MARK).exists() and not cancelled.exists()
    fake_queue(tmp_path, monkeypatch, f"1|RUNNING|{tmp_path}/a\n")
    cancel_jobs([tmp_path], "an earlier session", progress)
    assert cancelled.read_text() == "1\n" and not (tmp_path / slurm_jobs.MARK).exists()


def test_mark_that_cannot_be_removed_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / slurm_jobs.MARK).mkdir()
    fake_queue(tmp_path, monkeypatch, "")
    progress = Progress()
    cancel_jobs([tmp_path], "this session", progress)
    assert "jobs of this session may still be in the queue" in progress.notes[0]


def test_what_the_user_chose_to_see_of_slurm_does_not_count(tmp_path, monkeypatch):
    chosen = ["SQUEUE_PARTITION", "SQUEUE_STATES", "SINFO_FORMAT", "SACCT_FORMAT", "SCONTROL_ALL"]
    for name in (*chosen, "SCANCEL_STATE", "SLURM_CLUSTERS", "SLURM_CONF"):
        monkeypatch.setenv(name, "a")
    commands(tmp_path, monkeypatch, squeue="env")
    said = slurm_jobs.ask("squeue").splitlines()
    left = [line for line in said if line.startswith(("SQ", "SI", "SA", "SC", "SL"))]
    assert left == ["SLURM_CONF=a"]


def test_jobs_of_every_partition_and_state_are_asked_for(tmp_path, monkeypatch):
    commands(tmp_path, monkeypatch, squeue=f'echo "$@" > {tmp_path}/words')
    assert slurm_jobs.list_own_jobs() == []
    words = (tmp_path / "words").read_text().split()
    assert {"--all", "--states=all", f"--user={os.getuid()}"} <= set(words)


def test_only_jobs_of_the_sessions_are_cancelled_and_only_once(tmp_path, monkeypatch):
    mine, other, quiet = (tmp_path / name for name in ("mine", "mine-not", "quiet"))
    for session in (mine, other, quiet):
        (session / "stage").mkdir(parents=True)
    lines = f"1|PENDING|{mine}/stage\n2|RUNNING|{other}/stage\n3|RUNNING|{quiet}/stage\n"
    lines += "".join(f"{n}|{state}|{mine}/stage\n" for n, state in enumerate(ENDED, 4))
    cancelled = fake_queue(tmp_path, monkeypatch, lines)
    (mine / slurm_jobs.MARK).touch()
    assert end_jobs([mine, quiet], SLURM) == ["stage (1, PENDING)"]
    assert cancelled.read_text() == "1\n"
    assert end_jobs([mine, quiet], SLURM) == []  # Slurm is not asked again


@pytest.mark.parametrize(
    ("refusals", "found"),
    [
        ({}, []),
        ({"--b": "unknown --b"}, [RefusedOption("--b", "unknown --b")]),
        # a site that wants an account: without it a job is refused for that
        ({"": "no account", "--b": "unknown --b"}, [RefusedOption("--b", "unknown --b")]),
        (
            {"": "no account", "--a --b": "not both"},
            [RefusedOption("--a", "not both"), RefusedOption("--b", "not both")],
        ),
        (
            {"": "no nodes", "--a": "no nodes", "--b": "no nodes", "--a --b": "no nodes"},
            [RefusedOption("", "no nodes")],
        ),
    ],
)
def test_options_at_fault_are_told_from_a_job_that_no_node_takes(monkeypatch, refusals, found):
    def explain(options: list[str], cluster: str) -> str:
        words = [option for option in options if option != "--partition=cpu"]
        assert cluster == "" and "--partition=cpu" in options
        return refusals.get(" ".join(words)) or next((refusals[word] for word in words if word in refusals), "")

    monkeypatch.setattr(slurm_jobs, "explain_refused_job", explain)
    assert list(SLURM.find_refused_options(["--partition=cpu", "--a", "--b"])) == found
