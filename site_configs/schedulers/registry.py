"""The registry of schedulers: a scheduler is added here and nowhere else."""

from __future__ import annotations

from site_configs.schedulers.base import Scheduler
from site_configs.schedulers.local import LOCAL
from site_configs.schedulers.lsf import LSF
from site_configs.schedulers.pbs.scheduler import PBS, TORQUE_PBS
from site_configs.schedulers.slurm.scheduler import SLURM

#: In the order in which they are looked for: Slurm has stand-ins for the commands of PBS.
SCHEDULERS: list[Scheduler] = [SLURM, PBS, TORQUE_PBS, LSF]


def find_scheduler(backend: str) -> Scheduler:
    """Find the scheduler of a ReFrame backend; for an unknown one, a scheduler without facts."""
    for scheduler in (LOCAL, *SCHEDULERS):
        if backend in scheduler.backends:
            return scheduler
    return Scheduler(title=backend, backend=backend, backends=(backend,))


def list_site_names() -> dict[str, str]:
    """List the names registered with ReFrame, each as a site file writes it."""
    return {name: python for scheduler in SCHEDULERS for name, python in scheduler.site_names}


def list_limit_words() -> list[str]:
    """List what schedulers write to standard error of a job that they end at its time limit."""
    return [scheduler.limit_words for scheduler in SCHEDULERS if scheduler.limit_words]
