"""How launchers are told to bind ranks to hardware threads."""

from types import SimpleNamespace

import pytest
from reframe.core.backends import getlauncher

from site_configs import slurm
from site_configs.schedulers.base import find_thread_binding

SRUNS = (slurm.SRUN, slurm.SRUN_PMI2, slurm.SRUN_PMIX, slurm.SRUN_CRAY)


@pytest.mark.parametrize(
    ("family", "launcher", "words"),
    [
        ("openmpi", ["/opt/openmpi/bin/mpirun"], "--use-hwthread-cpus --map-by hwthread --bind-to hwthread"),
        ("mpich", ["apptainer", "exec", "/mpi.sif", "mpiexec"], "-bind-to hwthread"),
        ("mpich", "", "-bind-to hwthread"),
        ("intel-mpi", ["mpiexec"], ""),
        ("openmpi", "srun", "--cpu-bind=threads"),
        *(("mpich", name, "") for name in SRUNS),
    ],
)
def test_options_of_a_launcher(family: str, launcher, words: str):
    assert " ".join(find_thread_binding(family, launcher).options) == words


def test_intel_mpi_is_told_by_variables():
    variables = find_thread_binding("intel-mpi", ["mpiexec"]).variables
    assert (variables["I_MPI_PIN_CELL"], variables["I_MPI_PIN_DOMAIN"]) == ("unit", "1:compact")
    assert find_thread_binding("intel-mpi", "srun").variables == {}


@pytest.mark.parametrize(
    ("family", "launcher", "said"),
    [
        ("mpich", "ibrun", "how ibrun binds"),
        ("mvapich", ["mpirun_rsh"], "how the launcher of mvapich binds"),
        ("mpich", ["srun", "--mpi=pmi2"], "how the launcher of mpich binds"),
        ("openmpi", ["mpirun", "--bind-to", "core"], "says itself where ranks go: --bind-to"),
        ("cray-mpich", ["aprun", "--cpu-bind=cores"], "says itself where ranks go: --cpu-bind=cores"),
    ],
)
def test_a_launcher_of_which_nothing_is_known_says_so(family: str, launcher, said: str):
    with pytest.raises(ValueError, match=said):
        find_thread_binding(family, launcher)


@pytest.mark.parametrize("name", SRUNS)
def test_srun_binds_to_threads_where_a_core_has_several_ranks(name: str):
    job = SimpleNamespace(num_tasks=8, num_tasks_per_node=8, num_tasks_per_core=None)
    assert getlauncher(name)().command(job)[-1] == "--cpu-bind=cores"
    job.num_tasks_per_core = 2
    assert getlauncher(name)().command(job)[-1] == "--cpu-bind=threads"
