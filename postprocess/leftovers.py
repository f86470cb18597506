"""What a session left behind, found and ended: processes by the session's name in their environment, Slurm's
jobs by the directory from which they were submitted."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from site_configs import slurm_jobs

PROC = Path("/proc")
GRACE = 3.0  #: seconds between asking a process to end and ending it


def processes_of(variable: str, value: str, prefix: bool = False) -> dict[int, str]:
    """Process numbers and command names of the processes whose environment has this variable.

    :param prefix: whether a value that merely begins with ``value`` counts too.
    """
    wanted = f"{variable}={value}".encode() + (b"" if prefix else b"\0")
    found = {}
    for directory in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile, or is another user's
            environment = b"\0" + (directory / "environ").read_bytes() + b"\0"
            if b"\0" + wanted in environment and int(directory.name) != os.getpid():
                found[int(directory.name)] = (
                    (directory / "comm").read_text(errors="replace").strip()
                )
    return found


def end_processes(variable: str, value: str, prefix: bool = False) -> list[str]:
    """End every such process and return their command names; empty if there were none."""
    ended: dict[int, str] = {}
    for number in (signal.SIGTERM, signal.SIGKILL):
        left = processes_of(variable, value, prefix)
        ended |= left
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
        deadline = time.monotonic() + GRACE
        while processes_of(variable, value, prefix) and time.monotonic() < deadline:
            time.sleep(0.05)
    return sorted(ended.values())


def end_jobs(sessions: Iterable[Path]) -> list[str]:
    """Cancel the jobs in Slurm's queue that these sessions sent, and return their directories' names.

    Slurm is only asked if a session has sent jobs and nobody has looked after them since.

    :raises SlurmError: if Slurm does not answer or refuses; then they can be looked after again.
    """
    marks = [mark for session in sessions if (mark := session / slurm_jobs.MARK).exists()]
    if not marks:
        return []
    homes = {mark.parent.resolve() for mark in marks}
    queue = [job for job in slurm_jobs.own_jobs() if job.active]
    jobs = [job for job in queue if homes & set(Path(os.path.realpath(job.directory)).parents)]
    slurm_jobs.cancel(job.number for job in jobs)
    for mark in marks:
        mark.unlink(missing_ok=True)
    return [f"{job.directory.name} ({job.number}, {job.state})" for job in jobs]
