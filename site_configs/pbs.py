"""PBS with whole nodes per layout, and Cray's launcher under it: ``from site_configs import pbs``.

ReFrame asks PBS for as many nodes as processes fill. A layout whose last node is not full (65 processes, 64 per
node) needs one more.
"""

import re
from typing import Any

from reframe.core.backends import register_launcher, register_scheduler
from reframe.core.launchers import JobLauncher
from reframe.core.schedulers.pbs import PbsJobScheduler, TorqueJobScheduler

from site_configs.schedulers.base import PALS
from site_configs.schedulers.pbs import SCHEDULER, TORQUE

__all__ = ["PALS", "SCHEDULER", "TORQUE"]

NODES = re.compile(r"(-l (?:select|nodes)=)\d+")


def request_all_nodes(lines: list[str], processes: int, per_node: int) -> list[str]:
    """Return a job script's head that also requests a partly filled node."""
    return [NODES.sub(rf"\g<1>{-(-processes // per_node)}", line) for line in lines]


@register_scheduler(SCHEDULER)
class BlockPbs(PbsJobScheduler):
    def emit_preamble(self, job: Any) -> list[str]:
        return request_all_nodes(super().emit_preamble(job), job.num_tasks, job.num_tasks_per_node)


@register_scheduler(TORQUE)
class BlockTorque(TorqueJobScheduler):
    def emit_preamble(self, job: Any) -> list[str]:
        return request_all_nodes(super().emit_preamble(job), job.num_tasks, job.num_tasks_per_node)


@register_launcher(PALS)
class PalsLauncher(JobLauncher):
    """Cray's Parallel Application Launch Service, which gets the number of processes per node."""

    binds_to_threads = True

    def command(self, job: Any) -> list[str]:
        """Return the launch line up to the program; each process is bound to a core or a hardware thread."""
        counts = ["-n", str(job.num_tasks), "--ppn", str(job.num_tasks_per_node)]
        unit = "thread" if (job.num_tasks_per_core or 1) > 1 else "core"
        return ["mpiexec", *counts, "--cpu-bind", unit]
