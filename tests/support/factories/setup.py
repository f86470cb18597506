"""What a set-up finds on a machine: the machine, an MPI and Spack."""

from pathlib import Path

from site_configs.mpi.family import Mpi
from site_configs.topology.machine import Machine
from spack_envs.provide import Spack

MACHINE = Machine("n1", "a processor", "6.1", 2, 2, 1, 8 * 10**9, ())
SPACK = Spack(Path("/bin/spack"), Path("/packages"), "1.1.0", "PATH")


def make_mpi(name: str, family: str = "mpich") -> Mpi:
    """An MPI on the search path that nobody starts."""
    return Mpi(name, family, "1", "library", "path", "/p", "/p/mpicc", "/p/mpiexec")
