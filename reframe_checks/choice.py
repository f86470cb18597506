"""What the user of ``./plumbline`` chose, as defaults of the checks' variables.

ReFrame's ``--setvar`` still wins. It alone would not do: it complains of every test, build fixtures
included, that does not have the variable.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from site_configs.ladder import Layout

CHOICE = "PLUMBLINE_CHOICE"


def chosen(name: str, default: Any) -> Any:
    """The user's choice for a variable, or the default where none was made."""
    return json.loads(os.environ.get(CHOICE, "{}")).get(name, default)


def chosen_layouts(partition: str, extras: Mapping[str, Any]) -> list[Layout]:
    """The layouts that are measured on a partition: its own, of which the user may have chosen some.

    A count that was asked for and is in none of them is measured all the same, on nodes as full as
    they get, if it fits.
    """
    partitions, counts = chosen("partitions", None), chosen("processes", None)
    if partitions and partition not in partitions:
        return []
    per_node = chosen("per_node", None)
    own = [Layout(*layout) for layout in extras["layouts"]]
    found = [
        layout
        for layout in own
        if (not counts or layout.processes in counts)
        and (not per_node or layout.per_node in per_node)
    ]
    for count in counts or []:
        there = {layout.per_node for layout in found if layout.processes == count}
        wanted = per_node or ([] if there else [densest(count, extras)])
        asked = (Layout(count, number) for number in wanted if number not in there)
        found += [layout for layout in asked if fits(layout, extras)]
    return sorted(found)


def densest(count: int, extras: Mapping[str, Any]) -> int:
    """Processes per node when nodes are as full as they get; beyond the cores only if oversubscribed."""
    return min(count, max(extras["cores_per_node"], -(-count // extras["nodes"])))


def fits(layout: Layout, extras: Mapping[str, Any]) -> bool:
    """Whether the partition has the nodes for a layout, and the cores or leave to do without."""
    cores, nodes, most = (extras[key] for key in ("cores_per_node", "nodes", "most_processes"))
    crowded = layout.per_node > cores and most <= cores * nodes
    return (
        layout.per_node <= layout.processes <= most
        and len(layout.ranks_per_host) <= nodes
        and not crowded
    )


def within(limits: Mapping[str, int], routine: str, size: int, processes: int) -> bool:
    """Whether a site's limits on processes, of a routine (``scan_min``) or of one at a size
    (``alltoall:1000``), let it be measured at so many."""
    return all(processes <= limits.get(key, processes) for key in (routine, f"{routine}:{size}"))


def unknown_limits(
    limits: Mapping[str, int], tables: Sequence[Mapping[str, Sequence[int]]]
) -> Iterator[tuple[str, set[str]]]:
    """The keys of a site's limits that no check has, each with those to choose from: they would limit nothing.

    :param tables: sizes in bytes of the routines that a check measures, of each check.
    """
    routines = {name for table in tables for name in table}
    sized = {
        f"{name}:{size}" for table in tables for name, sizes in table.items() for size in sizes
    }
    for key in limits:
        if key not in routines | sized:
            own = {each for each in sized if each.startswith(f"{key.partition(':')[0]}:")}
            yield key, own or routines
