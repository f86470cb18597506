"""Slurm as layouts need it: ``from site_configs import slurm`` gives a site file its backend and launchers.

The backend asks for whole nodes, each with as many processes as the layout puts on one. In such a job an MPI's
own launcher (``["mpirun"]``, ``["mpiexec"]``) fills node after node by itself. ``srun`` does not (nine
processes, four per node, become 3 + 3 + 3), and so is told; and it must be told how the processes of an MPI
find each other, or it starts many worlds of one process, each of which ends well.
"""

from __future__ import annotations

from typing import Any

from reframe.core.backends import register_launcher
from reframe.core.launchers import JobLauncher

from site_configs.schedulers.slurm.backend import read_outage_limit
from site_configs.schedulers.slurm.scheduler import SCHEDULER, SRUN, SRUN_CRAY, SRUN_PMI2, SRUN_PMIX

__all__ = ["SCHEDULER", "SRUN", "SRUN_CRAY", "SRUN_PMI2", "SRUN_PMIX"]

read_outage_limit()  # a mistake in it must be told with the site file, not in the middle of an outage


@register_launcher(SRUN)
class BlockSrun(JobLauncher):
    """Slurm's launcher, node after node, each process bound to a core; several on a core to its threads."""

    binds_to_threads = True
    kind = ""  #: of MPI, in the words of ``srun --mpi=list``

    def command(self, job: Any) -> list[str]:
        """Return the launch line up to the program."""
        nodes = -(-job.num_tasks // job.num_tasks_per_node)
        counts = [f"--nodes={nodes}", f"--ntasks={job.num_tasks}"]
        kind = [f"--mpi={self.kind}"] if self.kind else []
        layout = f"--distribution=plane={job.num_tasks_per_node}"
        unit = "threads" if (job.num_tasks_per_core or 1) > 1 else "cores"
        return ["srun", *kind, *counts, layout, f"--cpu-bind={unit}"]


@register_launcher(SRUN_PMI2)
class Pmi2Srun(BlockSrun):
    """For MPICH."""

    kind = "pmi2"


@register_launcher(SRUN_PMIX)
class PmixSrun(BlockSrun):
    """For MPIs that were built with PMIx."""

    kind = "pmix"


@register_launcher(SRUN_CRAY)
class CraySrun(BlockSrun):
    """For Cray's MPI."""

    kind = "cray_shasta"
