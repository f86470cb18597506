"""Tell what changed in the set-up of nodes since the last night, and which nodes differ from the others.

A governor, a boost that is off, a link at a lower rate or another firmware explain a slow night. ``mpicost``
and the witness read them on every node that a launch runs on.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from postprocess.base.documents.memory import recall, remember
from postprocess.base.formats import first_of
from postprocess.base.sanitize import sanitize_line
from postprocess.model.launch import FinishedLaunch

FILE = "node_facts.json"  #: in a work directory
MOST_NAMES = 4  #: of nodes in a line
MOST_LINES = 10  #: of each kind
LEAST_NODES = 3  #: of which most must be alike before one can differ from them
MOST_ALIKE = 2 / 3  #: the share of nodes from which on the others differ
ABSENT = "not told"
#: What the suite tells of a device whose port is up; RoCE, which any Ethernet card may have, is none
FABRIC = re.compile(r", port 1 4: ACTIVE, link InfiniBand\b")

Facts = Mapping[str, Mapping[str, str]]  #: value by name, by node


@dataclass(frozen=True)
class KnownNodes:
    """How each node was set up when it was last measured, and when that was."""

    schema: int = 1
    facts: dict[str, dict[str, str]] = field(default_factory=dict)  #: by "system:node"
    seen: dict[str, str] = field(default_factory=dict)  #: UTC, by "system:node"


def collect_node_facts(finished: Sequence[FinishedLaunch]) -> dict[str, dict[str, dict[str, str]]]:
    """Collect the facts of all nodes that launches ran on, by partition (``system:partition``) and node."""
    found: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    for run in finished:
        found[run.launch.partition] |= run.node_facts
    return found


def list_fabrics(nodes: Facts) -> list[str]:
    """List the InfiniBand and Omni-Path devices with a port that is up on every node."""
    active = [{name for name, told in facts.items() if FABRIC.search(told)} for facts in nodes.values()]
    return sorted(set.intersection(*active)) if active else []


def describe_node_facts(work: Path, finished: Sequence[FinishedLaunch], now: str) -> list[str]:
    """Describe what changed and what differs in lines, and remember how the nodes are set up now.

    :param work: the work directory
    :param now: when the session began, in UTC
    """
    told = collect_node_facts(finished)
    known = recall(work / FILE, KnownNodes)
    tonight = {
        f"{partition.partition(':')[0]}:{node}": facts
        for partition, nodes in told.items()
        for node, facts in nodes.items()
    }
    changes = [*describe_changes(known, tonight)]
    odd = [line for partition in sorted(told) for line in describe_odd_nodes(told[partition])]
    if tonight:
        facts, seen = known.facts | tonight, known.seen | dict.fromkeys(tonight, now)
        remember(work / FILE, KnownNodes(facts=facts, seen=seen))
    return [*shorten(changes), *shorten(odd)]


def describe_changes(known: KnownNodes, tonight: Facts) -> Iterator[str]:
    """Describe the facts that nodes had otherwise when they were last measured, equal changes in one line."""
    changed: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for node in sorted(tonight.keys() & known.facts.keys()):
        then, here = known.facts[node], tonight[node]
        for name in sorted(then.keys() | here.keys()):
            before, now = then.get(name, ABSENT), here.get(name, ABSENT)
            if before != now:
                changed[name, before, now].append(node)
    for (name, before, now), nodes in changed.items():
        last = max(known.seen.get(node, "") for node in nodes)
        when = f" on {last[:10]}" if last else " before"
        names = first_of([node.partition(":")[2] for node in nodes], MOST_NAMES)
        yield sanitize_line(f"{name} of {names} is {now}, and was {before}{when}")


def describe_odd_nodes(nodes: Facts) -> Iterator[str]:
    """Describe the nodes of a partition that differ from most others, equal differences in one line."""
    if len(nodes) < LEAST_NODES:
        return
    for name in sorted({name for facts in nodes.values() for name in facts}):
        values = {node: facts.get(name, ABSENT) for node, facts in nodes.items()}
        usual, count = Counter(values.values()).most_common(1)[0]
        if not MOST_ALIKE * len(nodes) <= count < len(nodes):
            continue
        for value in sorted(set(values.values()) - {usual}):
            names = first_of(sorted(node for node in values if values[node] == value), MOST_NAMES)
            yield sanitize_line(f"{name} of {names} is {value}; most other nodes have {usual}")


def shorten(lines: Sequence[str]) -> list[str]:
    """Leave out what is beyond the most lines that one reads, and say so."""
    left = len(lines) - MOST_LINES
    more = [f"and {left} more such facts in {FILE}"] if left > 0 else []
    return [*lines[:MOST_LINES], *more]
