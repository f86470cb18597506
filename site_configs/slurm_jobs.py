"""Jobs as Slurm's own commands tell of them. Accounting is used where it is on, and not needed."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

MARK = "slurm_jobs"  #: file in a session's directory that tells that it sent jobs to Slurm
ASK_SECONDS = 60  #: after which a command that has not ended counts as no answer
#: What Slurm's commands say when it is the controller, or the way to it, that fails.
AWAY = re.compile(
    r"Unable to contact slurm controller|Socket timed out|Connection (refused|timed out|reset)"
    r"|Transport endpoint|Zero Bytes were transmitted|in standby mode|[Cc]onnection failure"
    r"|authentication error|[Uu]nable to establish|Resource temporarily unavailable"
)
UNKNOWN_JOB = re.compile(r"Invalid job id")
WAITING = frozenset(
    {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"}
)
OVER = frozenset(
    {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"}
    | {"PREEMPTED", "REVOKED", "TIMEOUT"}
)
NAMED = 4  #: nodes that a reason names before it only counts them
QUEUE = "%i|%T|%j|%Z"


class SlurmError(Exception):
    """Slurm refuses. The text is one line: what it says."""


class NoAnswer(SlurmError):
    """The controller does not answer; it may later."""


class UnknownJob(SlurmError):
    """Slurm does not know the job, or no more."""


@dataclass(frozen=True)
class JobState:
    """A job at one moment, in Slurm's words."""

    number: str
    state: str
    reason: str = ""  #: why it waits, or why it ended
    partition: str = ""
    nodes: str = ""  #: such as ``n[1-3]``; empty before it runs
    exit_code: int | None = None


@dataclass(frozen=True)
class QueuedJob:
    """A job of this user that is not over."""

    number: str
    state: str
    name: str
    directory: Path  #: from which it was submitted


def ask(*words: str) -> str:
    """Standard output of one of Slurm's commands.

    :raises NoAnswer: if the controller does not answer.
    :raises UnknownJob: if there is no such job.
    :raises SlurmError: if Slurm refuses, or the command is not there.
    """
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ASK_SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"{words[0]} did not end within {ASK_SECONDS} s") from None
    except OSError as error:
        raise SlurmError(f"{words[0]}: {error.strerror}; is Slurm on the search path?") from None
    if done.returncode != 0:
        raise refusal(words[0], done.stderr)
    return done.stdout


def refusal(command: str, text: str) -> SlurmError:
    """What it means that a command failed with this text."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = f"{command}: {lines[-1].removeprefix(f'{command}: ')}" if lines else f"{command} failed"
    if UNKNOWN_JOB.search(text):
        return UnknownJob(said)
    return NoAnswer(said) if AWAY.search(text) else SlurmError(said)


def look(number: str) -> JobState:
    """A job that is in the queue, or left it a short while ago; later, accounting is asked.

    :raises NoAnswer: if the controller does not answer.
    :raises UnknownJob: if the job is over and nobody knows how it ended.
    """
    try:
        return parse_job(number, ask("scontrol", "--oneliner", "show", "job", number))
    except UnknownJob as error:
        try:
            format_ = "--format=state,exitcode,nodelist"
            words = (
                "sacct",
                "--noheader",
                "--parsable2",
                "--allocations",
                "--jobs",
                number,
                format_,
            )
            return parse_account(number, ask(*words))
        except (SlurmError, ValueError):
            raise error from None


def parse_job(number: str, text: str) -> JobState:
    """A job from what ``scontrol --oneliner show job`` prints."""

    def value(key: str) -> str:
        match = re.search(rf"(?<!\S){key}=(\S+)", text)
        return match[1] if match and match[1] not in ("(null)", "None") else ""

    code = value("ExitCode").partition(":")[0]
    return JobState(
        number=number,
        state=value("JobState"),
        reason=value("Reason").replace("_", " "),
        partition=value("Partition"),
        nodes=value("NodeList"),
        exit_code=int(code) if code.isdigit() else None,
    )


def parse_account(number: str, text: str) -> JobState:
    """A job from accounting: ``FAILED|3:0|n1``; ``CANCELLED by 1000`` is a state too.

    :raises ValueError: if accounting does not know the job.
    """
    state, code, nodes = text.strip().split("|")
    return JobState(number, state.split()[0], nodes=nodes, exit_code=int(code.partition(":")[0]))


def own_jobs() -> list[QueuedJob]:
    """Every job of this user that is not over and not about to be.

    :raises SlurmError: if Slurm does not tell.
    """
    text = ask("squeue", "--noheader", f"--user={os.getuid()}", f"--format={QUEUE}")
    lines = (line.split("|", 3) for line in text.splitlines())
    jobs = [QueuedJob(words[0], words[1], words[2], Path(words[3])) for words in lines]
    return [job for job in jobs if job.state != "COMPLETING"]


def cancel(numbers: Iterable[str]) -> None:
    """Cancel jobs. One that is over already is no error.

    :raises SlurmError: if Slurm does not do it.
    """
    for number in numbers:
        try:
            ask("scancel", number)
        except UnknownJob:
            continue


def unwell(job: JobState) -> str:
    """The nodes of a job, or of its partition, that are of no use: ``n2 (down*)``; empty if none is."""
    where = ("--nodes", job.nodes) if job.nodes else ("--partition", job.partition)
    try:
        text = ask("sinfo", "--noheader", "--Node", *where, "--format=%N %T")
    except SlurmError:
        return ""
    names = [f"{name} ({state})" for name, state in sorted(set(sick_nodes(text.split())))]
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if names[NAMED:] else "")


def sick_nodes(words: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Name and state of the nodes that cannot be used, from name and state in turn."""
    for name, state in zip(words[::2], words[1::2], strict=True):
        if state.endswith("*") or state.startswith(("down", "drain", "fail", "error", "unknown")):
            yield name, state
