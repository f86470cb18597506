"""Slurm's backend and launchers for ReFrame: ``from site_configs import slurm`` gives them to a site file.

Every wait has an end, and every end a reason. ReFrame's own backends stop the session if accounting is off,
wait forever for a job that can never run, mistake an absent controller for the end of a job, and give no
reason.

The backend requests whole nodes, each with the layout's number of processes per node. In such a job an MPI's
own launcher (``["mpirun"]``, ``["mpiexec"]``) fills node after node by default. ``srun`` does not (nine
processes, four per node, become 3 + 3 + 3), so it gets an option. It also needs the kind of MPI, or it starts
many worlds of one process, each of which ends well.
"""

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reframe.core.backends import register_launcher, register_scheduler
from reframe.core.exceptions import JobError, JobSchedulerError, SpawnedProcessError, SpawnedProcessTimeout
from reframe.core.launchers import JobLauncher
from reframe.core.schedulers.slurm import SlurmJobScheduler

from postprocess.base.sanitize import sanitize_line
from site_configs.mpi.probe import strip_allocation
from site_configs.schedulers import slurm_jobs
from site_configs.schedulers.base import WAITS, Ended, Ending, write_ended
from site_configs.schedulers.slurm import SCHEDULER, SRUN, SRUN_CRAY, SRUN_PMI2, SRUN_PMIX, find_named_cluster
from site_configs.schema.variables import SESSION

__all__ = ["SCHEDULER", "SRUN", "SRUN_CRAY", "SRUN_PMI2", "SRUN_PMIX"]

#: Seconds for which the controller may be away before a launch is given up.
PATIENCE = "PLUMBLINE_SLURM_PATIENCE"
PATIENCE_SECONDS = 600.0
WAIT_SECONDS = 12 * 3600.0  #: longest wait in the queue, unless the site sets ``max_pending_time``
#: In the queue, after an earlier launch did not start in time: a night must end.
SHORT_WAIT_SECONDS = 60.0
#: From a job's time limit until it is cancelled from here: Slurm counts in minutes, with delays.
GRACE_SECONDS = 5.0
LONGEST_PAUSE = 10.0  #: seconds between two looks at a job
#: Accounting may lag behind the controller: the number of further questions, and the seconds before each.
LATE_QUESTIONS, LATE_PAUSE = 4, 5.0
#: Seconds of waiting after which the reason is first reported, and between reports.
FIRST_WORD_SECONDS, WORD_SECONDS = 10.0, 30.0
IN_A_JOB = "SLURM_JOB_ID"  #: is set in a job
#: Beginnings of variables that Slurm's commands also need inside a job.
ASKING = ("SLURM_CONF", "SLURM_JWT", "SLURM_SACK")

#: Reasons for waiting that do not pass by themselves. ``PartitionConfig`` means too many nodes.
NEVER = frozenset(
    {"AccountNotAllowed", "BadConstraints", "InvalidAccount", "InvalidQOS", "JobHeldAdmin"}
    | {"JobHeldUser", "PartitionConfig", "PartitionNodeLimit", "PartitionTimeLimit", "QOSNotAllowed"}
)
#: Ends of a job whose nodes were taken away, for which no program is responsible.
TAKEN_AWAY = frozenset({"BOOT_FAIL", "NODE_FAIL", "PREEMPTED"})
#: Beginnings of limits on the size of one job, of an association or a quality of service.
TOO_LARGE = ("AssocMax", "QOSMax")


@dataclass
class Watch:
    """What is known of a job between two looks. Times are on the monotonic clock."""

    submitted: float
    next_look: float = 0.0
    started: float | None = None
    over: bool = False
    next_word: float = FIRST_WORD_SECONDS  #: seconds of waiting at which its reason is reported next


def can_never_run(reason: str) -> bool:
    """Return whether a job that is pending for this reason can never start."""
    word = reason.split(",")[0].strip()
    return word in NEVER or (word.startswith(TOO_LARGE) and "PerJob" in word)


