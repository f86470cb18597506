"""How jobs are asked for and launched: whole nodes, blocks of ranks, and reasons that mean for ever."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from reframe.core.backends import getlauncher
from reframe.core.exceptions import JobSchedulerError, SpawnedProcessError, SpawnedProcessTimeout
from reframe.core.schedulers.slurm import SlurmJobScheduler

from site_configs import slurm as slurm_backend
from site_configs.schedulers import base, slurm_jobs
from site_configs.schedulers import slurm as slurm_scheduler
from site_configs.schedulers.base import OwnJob
from site_configs.schedulers.slurm_jobs import JobState, NoAnswer, SlurmError, UnknownJob
from site_configs.slurm import (
    GRACE_SECONDS,
    PATIENCE,
    SHORT_WAIT_SECONDS,
    WAIT_SECONDS,
    BlockSlurm,
    Outage,
    Watch,
    can_never_run,
    read_outage_limit,
    request_whole_nodes,
)
from tests.support.factories.launch import entry
from tests.support.faults import Declared, plants

HEAD = ['#SBATCH --job-name="rfm"', "#SBATCH --ntasks=9", "#SBATCH --ntasks-per-node=4"]


def test_a_node_that_is_not_filled_is_asked_for_like_the_others():
    lines = request_whole_nodes(HEAD, "#SBATCH", processes=9, per_node=4)
    assert "#SBATCH --nodes=3" in lines and "#SBATCH --ntasks=12" in lines
    assert "#SBATCH --no-requeue" in lines
    # limits are those of the nodes; what a site file says comes later, and counts
    own = request_whole_nodes([*HEAD, "#SBATCH --propagate=ALL"], "#SBATCH", processes=9, per_node=4)
    assert own.index("#SBATCH --propagate=NONE") < own.index("#SBATCH --propagate=ALL")
    assert not any("--ntasks=9" in line for line in lines)
    assert HEAD[0] in lines and HEAD[2] in lines


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (slurm_backend.SRUN, ["srun"]),
        (slurm_backend.SRUN_PMI2, ["srun", "--mpi=pmi2"]),
        (slurm_backend.SRUN_PMIX, ["srun", "--mpi=pmix"]),
        (slurm_backend.SRUN_CRAY, ["srun", "--mpi=cray_shasta"]),
    ],
)
def test_srun_is_told_the_kind_of_mpi_and_the_layout(name: str, words: list[str]):
    job = SimpleNamespace(num_tasks=9, num_tasks_per_node=4, num_tasks_per_core=None)
    line = getlauncher(name)().command(job)
    assert line[: len(words)] == words
    assert {"--nodes=3", "--ntasks=9", "--distribution=plane=4"} <= set(line)


@pytest.mark.parametrize(
    ("reason", "never"),
    [
        *(("PartitionConfig", True), ("PartitionNodeLimit", True), ("BadConstraints", True)),
        *(("JobHeldUser, more", True), ("QOSMaxNodePerJobLimit", True)),
        *(("AssocMaxCpuPerJobLimit", True), ("QOSMaxJobsPerUserLimit", False)),
        *(("Resources", False), ("Priority", False), ("PartitionDown", False)),
        *(("ReqNodeNotAvail, UnavailableNodes:n2", False), ("", False)),
    ],
)
def test_reasons_that_do_not_pass_by_themselves(reason: str, never: bool):
    assert can_never_run(reason) is never


def test_an_outage_lasts_from_the_first_question_to_the_next_answer():
    outage = Outage()
    assert [outage.seconds(now) for now in (100.0, 101.0, 130.0)] == [0.0, 1.0, 30.0]
    outage.end()
    assert outage.seconds(200.0) == 0.0


@pytest.fixture
def given_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The reasons for which jobs are given up; nothing is asked of Slurm."""
    reasons: list[str] = []
    monkeypatch.setattr(BlockSlurm, "give_up", lambda _, job, reason: reasons.append(reason))
    monkeypatch.setattr(slurm_jobs, "describe_unhealthy_nodes", lambda _: "")
    return reasons


