"""What a launcher for an MPI is; a scheduler chooses one (``Scheduler.choose_launcher``).

A wrong pairing starts many worlds of one process, and each of them ends with exit code 0. These are the
pairings that were found to work with real Slurm, or are those of the MPI's own manual; ``./plumbline site try``
is the proof on a machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from site_configs.mpi.family import Mpi

CRAY = "Cray's programming environment"  #: the origin of its MPI
PALS = "pals"  #: Cray's launcher


@dataclass(frozen=True)
class Pairing:
    """A launcher as a site file has it, and why."""

    launcher: str | tuple[str, ...]  #: a registered name, or the words that start a launch line
    why: str


def choose_own_launcher(mpi: Mpi) -> Pairing:
    """Choose the launcher that came with an MPI."""
    if mpi.family == "cray-mpich":
        return Pairing(PALS, "Cray's PALS, which takes the processes per node by itself")
    return Pairing((program(mpi, "mpiexec"),), "the MPI's own launcher")


def program(mpi: Mpi, name: str) -> str:
    """Return a launcher of an MPI: found once its module is loaded, else by absolute path."""
    return name if mpi.module else str(Path(mpi.mpiexec).with_name(add_alternative_suffix(mpi, name)))


def add_alternative_suffix(mpi: Mpi, name: str) -> str:
    """Return the name with the suffix that Debian gives to an alternative (``mpirun.openmpi``)."""
    return Path(mpi.mpiexec).name.replace("mpiexec", name, 1)
