"""What the user of ``./plumbline`` chose, as defaults of the checks' variables.

ReFrame's ``--setvar`` still wins. It alone would not do: it complains of every test, build fixtures
included, that does not have the variable.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from postprocess.model.options import KINDS, check_choice
from site_configs.schema.reframe_request import FILE, asked
from site_configs.schema.variables import SESSION
from site_configs.topology.layouts import Layout


def chosen(name: str, default: Any) -> Any:
    """The user's choice for a variable, or the default where none was made.

    :raises ValueError: if the session's request cannot be read, or holds what no check knows.
    """
    if name not in KINDS:
        raise ValueError(
            f"{name}: nothing of this name can be chosen; add it to the table of options"
        )
    return _choice(os.environ.get(SESSION, "")).get(name, default)


@functools.cache
def _choice(session: str) -> Mapping[str, Any]:
    """The choice of a session, checked once."""
    choice = asked().choice
    try:
        check_choice(choice)
    except ValueError as error:
        raise ValueError(f"{Path(session, FILE)}: {error}; run the session again") from None
    return choice


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
