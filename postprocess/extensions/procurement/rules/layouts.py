"""Layouts by name: what ``nodes`` and ``per_node`` of a case mean on a machine."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from postprocess.extensions.procurement.rules.rules_data import RuleCase
from site_configs.topology.layouts import Layout

SHARE = re.compile(r"([0-9]{1,3})%")
NEAREST, FARTHEST = "nearest pair", "farthest pair"
NODES = ("one", "two", "all", NEAREST, FARTHEST)
PER_NODE = ("one", "two", "nic", "core")
WORDS = {"one": 1, "two": 2}


@dataclass(frozen=True)
class MachineFacts:
    """What layouts rest on: one partition of a site."""

    partition: str
    nodes: int
    cores_per_node: int
    nics_per_node: int = 1
    most_processes: int = 10**9
    exact: bool = False  #: whether its time is simulated


@dataclass(frozen=True)
class AskedLayout:
    """A layout on a machine, or why it has none."""

    layout: Layout | None
    peer: int = 0  #: the partner of rank 0, where a pair of nodes was asked for
    problem: str = ""


def find_layout_fault(case: RuleCase) -> str:
    """Find what is wrong with the words of a layout, on whatever machine; empty if nothing is."""
    if problem := _find_word_fault(case.nodes, NODES):
        return f"nodes: {problem}"
    if problem := _find_word_fault(case.per_node, PER_NODE):
        return f"per_node: {problem}"
    if case.nodes in (NEAREST, FARTHEST):
        if case.program != "mpicost" or case.routine != "pingpong":
            return (
                f"nodes: {case.nodes}: {case.program} {case.routine} cannot choose its pair; "
                "take pingpong of mpicost, or two"
            )
        if case.per_node != "one":
            return f"per_node: a {case.nodes} has one process a node; write one"
    return ""


def _find_word_fault(word: str | int, words: tuple[str, ...]) -> str:
    if isinstance(word, int) or word in words:
        return ""
    share = SHARE.fullmatch(word)
    if share and 1 <= int(share[1]) <= 100:
        return ""
    return f"{word!r} is none of {', '.join(words)}, a share as 95%, or a number"


def resolve_layout(case: RuleCase, machine: MachineFacts) -> AskedLayout:
    """Return the layout of a case on a machine; shares are rounded up, and to an even number of processes."""
    pair = case.nodes in (NEAREST, FARTHEST)
    nodes = machine.nodes if pair else _count(case.nodes, machine.nodes)
    cores = machine.cores_per_node
    per_node = machine.nics_per_node if case.per_node == "nic" else _count(case.per_node, cores)
    if pair and nodes < 2:
        return AskedLayout(None, problem=f"a {case.nodes} needs 2 nodes, and there is 1")
    if nodes > machine.nodes:
        return AskedLayout(None, problem=f"it needs {nodes} nodes, and there are {machine.nodes}")
    if nodes * per_node % 2 and per_node < cores and SHARE.fullmatch(str(case.per_node)):
        per_node += 1
    if per_node > cores:
        return AskedLayout(None, problem=f"it needs {per_node} cores a node, and there are {cores}")
    processes = nodes * per_node
    if processes < 2:
        return AskedLayout(None, problem="it is a single process")
    if processes > machine.most_processes:
        most = machine.most_processes
        return AskedLayout(None, problem=f"it needs {processes} processes, and {most} are possible")
    peer = 0
    if pair:
        peer = 1 if case.nodes == NEAREST else nodes - 1
    elif case.program == "mpicost" and case.routine == "pingpong":
        peer = processes - 1
    return AskedLayout(Layout(processes, per_node), peer)


def find_nodes_fault(word: str | int) -> str:
    """Find what is wrong with a word for a number of nodes; empty if nothing is."""
    return _find_word_fault(word, ("all", *WORDS))


def count_nodes(word: str | int, machine: MachineFacts) -> int:
    """Count the nodes of a machine that a word asks for; it may have fewer."""
    return _count(word, machine.nodes)


def _count(word: str | int, whole: int) -> int:
    if isinstance(word, int):
        return word
    if word in ("all", "core"):
        return whole
    if word in WORDS:
        return WORDS[word]
    share = SHARE.fullmatch(word)
    assert share
    return math.ceil(int(share[1]) * whole / 100)
