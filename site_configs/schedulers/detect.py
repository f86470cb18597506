"""Detect the scheduler of this machine, and ask it for queues and nodes. Nothing is submitted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence

from site_configs.mpi.probe import ProbeError, run_step
from site_configs.schedulers.base import Ask, Scheduler
from site_configs.schedulers.registry import SCHEDULERS

ASK_SECONDS = 30  #: for each command of a scheduler


class SchedulerError(Exception):
    """One line: a scheduler is here and does not answer, or what it says cannot be read."""


def ask_command(words: Sequence[str]) -> str:
    """Run a scheduler's command, and return its standard output.

    :raises ProbeError: if it fails or does not end in time.
    """
    step = " ".join(word for word in words if not word.startswith("-"))
    choices = tuple(choice for each in SCHEDULERS for choice in each.user_choices)
    everything = {name: text for name, text in os.environ.items() if not name.startswith(choices)}
    return run_step(list(words), everything, step, ASK_SECONDS)


def detect_scheduler(
    ask: Ask = ask_command, installed: Callable[[str], object] = shutil.which
) -> Scheduler | None:
    """Find the scheduler of this machine; None if there is none.

    :raises SchedulerError: if one is here and does not answer.
    """
    for scheduler in SCHEDULERS:
        if scheduler.command and installed(scheduler.command):
            try:
                return scheduler.read(ask)
            except (ProbeError, ValueError) as error:
                raise SchedulerError(str(error)) from None
    return None
