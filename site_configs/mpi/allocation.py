"""What a batch system's job tells an MPI launcher through variables: a launch on this machine must not see it.

In an interactive job, ``mpiexec`` takes the nodes of the job for its own: it starts ``srun`` or waits for hosts
that are not this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

#: How the variables begin that a job of a batch system, or an outer launcher, leaves to what it starts.
PREFIXES = (
    *("SLURM_", "PBS_", "LSB_", "LOADL_", "COBALT_", "OAR_", "PALS_"),
    *("PMI_", "PMIX_SERVER_", "OMPI_COMM_WORLD_"),
)
#: Others of them, by name. Slurm itself sets the launcher of the Hydra family.
NAMES = (
    *("PE_HOSTFILE", "PMIX_NAMESPACE", "PMIX_RANK"),
    *("HYDRA_BOOTSTRAP", "HYDRA_LAUNCHER", "HYDRA_LAUNCHER_EXTRA_ARGS", "HYDRA_RMK"),
    *("HYDRA_HOST_FILE", "I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS"),
    *("I_MPI_HYDRA_RMK", "I_MPI_HYDRA_HOST_FILE"),
)
#: The same for Bash, as one line of a script.
UNSET = " ".join(["unset", *(f"${{!{prefix}@}}" for prefix in PREFIXES), *NAMES])
OWN_LAUNCHERS = ("mpiexec", "mpirun", "orterun", "prterun")  #: how the names of MPIs' own begin


def strip_allocation(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what tells of a job: for all that starts MPI programs on this machine."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(PREFIXES) and name not in NAMES
    }


def is_own_launcher(launcher: str | Sequence[str]) -> bool:
    """Return whether a launcher of a site file is one that came with an MPI, and no batch system's."""
    words = [launcher] if isinstance(launcher, str) else launcher
    return PurePath(words[0]).name.startswith(OWN_LAUNCHERS)