def request_whole_nodes(lines: list[str], prefix: str, processes: int, per_node: int) -> list[str]:
    """Return the head of a job script with as many whole nodes as the processes need, and no requeue.

    A partly filled node is requested like the others, so that every launcher fills node after node. Limits are
    those of the nodes, not of the submitting shell, unless the site file says otherwise.
    """
    nodes = -(-processes // per_node)
    kept = [line for line in lines if not line.startswith(f"{prefix} --ntasks=")]
    added = [f"{prefix} --nodes={nodes}", f"{prefix} --ntasks={nodes * per_node}"]
    return [*added, f"{prefix} --no-requeue", f"{prefix} --propagate=NONE", *kept]


@dataclass
class Outage:
    """The time for which the controller has not answered, the same for all jobs."""

    since: float | None = None

    def seconds(self, now: float) -> float:
        """Return the seconds since the first unanswered question."""
        self.since = now if self.since is None else self.since
        return now - self.since

    def end(self) -> None:
        self.since = None


@register_scheduler(SCHEDULER)
class BlockSlurm(SlurmJobScheduler):
    """Slurm, with or without accounting."""

    def __init__(self) -> None:
        super().__init__()
        self.outage = Outage()
        self.waited_in_vain = False

    def make_job(self, *args: Any, **kwargs: Any) -> Any:
        job = super().make_job(*args, **kwargs)
        job.watch = None
        return job

    def emit_preamble(self, job: Any) -> list[str]:
        lines = super().emit_preamble(job)
        if not job.num_tasks_per_node:
            return lines
        return request_whole_nodes(lines, self._prefix, job.num_tasks, job.num_tasks_per_node)

    def submit(self, job: Any) -> None:
        """Submit the job, even if the controller is away for a while."""
        write_end_mark(find_cluster(job))
        # the options decide where a job goes; a session refuses a conflicting choice of the shell
        os.environ.pop(slurm_jobs.CLUSTERS, None)
        while True:
            try:
                with hide_job():
                    super().submit(job)
                break
            except SpawnedProcessTimeout as error:
                problem: slurm_jobs.SlurmError = slurm_jobs.NoAnswer(
                    f"sbatch did not end within {error.timeout} s"
                )
            except SpawnedProcessError as error:
                problem = slurm_jobs.refusal("sbatch", error.stderr or "")
            if not isinstance(problem, slurm_jobs.NoAnswer):
                raise JobSchedulerError(record_never_started(job, str(problem)))
            if self.was_taken(job, problem):
                break
        self.outage.end()
        job.watch = Watch(time.monotonic())

    def wait_for_controller(self, job: Any, problem: slurm_jobs.SlurmError) -> None:
        """Wait a moment, or give up. The controller gets its time once, not once per job."""
        away = self.outage.seconds(time.monotonic())
        if away >= read_outage_limit():
            raise JobSchedulerError(record_never_started(job, describe_no_answer(problem, away)))
        time.sleep(min(LONGEST_PAUSE, 1 + away / 10))

    def was_taken(self, job: Any, problem: slurm_jobs.SlurmError) -> bool:
        """Return whether a job was queued although sbatch got no answer.

        It is not submitted again until that is known, because it must not run twice.
        """
        while True:
            self.wait_for_controller(job, problem)
            try:
                jobs = slurm_jobs.list_own_jobs([find_cluster(job)])
                break
            except slurm_jobs.SlurmError as again:
                problem = again
        here = os.path.realpath(os.getcwd())
        mine = [queued.number for queued in jobs if os.path.realpath(queued.directory) == here]
        if mine:
            job._jobid, job._submit_time = slurm_jobs.split_cluster(mine[-1])[0], time.time()
        return bool(mine)

    def poll(self, *jobs: Any) -> None:
        """Look at each job, less often the older it is."""
        for job in jobs:
            if job is None or job.watch.over or time.monotonic() < job.watch.next_look:
                continue
            self.look_at(job)
            now = time.monotonic()
            age = now - (job.watch.started or job.watch.submitted)
            job.watch.next_look = now + min(LONGEST_PAUSE, 0.2 + age / 20)

    def look_at(self, job: Any) -> None:
        try:
            state = look_up_known_job(name_job(job))
        except slurm_jobs.ForgottenJob as problem:
            self.end_forgotten(job, problem)
            return
        except slurm_jobs.UnknownJob:
            # Its files show how it ended; otherwise the launch counts as crashed.
            state = slurm_jobs.JobState(job.jobid, "COMPLETED")
        except slurm_jobs.SlurmError as problem:
            away = self.outage.seconds(time.monotonic())
            self.log(f"{problem} (for {away:.0f} s)")
            if away >= read_outage_limit():
                self.give_up(job, describe_no_answer(problem, away))
            return
        self.outage.end()
        job._state, job._nodespec = state.state, state.nodes
        if state.state in slurm_jobs.WAITING:
            self.judge_wait(job, state)
        elif state.state in slurm_jobs.OVER:
            self.judge_end(job, state)
        else:
            self.judge_run(job)

    def end_forgotten(self, job: Any, problem: slurm_jobs.ForgottenJob) -> None:
        """End a finished job, whatever accounting says about it."""
        self.outage.end()
        job.watch.over = True
        if job.watch.started is None:
            self.fail(job, record_never_started(job, f"Slurm has lost the job: {problem}"))
            return
        why = f"Slurm has lost the job while it ran: {problem}"
        write_ended(Path(job.workdir), Ended(Ending.TAKEN_AWAY, why))
        self.fail(job, why)

    def judge_wait(self, job: Any, state: slurm_jobs.JobState) -> None:
        """End a wait that cannot end by itself, or that is longer than the site allows."""
        waited = time.monotonic() - job.watch.submitted
        allowed = WAIT_SECONDS if job.max_pending_time is None else job.max_pending_time
        if can_never_run(state.reason):
            why = f"Slurm cannot run it as it is asked for ({state.reason})"
            fix = "see topology, layouts and access of the partition in the site file"
        elif waited >= (min(allowed, SHORT_WAIT_SECONDS) if self.waited_in_vain else allowed):
            self.waited_in_vain = True
            why = f"waited {waited:.0f} s in the queue ({state.reason or 'no reason is given'})"
            fix = "see sinfo -R, or let the site file allow a longer max_pending_time"
        else:
            self.tell_wait(job, state, waited)
            return
        sick = slurm_jobs.describe_unhealthy_nodes(state)
        self.give_up(job, record_never_started(job, f"{why}{f'; {sick}' if sick else ''}; {fix}"))

    def tell_wait(self, job: Any, state: slurm_jobs.JobState, waited: float) -> None:
        """Print occasionally why a job waits; the process that started ReFrame passes it on."""
        if waited < job.watch.next_word:
            return
        job.watch.next_word = waited + WORD_SECONDS
        sick = slurm_jobs.describe_unhealthy_nodes(state)
        why = f"{state.reason or 'no reason is given'}{f'; not usable: {sick}' if sick else ''}"
        text = f"{WAITS}job {job.jobid} has waited {waited:.0f} s: {why}"
        print(sanitize_line(text), flush=True)

    def judge_run(self, job: Any) -> None:
        """End a job that outlives its time limit, if Slurm does not."""
        self.waited_in_vain = False
        now = time.monotonic()
        job.watch.started = job.watch.started or now
        limit = job.time_limit
        if limit is not None and now - job.watch.started > limit + GRACE_SECONDS:
            self.give_up(job, record_timed_out(job))

    def judge_end(self, job: Any, state: slurm_jobs.JobState) -> None:
        """Record why a job ended, if not by itself."""
        job.watch.over = True
        job._exitcode = state.exit_code
        if state.state == "TIMEOUT":
            self.fail(job, record_timed_out(job))
        elif state.state not in ("COMPLETED", "FAILED") and not job.is_cancelling:
            sick = slurm_jobs.describe_unhealthy_nodes(state)
            why = f"Slurm ended the job: {state.state}"
            reason = f"{why}; {sick}, see sinfo -R" if sick else why
            if state.state in TAKEN_AWAY:
                write_ended(Path(job.workdir), Ended(Ending.TAKEN_AWAY, reason))
            self.fail(job, reason)

    def give_up(self, job: Any, reason: str) -> None:
        """Cancel a job that is no longer useful."""
        self.fail(job, reason)
        self.cancel(job)
        job.watch.over = True

    def fail(self, job: Any, reason: str) -> None:
        job._exception = JobError(reason, job.jobid)

    def cancel_many(self, jobs: Any) -> None:
        """Cancel jobs. The session cancels at its end what cannot be cancelled now."""
        for job in jobs:
            job._is_cancelling = True
            try:
                slurm_jobs.cancel([name_job(job)])
            except slurm_jobs.SlurmError as problem:
                self.log(f"job {job.jobid} is not cancelled: {problem}")

    def finished(self, job: Any) -> bool:
        """Return whether there is nothing left to wait for."""
        return job.watch is not None and job.watch.over


def look_up_known_job(number: str) -> slurm_jobs.JobState:
    """Look up a job; give accounting a while to learn of an end that the controller has forgotten.

    :raises ForgottenJob: if it does not.
    """
    for _ in range(LATE_QUESTIONS):
        try:
            return slurm_jobs.look_up_job(number)
        except slurm_jobs.ForgottenJob:
            time.sleep(LATE_PAUSE)
    return slurm_jobs.look_up_job(number)


@contextmanager
def hide_job() -> Iterator[None]:
    """Hide the job that this process runs in from sbatch, which would inherit its counts and limits."""
    before = dict(os.environ)
    inherited = before.keys() - strip_allocation(before).keys() if IN_A_JOB in before else set()
    for name in inherited:
        if not name.startswith(ASKING):
            del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(before)


def record_never_started(job: Any, why: str) -> str:
    """Return the reason of a job that did not run, and record it beside the job for the session."""
    reason = f"never started: {why}"
    write_ended(Path(job.workdir), Ended(Ending.NEVER_STARTED, reason))
    return reason


def record_timed_out(job: Any) -> str:
    """Return the reason of a job that timed out, and record it beside the job for the session."""
    reason = "job timed out"
    write_ended(Path(job.workdir), Ended(Ending.TIMED_OUT, reason))
    return reason


def find_cluster(job: Any) -> str:
    """Find the cluster in the options of a job; empty for the default one."""
    options = [*(getattr(job, "sched_access", None) or ()), *(getattr(job, "options", None) or ())]
    return find_named_cluster(options)


def name_job(job: Any) -> str:
    """Name a job by its number, and by its cluster if that is not the default one."""
    cluster = find_cluster(job)
    return f"{job.jobid}@{cluster}" if cluster else job.jobid


def write_end_mark(cluster: str) -> None:
    """Record for later sessions that this session sent jobs to Slurm, and to which cluster."""
    if session := os.environ.get(SESSION):
        with Path(session, slurm_jobs.MARK).open("a") as mark:
            mark.write(f"{cluster}\n" if cluster else "")


def read_outage_limit() -> float:
    """Read the seconds for which the controller may be away.

    :raises ValueError: if the user's value is not such a number; one line.
    """
    text = os.environ.get(PATIENCE, str(PATIENCE_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ValueError(f"{PATIENCE}={text!r}: give a number of seconds, such as 600")
    return seconds


def describe_no_answer(problem: slurm_jobs.SlurmError, away: float) -> str:
    return f"Slurm has not answered for {away:.0f} s ({problem})"


__all__ = ["SCHEDULER", "SRUN", "SRUN_CRAY", "SRUN_PMI2", "SRUN_PMIX"]

read_outage_limit()  # report a mistake in it with the site file, not in the middle of an outage


@register_launcher(SRUN)
class BlockSrun(JobLauncher):
    """Slurm's launcher, node after node, with each process bound to a core, or to a thread of it."""

    binds_to_threads = True
    kind = ""  #: kind of MPI, in the words of ``srun --mpi=list``

    def command(self, job: Any) -> list[str]:
        nodes = -(-job.num_tasks // job.num_tasks_per_node)
        counts = [f"--nodes={nodes}", f"--ntasks={job.num_tasks}"]
        kind = [f"--mpi={self.kind}"] if self.kind else []
        layout = f"--distribution=plane={job.num_tasks_per_node}"
        unit = "threads" if (job.num_tasks_per_core or 1) > 1 else "cores"
        return ["srun", *kind, *counts, layout, f"--cpu-bind={unit}"]


@register_launcher(SRUN_PMI2)
class Pmi2Srun(BlockSrun):
    """For MPICH."""

    kind = "pmi2"


@register_launcher(SRUN_PMIX)
class PmixSrun(BlockSrun):
    """For MPIs that were built with PMIx."""

    kind = "pmix"


@register_launcher(SRUN_CRAY)
class CraySrun(BlockSrun):
    """For Cray's MPI."""

    kind = "cray_shasta"
