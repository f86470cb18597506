"""Which launcher goes with which MPI."""

from __future__ import annotations

from dataclasses import replace

import pytest

from site_configs.mpi.family import Mpi
from site_configs.schedulers.base import Scheduler
from site_configs.schedulers.local import LOCAL
from site_configs.schedulers.pbs import launchers as pbs_launchers
from site_configs.schedulers.pbs.scheduler import PBS
from site_configs.schedulers.slurm import launchers as slurm_launchers
from site_configs.schedulers.slurm import scheduler as slurm

SLURM = replace(slurm.SLURM, mpi_types=("none", "cray_shasta", "pmi2"))
PLAIN_SLURM = replace(slurm.SLURM, mpi_types=("none",))
OWN = "/opt/mpi/bin/mpiexec"


def mpi(family: str, mpiexec: str = OWN, module: str = "") -> Mpi:
    return Mpi(f"{family}-1", family, "1", "", "path", "/opt/mpi", "/opt/mpi/bin/mpicc", mpiexec, module)


@pytest.mark.parametrize(
    ("scheduler", "family", "launcher"),
    [
        (SLURM, "openmpi", ("/opt/mpi/bin/mpirun",)),
        (SLURM, "mpich", slurm_launchers.SRUN_PMI2),
        (SLURM, "mvapich", slurm_launchers.SRUN_PMI2),
        (SLURM, "intel-mpi", (OWN,)),
        (SLURM, "cray-mpich", slurm_launchers.SRUN_CRAY),
        (PLAIN_SLURM, "mpich", (OWN,)),
        (PLAIN_SLURM, "cray-mpich", slurm_launchers.SRUN),
        (PBS, "openmpi", (OWN,)),
        (PBS, "cray-mpich", pbs_launchers.PALS),
        (LOCAL, "mpich", (OWN,)),
        (replace(SLURM, title="another name"), "mpich", slurm_launchers.SRUN_PMI2),
        (replace(PBS, title="Slurm"), "mpich", (OWN,)),
    ],
)
def test_pairings(scheduler: Scheduler, family: str, launcher: str | tuple[str, ...]):
    pair = scheduler.choose_launcher(mpi(family))
    assert pair.launcher == launcher and pair.why


def test_the_launcher_of_a_module_is_found_once_it_is_loaded():
    assert SLURM.choose_launcher(mpi("openmpi", module="openmpi/5")).launcher == ("mpirun",)
    assert PBS.choose_launcher(mpi("mpich", module="mpich/4")).launcher == ("mpiexec",)


def test_a_launcher_keeps_the_suffix_of_its_mpi():
    debian = mpi("openmpi", "/usr/bin/mpiexec.openmpi")
    assert SLURM.choose_launcher(debian).launcher == ("/usr/bin/mpirun.openmpi",)
