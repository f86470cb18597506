"""The scheduler of this machine, asked for what it knows. Nothing is submitted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence

from site_configs.mpi.probe import ProbeError, run
from site_configs.schedulers import pbs_query, slurm_query
from site_configs.schedulers.base import Ask, Scheduler
from site_configs.schedulers.slurm_jobs import without_choices

ASK_SECONDS = 30  #: for each command of a scheduler


class SchedulerError(Exception):
    """One line: a scheduler is here and does not answer, or what it says cannot be read."""


LSF = Scheduler(
    title="LSF",
    backend="lsf",
    told_by="bqueues",
    backends=("lsf",),
    exclusive=("-q {}", "-x"),
    notes=(
        "LSF is here: what it knows of queues and nodes is not read; bqueues and bhosts show it",
    ),
)


def lsf(_: Ask) -> Scheduler:
    """LSF is recognised, and its machine must be described by hand."""
    return LSF


#: By the command that gives a scheduler away. Slurm comes first: it has stand-ins for the commands of PBS.
READERS = {"sinfo": slurm_query.read, "pbsnodes": pbs_query.read, "bqueues": lsf}


def ask_command(words: Sequence[str]) -> str:
    """Standard output of a scheduler's command.

    :raises ProbeError: if it fails or does not end in time.
    """
    step = " ".join(word for word in words if not word.startswith("-"))
    return run(list(words), without_choices(os.environ), step, ASK_SECONDS)


def look(
    ask: Ask = ask_command, installed: Callable[[str], object] = shutil.which
) -> Scheduler | None:
    """The scheduler of this machine, or None if there is none.

    :raises SchedulerError: if one is here and does not answer.
    """
    for command, read in READERS.items():
        if installed(command):
            try:
                return read(ask)
            except (ProbeError, ValueError) as error:
                raise SchedulerError(str(error)) from None
    return None
