"""Layouts of rules on a machine, and what a pass over them chooses."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postprocess.extensions.procurement.rules.rules import FARTHEST, NEAREST, SHARE, WORDS, RuleCase, Rules
from postprocess.model import options
from postprocess.model.case import Case
from postprocess.model.routines.kernels import KERNELS
from postprocess.model.routines.mpicost import OWN_PROGRAM, find_routine
from site_configs.topology.layouts import Layout


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
class AskedCase:
    """A case of the rules on a machine."""

    case: RuleCase
    layout: Layout | None
    peer: int = 0  #: the partner of rank 0, where a pair of nodes was asked for
    problem: str = ""  #: why it has no layout

    def matches(self, measured: Case, size: int) -> bool:
        """Return whether a measured case is this one at a size, with whichever MPI."""
        if self.layout is None or measured.layout != str(self.layout):
            return False
        if (measured.program, measured.routine) != (self.case.program, self.case.routine):
            return False
        plays = measured.program == OWN_PROGRAM and find_routine(measured.routine).in_pairs
        return measured.bytes == size and (not plays or measured.peer == self.peer)


def resolve_layout(case: RuleCase, machine: MachineFacts) -> AskedCase:
    """Find the layout of a case on a machine; shares are rounded up, and to an even number of processes."""
    pair = case.nodes in (NEAREST, FARTHEST)
    nodes = machine.nodes if pair else _count(case.nodes, machine.nodes)
    cores = machine.cores_per_node
    per_node = machine.nics_per_node if case.per_node == "nic" else _count(case.per_node, cores)
    if nodes * per_node % 2 and per_node < cores and SHARE.fullmatch(str(case.per_node)):
        per_node += 1
    processes, most = nodes * per_node, machine.most_processes
    problem = ""
    if pair and nodes < 2:
        problem = f"a {case.nodes} needs 2 nodes, and there is 1"
    elif nodes > machine.nodes:
        problem = f"it needs {nodes} nodes, and there are {machine.nodes}"
    elif per_node > cores:
        problem = f"it needs {per_node} cores a node, and there are {cores}"
    elif processes < 2 and case.program != KERNELS:
        problem = "it is a single process"
    elif processes > most:
        problem = f"it needs {processes} processes, and {most} are possible"
    if problem:
        return AskedCase(case, None, problem=problem)
    peer = 0
    if pair:
        peer = 1 if case.nodes == NEAREST else nodes - 1
    elif case.program == "mpicost" and case.routine == "pingpong":
        peer = processes - 1
    return AskedCase(case, Layout(processes, per_node), peer)


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


@dataclass(frozen=True)
class OfferPlan:
    """All cases of rules on a machine."""

    machine: MachineFacts
    cases: tuple[AskedCase, ...]

    @property
    def possible(self) -> list[AskedCase]:
        """Those that the machine can measure."""
        return [case for case in self.cases if case.layout]

    @property
    def impossible(self) -> list[AskedCase]:
        """Those that it cannot, each with its problem."""
        return [case for case in self.cases if not case.layout]

    def list_wanted(self, names: Sequence[str] | None = None) -> list[options.WantedRoutine]:
        """List what a pass has to measure; ``names`` restricts the cases."""
        return [
            options.WantedRoutine(
                case.case.program,
                self.machine.partition,
                str(case.layout),
                case.case.routine,
                case.case.bytes,
                (case.peer,) if case.peer else (),
            )
            for case in self.possible
            if names is None or case.case.name in names
        ]


def plan_offer(rules: Rules, machine: MachineFacts) -> OfferPlan:
    return OfferPlan(machine, tuple(resolve_layout(case, machine) for case in rules.case))


def build_offer_choice(rules: Rules, plan: OfferPlan, names: Sequence[str] | None = None) -> Mapping[str, Any]:
    choice: dict[str, Any] = {options.PARTITION.variable: [plan.machine.partition]}
    choice |= options.build_wanted_choice(plan.list_wanted(names))
    counts = rules.iterations
    if OWN_PROGRAM in counts and not plan.machine.exact:
        choice[options.TRIAL_COUNT.variable] = counts["mpicost"]
    if others := [count for program, count in counts.items() if program != OWN_PROGRAM]:
        choice[options.ITERATION_COUNT.variable] = max(others)
    if rules.cache and not plan.machine.exact:
        choice[options.CACHE_STATE.variable] = rules.cache
    if rules.seconds_per_start:
        choice[options.TIME_LIMIT] = f"{rules.seconds_per_start}s"
    return choice


def count_needed_launches(rules: Rules, case: RuleCase, machine: MachineFacts) -> int:
    """Count the launches that a row needs: one in simulated time, which repeats."""
    return 1 if machine.exact else rules.launches_of(case)