def scheduler() -> BlockSlurm:
    """The backend without a ReFrame around it."""
    found = object.__new__(BlockSlurm)
    found.outage, found.waited_in_vain = Outage(), False
    return found


def waiting(seconds: float, allowed: float | None = None) -> SimpleNamespace:
    """A job that has waited so long in the queue, and how long it may."""
    watch = Watch(time.monotonic() - seconds)
    return SimpleNamespace(jobid="1", workdir="/nowhere", max_pending_time=allowed, watch=watch)


@pytest.mark.parametrize(
    ("allowed", "waited", "ends"),
    [
        (None, WAIT_SECONDS - 60, False),
        (None, WAIT_SECONDS + 1, True),
        (0, 1, True),
        (100, 99, False),
        (100, 101, True),
    ],
)
def test_wait_ends_after_what_is_allowed_and_nothing_is_not_the_same_as_zero(allowed, waited, ends, given_up):
    scheduler().judge_wait(waiting(waited, allowed), JobState("1", "PENDING", "Resources"))
    assert bool(given_up) is ends


def test_once_a_wait_was_in_vain_the_next_is_short(given_up: list[str]):
    slurm_ = scheduler()
    slurm_.waited_in_vain = True
    for waited in (SHORT_WAIT_SECONDS - 30, SHORT_WAIT_SECONDS + 1):
        slurm_.judge_wait(waiting(waited), JobState("1", "PENDING", "Resources"))
    assert len(given_up) == 1


@pytest.mark.parametrize(
    ("limit", "ran", "ends"),
    [(None, 1e6, False), (0, GRACE_SECONDS + 1, True), (60, 60, False), (60, 66, True)],
)
def test_job_is_ended_after_its_time_limit_and_zero_is_one(limit, ran, ends, given_up):
    watch = Watch(submitted=0.0, started=time.monotonic() - ran)
    scheduler().judge_run(SimpleNamespace(workdir="/nowhere", time_limit=limit, watch=watch))
    assert given_up == (["job timed out"] if ends else [])


@pytest.mark.parametrize("text", ["x", "", "nan", "inf", "-1", "10m"])
def test_patience_that_is_no_number_of_seconds_is_told_by_its_name(text: str, monkeypatch):
    monkeypatch.setenv(PATIENCE, text)
    with pytest.raises(ValueError, match=f"^{PATIENCE}='{text}': give a number of seconds, such as "):
        read_outage_limit()


@pytest.mark.parametrize(("text", "seconds"), [("0", 0), ("2.5", 2.5), (None, 600)])
def test_patience_as_the_user_says(text: str | None, seconds: float, monkeypatch):
    monkeypatch.delenv(PATIENCE, raising=False)
    if text is not None:
        monkeypatch.setenv(PATIENCE, text)
    assert read_outage_limit() == seconds


