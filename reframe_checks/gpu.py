"""Routines of Luecke et al. with buffers on GPUs, one rank per GPU, and the same on the host.

They are measured on partitions that declare GPUs (``gpus=``, or ReFrame's ``devices``), with environments whose
MPI accepts their memory (``gpu=``).
"""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from postprocess.model.case import Case
from postprocess.model.gpu import BYTES, GPU
from postprocess.model.plan import PlannedLaunch, SkippedCase
from postprocess.model.routines.mpicost import WARM
from reframe_checks.common.layouts import list_gpu_layouts_on, list_on_all_partitions
from reframe_checks.common.mpicost import MpicostCheck
from site_configs.topology.gpus import Gpus
from site_configs.topology.layouts import Layout


@rfm.simple_test
class gpu(MpicostCheck):
    """Each routine by the place of its buffers: ``bcast.DD`` on GPUs, ``pingpong.DH`` from a GPU to a host."""

    descr = "MPI calls on the memory of GPUs"
    program = GPU
    table = {name: list(sizes) for name, sizes in BYTES.items()}
    layout = parameter(list_on_all_partitions(list_gpu_layouts_on))
    cache = WARM  # nothing cools the caches of a GPU
    site_variables = tuple(name for name in MpicostCheck.site_variables if name != "cache")

    def layouts_on(self, part) -> list[Layout]:
        return list_gpu_layouts_on(part)

    @property
    def gpus(self) -> Gpus:
        """The GPUs of each node; without GPUs nothing is measured."""
        assert self.facts.gpus is not None
        return self.facts.gpus

    @run_after("setup")
    def ask_for_gpus(self):
        """Request one GPU per rank from the scheduler."""
        self.num_gpus_per_node = self.num_tasks_per_node

    def explain_impossible(self, case: Case) -> SkippedCase | None:
        """Explain why a case cannot be timed; one reason is an MPI not declared to accept GPU memory."""
        kind = self.gpus.kind
        if self.environment_facts.gpu == kind:
            return super().explain_impossible(case)
        reason = (
            f"its MPI is not said to take memory of GPUs (gpu={kind!r} of the environment in the site file)"
        )
        return SkippedCase(case, reason, unavailable=True)

    def planned_launch(self, **more) -> PlannedLaunch:
        return super().planned_launch(**more, gpu=self.gpus.kind)

    def options_of(self, launch: PlannedLaunch) -> list[str]:
        """Return the options of mpicost, with the kind of the GPUs and the rank of each."""
        chosen = self.gpus.choose(self.num_tasks_per_node)
        numbers = [f"--devices={chosen}"] if chosen else []
        return [*super().options_of(launch), f"--device={launch.gpu}", *numbers]
