"""PBS and Torque for site files: ``from site_configs import pbs`` gives the backends and Cray's launcher."""

from site_configs.schedulers.pbs_backend import PALS, SCHEDULER, TORQUE

__all__ = ["PALS", "SCHEDULER", "TORQUE"]
