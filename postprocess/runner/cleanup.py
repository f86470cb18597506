"""What a session left behind in a scheduler's queue, found by the directory from which it was submitted."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from postprocess.base import files
from site_configs.schedulers.base import Scheduler


def end_jobs(sessions: Iterable[Path], scheduler: Scheduler) -> list[str]:
    """Cancel the jobs in a scheduler's queue that these sessions sent, and return their directories' names.

    It is only asked if a session has sent jobs to it that were not cleaned up since.

    :raises QueueError: if it does not answer or refuses; then they can be looked after again.
    """
    if not scheduler.mark:
        return []
    marks = [mark for session in sessions if (mark := session / scheduler.mark).exists()]
    if not marks:
        return []
    homes = {mark.parent.resolve() for mark in marks}
    told = [files.read_text(mark) for mark in marks]
    queue = [job for job in scheduler.list_own_jobs(told) if job.active]
    jobs = [job for job in queue if homes & set(Path(os.path.realpath(job.directory)).parents)]
    scheduler.cancel(job.number for job in jobs)
    for mark in marks:
        mark.unlink(missing_ok=True)
    return [f"{job.directory.name} ({job.number}, {job.state})" for job in jobs]
