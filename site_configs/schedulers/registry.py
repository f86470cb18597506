"""All schedulers, and the detection of this machine's scheduler.

A module of this folder with ``SCHEDULERS`` adds its own. A scheduler's commands are asked for queues and nodes;
nothing is submitted.
"""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

from site_configs.mpi.probe import ProbeError, run_step
from site_configs.schedulers.base import Ask, Scheduler


def find_schedulers() -> list[Scheduler]:
    """Find the schedulers of all modules beside this one, in the order of detection."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.name != Path(__file__).name)
    modules = [import_module(f"{__package__}.{name}") for name in names]
    found = [each for module in modules for each in getattr(module, "SCHEDULERS", ())]
    return sorted(found, key=lambda scheduler: scheduler.asked)


SCHEDULERS = find_schedulers()
ASK_SECONDS = 30  #: per command of a scheduler


#: Launches run on this machine.
LOCAL = Scheduler(title="no scheduler", backend="local", backends=("local",), batch=False)


def find_scheduler(backend: str) -> Scheduler:
    """Return the scheduler of a ReFrame backend; for an unknown backend, a scheduler without facts."""
    for scheduler in (LOCAL, *SCHEDULERS):
        if backend in scheduler.backends:
            return scheduler
    return Scheduler(title=backend, backend=backend, backends=(backend,))


def list_site_names() -> dict[str, str]:
    """Return the names registered with ReFrame, with their spelling in a site file."""
    return {name: python for scheduler in SCHEDULERS for name, python in scheduler.site_names}


def list_limit_words() -> list[str]:
    """List what schedulers write to the standard error of a job that they end at its time limit."""
    return [scheduler.limit_words for scheduler in SCHEDULERS if scheduler.limit_words]


class SchedulerError(Exception):
    """A scheduler is here but does not answer, or its answer cannot be read, in one line."""


def ask_command(words: Sequence[str], asking: Sequence[tuple[str, str]] = ()) -> str:
    """Run a scheduler's command, and return its standard output.

    :param asking: variables that choose the machine
    :raises ProbeError: if it fails or does not end in time.
    """
    step = " ".join(word for word in words if not word.startswith("-"))
    choices = tuple(choice for scheduler in SCHEDULERS for choice in scheduler.user_choices)
    everything = {name: text for name, text in os.environ.items() if not name.startswith(choices)}
    everything |= dict(asking)
    return run_step(list(words), everything, step, ASK_SECONDS)


def detect_scheduler(
    ask: Ask | None = None,
    installed: Callable[[str], object] = shutil.which,
    environment: Mapping[str, str] | None = None,
) -> Scheduler | None:
    """Find the scheduler of this machine; None if there is none.

    :param environment: variables, which may choose among several machines; default: those of this process
    :raises SchedulerError: if there is one that does not answer.
    """
    for scheduler in SCHEDULERS:
        if scheduler.command and installed(scheduler.command):
            try:
                chosen = scheduler.choose_machine(os.environ if environment is None else environment)
                return chosen.read(ask or partial(ask_command, asking=chosen.asking))
            except (ProbeError, ValueError) as error:
                raise SchedulerError(str(error)) from None
    return None
