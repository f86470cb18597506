"""Machines as ``site new`` may find them, and site files that come of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from site_configs.generate.survey import MachineSurvey
from site_configs.generate.write import render_site_file
from site_configs.mpi.family import Mpi
from site_configs.mpi.login_node import LoginMpis
from site_configs.schedulers.module_systems import ModuleSystem
from site_configs.schedulers.pbs import PBS as PBS_SCHEDULER
from site_configs.schedulers.slurm import SLURM
from site_configs.topology.machine import Machine
from tests.support.factories.scheduler import answering

WORK = Path("/shared/plumbline")
OPENMPI = Mpi(
    name="openmpi-5_0_3",
    family="openmpi",
    version="5.0.3",
    library="Open MPI v5.0.3, package: Open MPI root@build Distribution, ident: 5.0.3",
    origin="module",
    prefix="/sw/openmpi/5.0.3",
    mpicc="/sw/openmpi/5.0.3/bin/mpicc",
    mpiexec="/sw/openmpi/5.0.3/bin/mpiexec",
    module="openmpi/5.0.3",
)
MPICH = Mpi(
    name="mpich-5_0_2",
    family="mpich",
    version="5.0.2",
    library="MPICH Version: 5.0.2 MPICH Release date: today",
    origin="wheel",
    prefix=str(WORK / "mpi/mpich-5.0.2"),
    mpicc=str(WORK / "mpi/mpich-5.0.2/bin/mpicc"),
    mpiexec=str(WORK / "mpi/mpich-5.0.2/bin/mpiexec"),
    env={"HYDRA_BINDING": "core"},
)
CRAY_MPICH = Mpi(
    name="cray-mpich-8_1_28_15",
    family="cray-mpich",
    version="8.1.28.15",
    library="MPI VERSION    : CRAY MPICH version 8.1.28.15 (ANL base 3.4a2)",
    origin="Cray's programming environment",
    prefix="/opt/cray",
    mpicc="/opt/cray/pe/craype/2.7/bin/cc",
    mpiexec="srun",
)
PLAIN = MachineSurvey(
    host="login03.example.org",
    date="2026-11-21",
    machine=Machine("login03", "A processor", "6.1", 16, 32, 2, 64 * 10**9, ()),
    scheduler=None,
    modules=ModuleSystem("lmod", "LMOD_CMD is set"),
    mpis=LoginMpis((OPENMPI, MPICH), ()),
)


def slurm(outputs: dict[str, str], *mpis: Mpi, **changes: Any) -> MachineSurvey:
    """A machine on which Slurm's commands print this."""
    found = SLURM.read(answering(outputs))
    return replace(PLAIN, scheduler=found, mpis=LoginMpis(mpis, ()), **changes)


def pbs(outputs: dict[str, str], *mpis: Mpi, **changes: Any) -> MachineSurvey:
    """A machine on which PBS's commands print this."""
    found = PBS_SCHEDULER.read(answering(outputs))
    return replace(PLAIN, scheduler=found, mpis=LoginMpis(mpis, ()), **changes)


def text_of(facts: MachineSurvey, name: str = "mine") -> str:
    """The site file of a machine."""
    return render_site_file(facts, name, name, WORK)
