"""What is wrong with rules: each fault with its line, key and fix."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postprocess.base import files
from postprocess.base.documents.records import parse_record
from postprocess.base.documents.toml_files import find_line, parse_toml
from postprocess.base.errors import UsageError
from postprocess.extensions.procurement.rules.rules_data import (
    BASELINE,
    SCHEMA,
    TOLD,
    AskedLayout,
    MachineFacts,
    RuleCase,
    RuleFault,
    Rules,
    find_layout_fault,
    find_nodes_fault,
    parse_quantity,
    resolve_layout,
)
from postprocess.model.case import NAME, Case
from postprocess.model.options import (
    CACHE_STATE,
    ITERATION_COUNT,
    PARTITION,
    TIME_LIMIT,
    TRIAL_COUNT,
    WantedRoutine,
    build_wanted_choice,
)
from postprocess.model.routines.kernels import BYTES, KERNELS
from postprocess.model.routines.mpicost import OWN_PROGRAM, ROUTINES, TOURNAMENT, find_routine
from postprocess.stats.procurement.acceptance import LEAST_LAUNCHES
from site_configs.mpi.family import FAMILIES


@dataclass(frozen=True)
class AskedCase:
    """A case of the rules on a machine."""

    case: RuleCase
    asked: AskedLayout

    def matches(self, measured: Case, size: int) -> bool:
        """Return whether a measured case is this one at a size, with whichever MPI."""
        layout = self.asked.layout
        if layout is None or measured.layout != str(layout):
            return False
        if (measured.program, measured.routine) != (self.case.program, self.case.routine):
            return False
        plays = measured.program == OWN_PROGRAM and find_routine(measured.routine).in_pairs
        return measured.bytes == size and (not plays or measured.peer == self.asked.peer)


@dataclass(frozen=True)
class OfferPlan:
    """All cases of rules on a machine."""

    machine: MachineFacts
    cases: tuple[AskedCase, ...]

    @property
    def possible(self) -> list[AskedCase]:
        """Those that the machine can measure."""
        return [case for case in self.cases if case.asked.layout]

    @property
    def impossible(self) -> list[AskedCase]:
        """Those that it cannot, each with its problem."""
        return [case for case in self.cases if not case.asked.layout]

    def find(self, name: str) -> AskedCase:
        """Find a case by its name."""
        return next(each for each in self.cases if each.case.name == name)

    def list_wanted(self, names: Sequence[str] | None = None) -> list[WantedRoutine]:
        """List what a pass has to measure; ``names`` restricts the cases."""
        return [
            WantedRoutine(
                each.case.program,
                self.machine.partition,
                str(each.asked.layout),
                each.case.routine,
                each.case.bytes,
                (each.asked.peer,) if each.asked.peer else (),
            )
            for each in self.possible
            if names is None or each.case.name in names
        ]


def plan_offer(rules: Rules, machine: MachineFacts) -> OfferPlan:
    """Plan rules on a machine."""
    found = (AskedCase(case, resolve_layout(case, machine)) for case in rules.case)
    return OfferPlan(machine, tuple(found))


def build_offer_choice(rules: Rules, plan: OfferPlan, names: Sequence[str] | None = None) -> Mapping[str, Any]:
    """Build the choice of a pass."""
    choice: dict[str, Any] = {PARTITION.variable: [plan.machine.partition]}
    choice |= build_wanted_choice(plan.list_wanted(names))
    counts = rules.iterations
    if OWN_PROGRAM in counts and not plan.machine.exact:
        choice[TRIAL_COUNT.variable] = counts["mpicost"]
    if others := [count for program, count in counts.items() if program != OWN_PROGRAM]:
        choice[ITERATION_COUNT.variable] = max(others)
    if rules.cache and not plan.machine.exact:
        choice[CACHE_STATE.variable] = rules.cache
    if rules.seconds_per_start:
        choice[TIME_LIMIT] = f"{rules.seconds_per_start}s"
    return choice


def count_needed_launches(rules: Rules, case: RuleCase, machine: MachineFacts) -> int:
    """Count the launches that a row needs: one in simulated time, which repeats."""
    return 1 if machine.exact else rules.launches_of(case)


NOT_A_NAME = "not a name (letters, digits, _ . + -)"
MPIS = ("any", *(name for name, _ in FAMILIES), "simgrid")
OWN = {routine.name: routine for routine in ROUTINES}


def read_rules(path: Path) -> Rules:
    """Read rules without a fault.

    :raises UsageError: for the first fault
    """
    rules, faults = lint_rules(path)
    if rules is None or faults:
        raise UsageError(faults[0].format(path))
    return rules


def lint_rules(path: Path) -> tuple[Rules | None, list[RuleFault]]:
    """Read rules, and find what is wrong with them; None where they cannot be read at all.

    :raises UsageError: if there is no such file
    """
    try:
        text = files.read_text(path)
    except OSError as error:
        fix = f"./plumbline offer new {path} writes one"
        raise UsageError(f"{path}: {error.strerror}; {fix}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is no UTF-8 text; write it as such") from None
    return lint_text(text)


def lint_text(text: str) -> tuple[Rules | None, list[RuleFault]]:
    """Read rules from their text as :func:`lint_rules` does."""
    try:
        told = parse_toml(text)
    except ValueError as error:
        line = re.search(r"at line (\d+)", str(error))
        return None, [RuleFault(int(line[1]) if line else 0, "", f"{error}; mend the TOML")]
    try:
        rules = parse_record(told, Rules, exact=True)
    except ValueError as error:
        key, _, what = str(error).partition(": ")
        fix = "docs/procurement.md has the keys"
        return None, [RuleFault(find_line(text, key), key, f"{what}; {fix}")]
    found = find_rule_faults(rules)
    return rules, [RuleFault(find_line(text, key), key, what) for key, what in found]


def find_rule_faults(rules: Rules) -> Iterator[tuple[str, str]]:
    """Find what is wrong with rules of the right types: the key of each fault, and what is wrong."""
    yield from find_head_faults(rules)
    names = [each.name for each in rules.case]
    for number, case in enumerate(rules.case):
        for key, what in find_case_faults(rules, case):
            yield f"case[{number}].{key}", what
        if case.name in names[:number]:
            yield f"case[{number}].name", f"{case.name} is there twice; choose another name"
    yield from find_reference_faults(rules)


def find_head_faults(rules: Rules) -> Iterator[tuple[str, str]]:
    """Find what is wrong with what holds for all cases."""
    if rules.schema != SCHEMA:
        yield "schema", f"is {rules.schema}, and this version knows {SCHEMA}; write {SCHEMA}"
    if words := [word for word in rules.tell if word not in TOLD]:
        yield "tell", f"{words[0]!r} is none of {', '.join(TOLD)}"
    if words := [word for word in rules.one_row_with if word not in MPIS[1:]]:
        yield "one_row_with", f"{words[0]!r} is no family of MPIs: {', '.join(MPIS[1:])}"
    if BASELINE not in rules.category:
        yield "category", "has no baseline; write [category.baseline]"
    for name in rules.category:
        if not NAME.fullmatch(name):
            yield f"category.{name}", f"is {NOT_A_NAME}"
    if rules.links and (problem := find_nodes_fault(rules.links.nodes)):
        yield "links.nodes", problem
    if rules.links and rules.links.nodes_per_switch < 0:
        yield "links.nodes_per_switch", "is below 0; write 0 where it is not known"
    if not any(each.demand == "must" for each in rules.case):
        yield "case", 'no case is a must; write demand = "must" for one'


def find_case_faults(rules: Rules, case: RuleCase) -> Iterator[tuple[str, str]]:
    """Find what is wrong with a case."""
    for key in ("name", "routine"):
        if not NAME.fullmatch(getattr(case, key)):
            yield key, f"is {NOT_A_NAME}"
    if len(set(case.bytes)) < len(case.bytes):
        yield "bytes", "has a size twice; write each once"
    if problem := find_layout_fault(case):
        key, _, what = problem.partition(": ")
        yield key, what
    if case.mpi not in MPIS:
        yield "mpi", f"{case.mpi!r} is none of {', '.join(MPIS)}"
    if case.program == OWN_PROGRAM:
        yield from find_own_faults(case)
    elif case.program == KERNELS:
        yield from find_kernel_faults(case)
    elif case.statistic == "p99":
        yield "statistic", f"{case.program} prints no 99th percentile; take median or worst"
    if case.limit and (problem := find_quantity_fault(case.limit)):
        yield "limit", problem
    yield from find_count_faults(rules, case)


def find_count_faults(rules: Rules, case: RuleCase) -> Iterator[tuple[str, str]]:
    """Find numbers of launches from which nothing follows."""
    launches, most = rules.launches_of(case), rules.risk.most_launches
    if launches < LEAST_LAUNCHES:
        fix = f"ask for {LEAST_LAUNCHES} or more"
        yield "launches", f"{launches} give no tolerance limit; {fix}"
    if most < launches:
        yield "launches", f"{launches} are more than risk.most_launches, {most}"


def find_quantity_fault(text: str) -> str:
    """Find why a text is no quantity; empty if it is one."""
    try:
        parse_quantity(text)
    except ValueError as error:
        return str(error)
    return ""


def find_own_faults(case: RuleCase) -> Iterator[tuple[str, str]]:
    """Find what is wrong with a case of mpicost, whose routines are known everywhere."""
    routine = OWN.get(case.routine)
    if routine is None or routine.name == TOURNAMENT or routine.control_bytes:
        yield "routine", f"{case.routine}: mpicost --list has no such routine to commit to"
        return
    if wrong := [size for size in case.bytes if not routine.has_size(size)]:
        yield "bytes", f"{wrong[0]} is no multiple of 8, and {case.routine} computes"
    if case.routine == "barrier" and case.bytes != (0,):
        yield "bytes", "a barrier has no payload; write [0]"
    elif case.routine != "barrier" and 0 in case.bytes:
        yield "bytes", "mpicost sends no empty messages; take pingpong of imb for 0"
    if case.better == "higher":
        yield "better", "mpicost measures times, of which lower is better"


def find_kernel_faults(case: RuleCase) -> Iterator[tuple[str, str]]:
    """Find what is wrong with a case of an application kernel, each of which has one size."""
    if case.routine not in BYTES:
        yield "routine", f"{case.routine}: is no kernel; one of {', '.join(BYTES)}"
    elif case.bytes != (BYTES[case.routine],):
        yield "bytes", f"{case.routine} has [{BYTES[case.routine]}]"
    if case.better == "higher":
        yield "better", "kernels are timed, and of times lower is better"


def find_reference_faults(rules: Rules) -> Iterator[tuple[str, str]]:
    """Find values of the buyer's system that belong to no row, or are none."""
    known = {(case.name, size) for case in rules.case for size in case.bytes}
    for number, each in enumerate(rules.reference):
        if (each.case, each.bytes) not in known:
            yield f"reference[{number}].case", f"no case {each.case} has {each.bytes} bytes"
        if problem := find_quantity_fault(each.value):
            yield f"reference[{number}].value", problem