def test_mistake_in_the_patience_is_told_with_the_site_file():
    words = [sys.executable, "-c", "from site_configs import slurm"]
    done = subprocess.run(words, env={**os.environ, PATIENCE: "x"}, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"{PATIENCE}='x': give a number of seconds" in done.stderr.splitlines()[-1]


def away(command: str) -> SpawnedProcessError:
    """A command that found no controller."""
    said = "Unable to contact slurm controller (connect failure)"
    return SpawnedProcessError(command, "", f"{command}: error: {said}", 1)


@pytest.mark.parametrize(
    "failure", [away("sbatch"), SpawnedProcessTimeout("sbatch", "", "", 60)], ids=["away", "slow"]
)
@pytest.mark.parametrize("state", ["RUNNING", "COMPLETED"])
def test_job_that_was_taken_without_an_answer_is_not_sent_again(failure, state: str, tmp_path, monkeypatch):
    sent, answers = [], [NoAnswer("away"), SlurmError("odd line")]

    def submit(_: object, job: object) -> None:
        sent.append(job)
        raise failure

    def own_jobs(_: object) -> list[OwnJob]:
        if answers:
            raise answers.pop()
        return [OwnJob("1", "RUNNING", Path("/other"), True), OwnJob("2", state, tmp_path, True)]

    monkeypatch.setattr(SlurmJobScheduler, "submit", submit)
    monkeypatch.setattr(slurm_jobs, "list_own_jobs", own_jobs)
    monkeypatch.setattr(slurm_backend.time, "sleep", lambda _: None)
    monkeypatch.chdir(tmp_path)
    job = SimpleNamespace()
    scheduler().submit(job)
    assert job._jobid == "2" and len(sent) == 1


def refused(_: object, job: object) -> None:
    raise SpawnedProcessError("sbatch", "", "sbatch: error: Invalid account", 1)


def test_a_job_that_slurm_refuses_never_started_whatever_the_reason_says(tmp_path, monkeypatch):
    monkeypatch.setattr(SlurmJobScheduler, "submit", refused)
    with pytest.raises(JobSchedulerError, match=r"never started: .*Invalid account"):
        scheduler().submit(SimpleNamespace(workdir=tmp_path))
    said = {"result": "fail", "phase": "run", "reason": "another sentence"}
    there = entry(directory=str(tmp_path), **said)
    assert there.never_started.startswith("never started: ") and not there.timed_out
    assert not entry(directory=str(tmp_path / "other"), **said).never_started


@pytest.mark.parametrize("state", ["TIMEOUT", "RUNNING"])
def test_a_job_at_its_limit_timed_out_whatever_the_reason_says(state: str, tmp_path, monkeypatch):
    monkeypatch.setattr(BlockSlurm, "cancel", lambda *_: None)
    watch = Watch(submitted=0.0, started=time.monotonic() - 100)
    job = SimpleNamespace(workdir=tmp_path, watch=watch, time_limit=60, jobid="7")
    if state == "RUNNING":
        scheduler().judge_run(job)
    else:
        scheduler().judge_end(job, JobState("7", state, ""))
    there = entry(result="fail", phase="run", reason="another sentence", directory=str(tmp_path))
    assert there.timed_out and not there.never_started


@pytest.mark.parametrize(("state", "taken"), [("NODE_FAIL", True), ("OUT_OF_MEMORY", False)])
def test_a_job_whose_nodes_went_away_is_told_from_one_that_failed(state, taken: bool, tmp_path, monkeypatch):
    monkeypatch.setattr(slurm_jobs, "describe_unhealthy_nodes", lambda _: "n2 (down)")
    job = SimpleNamespace(workdir=tmp_path, watch=Watch(submitted=0.0), jobid="7", is_cancelling=False)
    scheduler().judge_end(job, JobState("7", state, ""))
    there = entry(result="fail", phase="run", reason=str(job._exception), directory=str(tmp_path))
    assert there.taken_away == taken and not there.never_started and not there.timed_out


def test_job_is_sent_to_the_cluster_that_is_asked_for_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SLURM_CLUSTERS", "another")
    seen = []
    monkeypatch.setattr(SlurmJobScheduler, "submit", lambda *_: seen.append(os.environ.get("SLURM_CLUSTERS")))
    scheduler().submit(SimpleNamespace())
    assert seen == [None]


@plants(
    "schedulers",
    "a job that the controller has forgotten, and that accounting has as waiting or running",
    "Slurm",
    "",
    1,
    "and sacct: REQUEUED | and sacct: RUNNING",
)
def test_a_forgotten_job_is_over_whatever_accounting_says(tmp_path, monkeypatch, declared: Declared):
    monkeypatch.setattr(slurm_backend, "LATE_PAUSE", 0.0)
    told, reasons = [], []

    def ask(command: str, *_: str, **__: str) -> str:
        if command == "scontrol":
            raise UnknownJob("scontrol: Invalid job id specified")
        return f"{told[-1]}|0:0|n1"

    monkeypatch.setattr(slurm_jobs, "ask", ask)
    for state, started in (("REQUEUED", None), ("RUNNING", 5.0)):
        told.append(state)
        folder = tmp_path / state
        folder.mkdir()
        job = SimpleNamespace(jobid="77", workdir=folder, watch=Watch(0.0, started=started))
        scheduler().look_at(job)
        assert job.watch.over
        there = entry(result="fail", phase="run", reason=str(job._exception), directory=str(folder))
        assert bool(there.never_started) == (started is None)
        assert there.taken_away == (started is not None)
        reasons.append(str(job._exception))
    declared.check((), 1, [reason.partition("specified, ")[2] for reason in reasons])


def test_accounting_that_is_late_is_asked_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(slurm_backend, "LATE_PAUSE", 0.0)
    answers = [slurm_jobs.ForgottenJob("no"), slurm_jobs.ForgottenJob("no")]

    def look_up(number: str) -> JobState:
        if answers:
            raise answers.pop()
        return JobState(number, "COMPLETED")

    monkeypatch.setattr(slurm_jobs, "look_up_job", look_up)
    assert slurm_backend.look_up_known_job("7").state == "COMPLETED"


def test_the_reason_of_a_wait_is_told_after_ten_seconds_and_then_every_thirty(given_up, capsys):
    job = waiting(9)
    for waited, words in ((9, 0), (11, 1), (30, 0), (42, 1)):
        job.watch.submitted = time.monotonic() - waited
        scheduler().judge_wait(job, JobState("1", "PENDING", "Resources"))
        lines = capsys.readouterr().out.splitlines()
        assert lines == [f"{base.WAITS}job 1 has waited {waited} s: Resources"] * words
    assert not given_up


def test_a_job_of_another_cluster_is_looked_for_there(monkeypatch: pytest.MonkeyPatch, tmp_path):
    asked = []

    def ask(command: str, *_: str, cluster: str = "") -> str:
        asked.append((command, cluster))
        if command == "scontrol":
            return "JobState=RUNNING"
        return "CLUSTER: rome\n7|RUNNING|/x\n" if cluster else ""

    monkeypatch.setattr(slurm_jobs, "ask", ask)
    monkeypatch.setenv("PLUMBLINE_SESSION", str(tmp_path))
    monkeypatch.setattr(SlurmJobScheduler, "submit", lambda *_: None)
    job = SimpleNamespace(jobid="7", sched_access=["--clusters=rome"], time_limit=None, options=[])
    scheduler().submit(job)
    scheduler().look_at(job)
    assert slurm_scheduler.SLURM.list_own_jobs([(tmp_path / slurm_jobs.MARK).read_text()])
    slurm_scheduler.SLURM.cancel(["7@rome"])
    assert asked == [("scontrol", "rome"), ("squeue", ""), ("squeue", "rome"), ("scancel", "rome")]


@pytest.mark.parametrize("in_a_job", [True, False])
def test_a_job_inherits_nothing_of_the_job_that_the_night_runs_in(in_a_job: bool, monkeypatch):
    """Outside of one, what is set of Slurm's variables is the user's own."""
    own = {"SLURM_CPUS_PER_TASK": "7", "SLURM_MEM_PER_CPU": "1", "HYDRA_BOOTSTRAP": "slurm"}
    kept = {"SLURM_CONF": "/etc/other.conf", "SBATCH_ACCOUNT": "mine"}
    for name in [name for name in os.environ if name.startswith("SLURM_")]:
        monkeypatch.delenv(name)
    for name, value in (own | kept | ({"SLURM_JOB_ID": "3"} if in_a_job else {})).items():
        monkeypatch.setenv(name, value)
    before, seen = dict(os.environ), []
    monkeypatch.setattr(SlurmJobScheduler, "submit", lambda *_: seen.append(dict(os.environ)))
    scheduler().submit(SimpleNamespace())
    assert seen[0].keys() == before.keys() - ({*own, "SLURM_JOB_ID"} if in_a_job else set())
    assert dict(os.environ) == before
