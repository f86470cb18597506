"""Which launcher goes with which MPI under which scheduler.

A wrong pairing starts many worlds of one process, and each of them ends with exit code 0. These are the
pairings that were found to work with real Slurm, or are those of the MPI's own manual; ``./plumbline site try``
is the proof on a machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from site_configs.mpi.family import Mpi
from site_configs.schedulers import slurm_launchers
from site_configs.schedulers.base import Scheduler
from site_configs.schedulers.pbs_launchers import PALS

CRAY = "Cray's programming environment"  #: the origin of its MPI
PMI2_FAMILIES = ("mpich", "mvapich")


@dataclass(frozen=True)
class Pairing:
    """A launcher as a site file has it, and why."""

    launcher: str | tuple[str, ...]  #: a registered name, or the words that start a launch line
    why: str


def pairing(scheduler: Scheduler | None, mpi: Mpi) -> Pairing:
    """The launcher with which an MPI's processes find each other."""
    if scheduler and scheduler.starts_processes:
        return under_slurm(scheduler, mpi)
    if mpi.family == "cray-mpich":
        return Pairing(PALS, "Cray's PALS, which takes the processes per node by itself")
    return Pairing((program(mpi, "mpiexec"),), "the MPI's own launcher")


def under_slurm(scheduler: Scheduler, mpi: Mpi) -> Pairing:
    """As :func:`pairing`, inside a job of Slurm."""
    if mpi.family == "openmpi":
        why = "its own mpirun inside the job; srun --mpi=pmix is known to crash at some process counts"
        return Pairing((program(mpi, "mpirun"),), why)
    if mpi.family == "cray-mpich":
        there = "cray_shasta" in scheduler.mpi_types
        why = "Slurm is what starts processes on a Cray with Slurm"
        return Pairing(slurm_launchers.SRUN_CRAY if there else slurm_launchers.SRUN, why)
    if mpi.family in PMI2_FAMILIES and "pmi2" in scheduler.mpi_types:
        why = "srun with Slurm's PMI-2; without it srun starts many worlds of one process"
        return Pairing(slurm_launchers.SRUN_PMI2, why)
    return Pairing(
        (program(mpi, "mpiexec"),), "its own Hydra, which asks Slurm for the job's nodes"
    )


def program(mpi: Mpi, name: str) -> str:
    """A launcher of an MPI: found once its module is loaded, else by absolute path."""
    return name if mpi.module else str(Path(mpi.mpiexec).with_name(own_name(mpi, name)))


def own_name(mpi: Mpi, name: str) -> str:
    """The name with the suffix that Debian gives to an alternative (``mpirun.openmpi``)."""
    return Path(mpi.mpiexec).name.replace("mpiexec", name, 1)
