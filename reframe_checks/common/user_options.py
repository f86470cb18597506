"""The choices of ``./plumbline``'s user, and the order of precedence for a variable of a check.

ReFrame's own ``--setvar`` is part of it. Alone it would not do: it complains about every test without the
variable, including build fixtures.
"""

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from postprocess.model.options import WANTED, check_choice
from site_configs.common import work_directory
from site_configs.schema.facts import PartitionFacts
from site_configs.schema.reframe_request import FILE, current_request
from site_configs.schema.variables import SESSION
from site_configs.topology.layouts import Layout

SOURCE = Path(__file__).resolve().parents[2]  #: root of Plumbline's sources


def is_in_session() -> bool:
    """Return whether ``./plumbline`` started ReFrame, rather than a user."""
    return bool(os.environ.get(SESSION))


def list_reference_roots() -> list[str]:
    """List the directories with references, in order of precedence."""
    beside = [str(SOURCE / "reference_data"), str(work_directory() / "references")]
    return current_request().references if is_in_session() else beside


def resolve(
    default: Any, *, outside: Any = None, user: Any = None, site: Any = None, references: Any = None
) -> Any:
    """Resolve the value of a variable: the first in this order that is not None.

    :param default: value of the check, if all others are None.
    :param outside: value from ``--setvar`` on ReFrame's command line.
    :param user: the choice of ``./plumbline``'s user.
    :param site: value of the partition (``defaults``).
    :param references: with which the references were measured.
    """
    values = (outside, user, site, references)
    return next((value for value in values if value is not None), default)


def read_choice(name: str, default: Any = None) -> Any:
    """Read the user's choice for a variable, or the default without one.

    :raises ValueError: if the session's request cannot be read, or contains an unknown variable.
    """
    return resolve(default, user=_choice(os.environ.get(SESSION, "")).get(name))


@functools.cache
def _choice(session: str) -> Mapping[str, Any]:
    """Return the choice of a session, checked once."""
    choice = current_request().choice
    try:
        check_choice(choice)
    except ValueError as error:
        raise ValueError(f"{Path(session, FILE)}: {error}; run the session again") from None
    return choice


def select_layouts(partition: str, facts: PartitionFacts) -> list[Layout]:
    """Select the layouts that are measured on a partition: its own, restricted by the user's choice.

    A requested count that is in none of them is measured all the same, on nodes as full as possible, if it
    fits.
    """
    if (wanted := read_choice(WANTED, None)) is not None:
        asked = {entry["layout"] for entry in wanted if entry["partition"] == partition}
        chosen = [Layout(*map(int, text.split("x"))) for text in asked]
        return sorted(layout for layout in chosen if is_layout_possible(layout, facts))
    partitions, counts = read_choice("partitions", None), read_choice("processes", None)
    if read_choice("boundaries", False):
        counts = list(dict.fromkeys([*(counts or ()), *facts.boundaries]))
    if partitions and partition not in partitions:
        return []
    per_node = read_choice("per_node", None)
    selected = [
        layout
        for layout in facts.layouts
        if (not counts or layout.processes in counts) and (not per_node or layout.per_node in per_node)
    ]
    for count in counts or []:
        there = {layout.per_node for layout in selected if layout.processes == count}
        wanted = per_node or ([] if there else [find_densest(count, facts)])
        chosen = [Layout(count, number) for number in wanted if number not in there]
        selected += [layout for layout in chosen if is_layout_possible(layout, facts)]
    return sorted(selected)


def find_densest(count: int, facts: PartitionFacts) -> int:
    """Return the processes per node of the fullest nodes; beyond the cores only if oversubscribed."""
    return min(count, max(facts.cores_per_node, -(-count // facts.nodes)))


def is_layout_possible(layout: Layout, facts: PartitionFacts) -> bool:
    """Return whether the partition has the nodes for a layout, and the cores unless oversubscribed."""
    cores, most = facts.cores_per_node, facts.most_processes
    crowded = layout.per_node > cores and most <= cores * facts.nodes
    return (
        layout.per_node <= layout.processes <= most
        and len(layout.ranks_per_host) <= facts.nodes
        and not crowded
    )
