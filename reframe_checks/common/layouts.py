"""Choose the layouts that are measured, on a site and on each of its partitions."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from reframe.core.runtime import runtime

from reframe_checks.common.user_options import select_layouts
from site_configs.schema.facts import PartitionFacts
from site_configs.schema.reframe_request import current_request
from site_configs.topology.gpus import list_gpu_layouts
from site_configs.topology.layouts import Layout, list_kernel_layouts

NOWHERE = "1x1"  #: layout of a partition that measures none, because a parameter must have a value


def list_kernel_layouts_on(part) -> list[Layout]:
    """List the layouts of the application kernels on a partition; if cores are unknown, one that fails."""
    facts = PartitionFacts.of_partition(part)
    if not facts.cores_per_node:
        return [Layout(1, 1)]
    kernel_layouts = tuple(list_kernel_layouts(facts.cores_per_node, facts.nodes, count_usable_threads(facts)))
    return select_layouts(part.name, replace(facts, layouts=kernel_layouts))


def count_usable_threads(facts: PartitionFacts) -> int:
    """Count the hardware threads of a core to which ranks can be bound: ``--oversubscribe`` binds none."""
    return 1 if current_request().oversubscribe else facts.threads_per_core


def list_gpu_layouts_on(part) -> list[Layout]:
    """List the layouts with one rank per GPU on a partition; empty if it declares no GPUs."""
    facts = PartitionFacts.of_partition(part)
    if facts.gpus is None or facts.exact or not facts.cores_per_node:
        return []
    gpu_layouts = tuple(list_gpu_layouts(facts.gpus, facts.cores_per_node, facts.nodes))
    chosen = select_layouts(part.name, replace(facts, layouts=gpu_layouts))
    return [layout for layout in chosen if layout.per_node <= facts.gpus.per_node]


def list_pair_layouts_on(part) -> list[Layout]:
    """List the layout of two ranks on a node, if a partition can have it and no other was chosen."""
    facts = PartitionFacts.of_partition(part)
    pair = Layout(2, 2)
    if facts.cores_per_node < 2 and not current_request().oversubscribe:
        return []
    return [layout for layout in select_layouts(part.name, replace(facts, layouts=(pair,))) if layout == pair]


def list_on_all_partitions(list_on: Callable[[Any], list[Layout]]) -> list[str]:
    """List every layout that a function returns for some partition of this site."""
    layouts = sorted({layout for part in runtime().system.partitions for layout in list_on(part)})
    return [str(layout) for layout in layouts] or [NOWHERE]


def list_measured_layouts() -> list[str]:
    """List every layout that is measured on some partition of this site, as ``4x2``.

    :raises ValueError: if there is none, and nothing was asked for that could be reported as missing.
    """
    parts = {part.name: PartitionFacts.of_partition(part) for part in runtime().system.partitions}
    layouts = sorted({layout for part in parts.items() for layout in select_layouts(*part)})
    if not all(facts.cores_per_node for facts in parts.values()):
        return [*map(str, layouts), NOWHERE]  # a test that fails there reports it
    if not layouts and not any(facts.layouts for facts in parts.values()):
        fix = "choose --processes, perhaps with --oversubscribe, or look at taskset if there are more"
        raise ValueError(f"one core is too few for any process count of the ladder: {fix}")
    return [str(layout) for layout in layouts] or [NOWHERE]


def list_layouts_on(part) -> list[Layout]:
    """List the layouts that are measured on a partition; if cores are unknown, one that fails."""
    facts = PartitionFacts.of_partition(part)
    unknown = [] if facts.cores_per_node else [Layout(1, 1)]
    return select_layouts(part.name, facts) or unknown
