"""What rules ask for on one machine: rows with their layouts, and what a pass has to measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postprocess.extensions.procurement.rules.layouts import (
    AskedLayout,
    MachineFacts,
    resolve_layout,
)
from postprocess.extensions.procurement.rules.rules_data import RuleCase, Rules
from postprocess.model.case import Case
from postprocess.model.options import (
    CACHE_STATE,
    ITERATION_COUNT,
    PARTITION,
    TIME_LIMIT,
    TRIAL_COUNT,
)
from postprocess.model.routines.mpicost import OWN_PROGRAM, find_routine
from postprocess.model.wanted import WantedRoutine, build_wanted_choice


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
        return [each for each in self.cases if each.asked.layout]

    @property
    def impossible(self) -> list[AskedCase]:
        """Those that it cannot, each with its problem."""
        return [each for each in self.cases if not each.asked.layout]

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


def build_offer_choice(
    rules: Rules, plan: OfferPlan, names: Sequence[str] | None = None
) -> Mapping[str, Any]:
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
