"""How an MPI's launcher is told to bind each rank to a hardware thread, so that a core has two.

Slurm's and Cray's own launchers, as :mod:`site_configs.schedulers` registers them, are told by the job itself
(``num_tasks_per_core``), and say so (``binds_to_threads``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from reframe.core.backends import getlauncher
from reframe.core.exceptions import ConfigError

#: Words of a launch line that say already where ranks go.
PLACING = ("bind-to", "map-by", "cpu-bind", "rankfile", "cpu-set", "binding", "bind")


@dataclass(frozen=True)
class ThreadBinding:
    """What is added to a launch: options behind the launcher's words, and variables."""

    options: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


#: By family of an MPI, of its own ``mpiexec``. Open MPI counts hardware threads as slots only if it is told to.
BY_FAMILY = {
    "openmpi": ThreadBinding(("--use-hwthread-cpus", "--map-by", "hwthread", "--bind-to", "hwthread")),
    "mpich": ThreadBinding(("-bind-to", "hwthread")),
    "intel-mpi": ThreadBinding(
        variables={"I_MPI_PIN": "1", "I_MPI_PIN_CELL": "unit", "I_MPI_PIN_DOMAIN": "1:compact"}
    ),
}


def find_thread_binding(family: str, launcher: str | Sequence[str]) -> ThreadBinding:
    """Find what binds the ranks of a launch to hardware threads.

    :param launcher: name of one of ReFrame's launchers, or the words that start a launch line; empty for the
        ``mpiexec`` of the environment
    :raises ValueError: saying in one line why nothing is known that does it
    """
    if isinstance(launcher, str) and launcher:
        if is_told_by_job(launcher):
            return ThreadBinding()
        if launcher == "srun":
            return ThreadBinding(("--cpu-bind=threads",))
        raise ValueError(f"it is not known how {launcher} binds ranks to hardware threads")
    words = [PurePath(word).name for word in launcher]
    options = [word for word in words if word.startswith("-")]
    if own := [word for word in options if word.lstrip("-").partition("=")[0] in PLACING]:
        raise ValueError(f"the launcher of the site file says itself where ranks go: {own[0]}")
    if family not in BY_FAMILY or "srun" in words:
        raise ValueError(f"it is not known how the launcher of {family} binds ranks to hardware threads")
    return BY_FAMILY[family]


def is_told_by_job(launcher: str) -> bool:
    """Return whether a launcher of ReFrame's binds to hardware threads where a job has several ranks a core."""
    try:
        return bool(getattr(getlauncher(launcher), "binds_to_threads", False))
    except ConfigError:
        return False
