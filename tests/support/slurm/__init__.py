"""A Slurm cluster on one machine, for tests: see ``cluster.py``; by hand ``python -m tests.support.slurm``."""

from .availability import Unavailable, reason_not_here
from .cluster import Cluster
from .fixture import cluster_or_skip

__all__ = ["Cluster", "Unavailable", "cluster_or_skip", "reason_not_here"]
