"""Slurm for site files: ``from site_configs import slurm`` gives the backend and the launchers."""

from site_configs.schedulers.slurm_backend import SCHEDULER, SRUN, SRUN_CRAY, SRUN_PMI2, SRUN_PMIX

__all__ = ["SCHEDULER", "SRUN", "SRUN_CRAY", "SRUN_PMI2", "SRUN_PMIX"]
