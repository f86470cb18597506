"""Jobs as reported by Slurm's own commands. Accounting is used if it is on, but not needed."""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from site_configs.schedulers.base import OwnJob, QueueError, describe_nodes

MARK = "slurm_jobs"  #: file in a session's directory which shows that it sent jobs to Slurm
ASK_SECONDS = 60  #: after which a command that has not ended counts as no answer
#: Messages of Slurm's commands when the controller, or the way to it, fails.
AWAY = re.compile(
    r"Unable to contact slurm controller|Socket timed out|Connection (refused|timed out|reset)"
    r"|Transport endpoint|Zero Bytes were transmitted|in standby mode|[Cc]onnection failure"
    r"|authentication error|[Uu]nable to establish|Resource temporarily unavailable"
)
UNKNOWN_JOB = re.compile(r"Invalid job id")
WAITING = frozenset(
    {"PENDING", "CONFIGURING", "POWER_UP_NODE", "EXPEDITING", "REQUEUED", "REQUEUE_HOLD"}
    | {"REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"}
)
RUNNING = frozenset(
    {"RUNNING", "COMPLETING", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED", "SUSPENDED"} | {"UPDATE_DB"}
)
OVER = frozenset(
    {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"}
    | {"PREEMPTED", "REVOKED", "TIMEOUT"}
)
#: Variables with which a user chooses what Slurm's commands show, and of which cluster: here they would hide
#: jobs, or invent some.
CHOICES = ("SQUEUE_", "SINFO_", "SACCT_", "SCONTROL_", "SCANCEL_", "SLURM_CLUSTERS")
CLUSTERS = "SLURM_CLUSTERS"
HEADING = "CLUSTER: "  #: begins a line before the answer of another cluster
NODE = "%N|%T|%H|%E"
SINCE = re.compile(r"\d{4}-\d\d-\d\dT[\d:]+")  #: anything else means that there is no such time
UNHEALTHY = ("down", "drain", "fail", "error", "unknown")  #: beginnings of states of nodes
QUEUE = "%i|%T|%Z"
#: A line in this format. A job may have been submitted without a directory, and not from here.
QUEUED = re.compile(r"(\d[^\s|]*)\|([A-Z_]+)\|(/[^\0\n]*|)")
#: A job in accounting: ``CANCELLED by 1000|0:15|n1``.
ACCOUNT = re.compile(r"([A-Z_]+)(?: by \S+)?\|(\d{1,3}):\d+\|([^|\n]*)")
SHOWN = 80  #: characters of an odd answer that an error shows


class SlurmError(QueueError):
    """Slurm refuses. The text is its message, on one line."""


class NoAnswer(SlurmError):
    """The controller does not answer, but may do so later."""


class UnknownJob(SlurmError):
    """Slurm does not know the job, or no longer."""


class ForgottenJob(UnknownJob):
    """The controller does not know the job, and accounting has no end of it."""


@dataclass(frozen=True)
class JobState:
    """A job at one moment, in Slurm's terms."""

    number: str
    state: str
    reason: str = ""  #: why it waits, or why it ended
    partition: str = ""
    nodes: str = ""  #: such as ``n[1-3]``; empty before it runs
    exit_code: int | None = None


def split_cluster(number: str) -> tuple[str, str]:
    """Split ``7@rome`` into the number of a job and its cluster, which is empty for the default one."""
    number, _, cluster = number.partition("@")
    return number, cluster


def ask(*words: str, cluster: str = "", told_in: int = -1) -> str:
    """Run one of Slurm's commands, and return its standard output.

    :param cluster: cluster to ask, if not the default one
    :param told_in: index of the line of standard error that says why it refuses
    :raises NoAnswer: if the controller does not answer.
    :raises UnknownJob: if there is no such job.
    :raises SlurmError: if Slurm refuses, or the command is not installed.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(CHOICES)}
    kept |= {CLUSTERS: cluster} if cluster else {}
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ASK_SECONDS,
            env={**kept, "LC_ALL": "C"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"{words[0]} did not end within {ASK_SECONDS} s") from None
    except OSError as error:
        raise SlurmError(f"{words[0]}: {error.strerror}; is Slurm on the search path?") from None
    if done.returncode != 0:
        raise refusal(words[0], done.stderr, told_in)
    return done.stdout


def explain_refused_job(options: Iterable[str], cluster: str = "") -> str:
    """Explain why sbatch refuses a job with these options; empty if it accepts it. No job is sent.

    :raises NoAnswer: if the controller does not answer.
    """
    with NamedTemporaryFile("w", suffix=".sh") as script:
        lines = (f"#SBATCH {option}" for option in ("--time=1", "--output=/dev/null", *options))
        script.write("\n".join(["#!/bin/sh", *lines, "true\n"]))
        script.flush()
        try:
            ask("sbatch", "--test-only", script.name, cluster=cluster, told_in=0)
        except NoAnswer:
            raise
        except SlurmError as error:
            return str(error)
    return ""


def refusal(command: str, text: str, told_in: int = -1) -> SlurmError:
    """Return the error for the message of a failed command."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    message = f"{command}: {lines[told_in].removeprefix(f'{command}: ')}" if lines else f"{command} failed"
    if UNKNOWN_JOB.search(text):
        return UnknownJob(message)
    return NoAnswer(message) if AWAY.search(text) else SlurmError(message)


def build_answer_error(command: str, text: str) -> SlurmError:
    """Return the error for a command that succeeded with unexpected output."""
    return SlurmError(f"{command} says what is not understood: {text[:SHOWN]!r}")


def look_up_job(number: str) -> JobState:
    """Look up a job in the queue, where it stays for a short while after its end, or else in accounting.

    :param number: with its cluster behind an @, if that is not the default one
    :raises NoAnswer: if the controller does not answer.
    :raises UnknownJob: if the job is over and how it ended is unknown.
    :raises ForgottenJob: if accounting has it waiting or running, but the controller does not know it.
    :raises SlurmError: if Slurm refuses, or its answer is not understood.
    """
    plain, cluster = split_cluster(number)
    try:
        words = ["--all", "--oneliner", "show", "job", plain]
        return parse_job(number, ask("scontrol", *words, cluster=cluster))
    except UnknownJob as error:
        words = ["--noheader", "--parsable2", "--allocations", "--format=state,exitcode,nodelist"]
        try:
            state = parse_account(number, ask("sacct", *words, "--jobs", plain, cluster=cluster))
        except SlurmError:
            raise error from None
        if state.state not in OVER:
            raise ForgottenJob(f"{error}, and sacct: {state.state}") from None
        return state


def parse_job(number: str, text: str) -> JobState:
    """Parse a job in the output of ``scontrol --oneliner show job``.

    :raises SlurmError: if its state is unknown.
    """

    def value(key: str) -> str:
        match = re.search(rf"(?<!\S){key}=(\S+)", text)
        return match[1] if match and match[1] not in ("(null)", "None") else ""

    code = re.fullmatch(r"(\d{1,3}):\d+", value("ExitCode"))
    return JobState(
        number=number,
        state=check_state("scontrol", value("JobState"), text),
        reason=value("Reason").replace("_", " "),
        partition=value("Partition"),
        nodes=value("NodeList"),
        exit_code=int(code[1]) if code else None,
    )


def parse_account(number: str, text: str) -> JobState:
    """Parse a job from accounting: ``FAILED|3:0|n1``; ``CANCELLED by 1000`` is a state too.

    :raises SlurmError: if accounting does not know the job.
    """
    match = ACCOUNT.fullmatch(text.strip())
    if not match:
        raise build_answer_error("sacct", text)
    state, code, nodes = match.groups()
    return JobState(number, check_state("sacct", state, text), nodes=nodes, exit_code=int(code))


def check_state(command: str, state: str, text: str) -> str:
    """Return the state of a job from a command's output.

    :raises SlurmError: if there is no such state, so that it is unknown whether the job runs.
    """
    if state not in WAITING | RUNNING | OVER:
        raise build_answer_error(command, f"JobState={state}" if state else text)
    return state


def list_own_jobs(clusters: Iterable[str] = ("",)) -> list[OwnJob]:
    """Return all jobs of this user in the queue of these clusters, and those that left it shortly before.

    :raises SlurmError: if Slurm does not answer, or a line of its answer is not understood: a job that is
    overlooked would be left behind.
    """
    words = ("--noheader", "--all", "--states=all", f"--user={os.getuid()}", f"--format={QUEUE}")
    jobs = []
    for cluster in clusters:
        for line in ask("squeue", *words, cluster=cluster).removesuffix("\n").split("\n"):
            match = QUEUED.fullmatch(line)
            if line and not match and not (cluster and line.startswith(HEADING)):
                raise build_answer_error("squeue", line)
            if match and match[3]:
                number = f"{match[1]}@{cluster}" if cluster else match[1]
                active = match[2] not in OVER and match[2] != "COMPLETING"
                jobs.append(OwnJob(number, match[2], Path(match[3]), active))
    return jobs


def cancel(numbers: Iterable[str]) -> None:
    """Cancel jobs. A finished one is no error. Raises SlurmError if Slurm does not cancel them."""
    for number in numbers:
        plain, cluster = split_cluster(number)
        try:
            ask("scancel", plain, cluster=cluster)
        except UnknownJob:
            continue


def describe_unhealthy_nodes(job: JobState) -> str:
    """Describe the unusable nodes of a job, or of its partition: ``n2 (down*: reason)``; empty without any."""
    where = ("--all", "--nodes", job.nodes) if job.nodes else ("--partition", job.partition)
    try:
        nodes = list_nodes(where, split_cluster(job.number)[1])
    except SlurmError:
        return ""
    return describe_nodes(sorted({state.shown for state in nodes if state.unhealthy}))


@dataclass(frozen=True)
class NodeState:
    """A node at one moment, in Slurm's terms."""

    name: str
    state: str
    reason: str = ""  #: given by an administrator or Slurm
    since: str = ""  #: when that was, in the controller's local time

    @property
    def unhealthy(self) -> bool:
        """Whether no job can use it until somebody repairs it."""
        state = self.state
        return state.endswith("*") or state.startswith(UNHEALTHY)

    @property
    def shown(self) -> str:
        """Name, state, since when, and why."""
        since = f" since {self.since}" if self.since else ""
        return f"{self.name} ({self.state}{since}{f': {self.reason}' if self.reason else ''})"


def list_nodes(where: Iterable[str], cluster: str = "") -> list[NodeState]:
    """List the nodes that options of sinfo select, each once. Raises SlurmError if Slurm does not answer."""
    listing = ask("sinfo", "--noheader", "--Node", *where, f"--format={NODE}", cluster=cluster)
    return list(dict.fromkeys(parse_nodes(listing)))


def parse_nodes(text: str) -> Iterator[NodeState]:
    """Parse the lines of sinfo in the format of ``NODE``. Raises SlurmError if a line is something else."""
    for line in text.splitlines():
        if line.startswith(HEADING):
            continue
        name, _, rest = line.strip().partition("|")
        state, _, rest = rest.partition("|")
        since, separator, reason = rest.partition("|")
        if not (name and state and separator) or " " in name or " " in state.strip():
            raise build_answer_error("sinfo", line)
        words = " ".join(reason.split())[:SHOWN]
        moment = since.strip().removesuffix(":00").replace("T", " ") if SINCE.fullmatch(since.strip()) else ""
        yield NodeState(name, state.strip(), "" if words.lower() == "none" else words, moment)
