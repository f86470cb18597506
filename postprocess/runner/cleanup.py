"""What a session left behind, found and ended: processes by the session's name in their environment, Slurm's
jobs by the directory from which they were submitted."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from site_configs.schedulers import slurm_jobs


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
