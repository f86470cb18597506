"""Format a calibration budget: noise sources, cost, and advice for the given seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from postprocess.base.formats import DASH, duration, format_percent, plural
from postprocess.model.case import LaunchPlace
from postprocess.model.reference import ENOUGH_LAUNCHES
from postprocess.model.routines.mpicost import PAPERS, program_sort_key
from postprocess.stats.planning.trial_allocation import (
    CalibrationSpending,
    KnownCase,
    LaunchCost,
    choose_median_trials,
)
from postprocess.stats.shrinkage import SIZES, group_of

HEAD = (
    *("program", "environment", "what", "cases"),
    *("launches differ by", "a trial by", "start", "a trial takes", "best trials"),
)
ALL = "all"


@dataclass(frozen=True)
class BudgetRow:
    """Cases that are alike. Spreads are standard deviations of ln headline, the median over the cases."""

    program: str
    environment: str
    what: str  #: a layout, a class of sizes, or all
    cases: int
    between: float
    trial: float
    cost: LaunchCost | None  #: None for a part of what a launch measures
    best: int | None  #: None for a program without trials

    @property
    def cells(self) -> tuple[str, ...]:
        """As a line of the table."""
        has_trials = self.best is not None
        return (
            self.program,
            self.environment,
            self.what,
            str(self.cases),
            format_percent(self.between),
            format_percent(self.trial) if has_trials else DASH,
            duration(self.cost.start) if self.cost else DASH,
            f"{self.cost.trial * 1e3:.3g} ms" if self.cost and has_trials else DASH,
            str(self.best) if has_trials else DASH,
        )


@dataclass(frozen=True)
class BudgetAdvice:
    """Advice for one program: the better way to spend the seconds, and the other one."""

    program: str
    chosen: CalibrationSpending
    other: CalibrationSpending | None  #: None for a program without trials
    #: As many launches on other days, where more of one session would not show as much
    days: CalibrationSpending | None = None


def build_budget_rows(
    known: Sequence[KnownCase], costs: Mapping[LaunchPlace, LaunchCost]
) -> list[BudgetRow]:
    """Build a row for each program and environment, then for each of its layouts and classes of sizes."""
    found = []
    for program in sorted({each.case.program for each in known}, key=program_sort_key):
        for environment in sorted({each.case.environment for each in known}):
            some = [
                each
                for each in known
                if (each.case.program, each.case.environment) == (program, environment)
            ]
            if some:
                found += build_part_rows(some, costs)
    return found


def build_part_rows(
    some: Sequence[KnownCase], costs: Mapping[LaunchPlace, LaunchCost]
) -> list[BudgetRow]:
    """Build the rows of one program and environment."""
    places = sorted({each.place for each in some})
    found = [
        build_budget_row(ALL, some, costs, sum_place_costs([costs[place] for place in places]))
    ]
    if len(places) > 1:
        found += [
            build_budget_row(
                f"{place.partition} {place.processes}x{place.per_node}",
                [e for e in some if e.place == place],
                costs,
                costs[place],
            )
            for place in places
        ]
    classes = sorted({group_of(each.case)[1] for each in some})
    if len(classes) > 1:
        found += [
            build_budget_row(
                SIZES[number],
                [each for each in some if group_of(each.case)[1] == number],
                costs,
                None,
            )
            for number in classes
        ]
    return found


def sum_place_costs(some: Sequence[LaunchCost]) -> LaunchCost:
    """Sum the cost of one launch of each place."""
    return LaunchCost(
        *(sum(getattr(each, part) for each in some) for part in ("start", "trial", "budget"))
    )


def build_budget_row(
    what: str,
    some: Sequence[KnownCase],
    costs: Mapping[LaunchPlace, LaunchCost],
    cost: LaunchCost | None,
) -> BudgetRow:
    """Build the row of these cases, all of one program and environment."""
    case = some[0].case
    between, trial = (
        float(np.sqrt(np.median([getattr(each.noise, part) for each in some])))
        for part in ("between", "trial")
    )
    best = choose_median_trials(some, costs) if case.program == "mpicost" else None
    return BudgetRow(case.program, case.environment, what, len(some), between, trial, cost, best)


def is_better_spending(one: CalibrationSpending, other: CalibrationSpending) -> bool:
    """Return whether one spending is more sensitive than another, or as sensitive and cheaper every night.

    Never where half of the cases see nothing: then the count of the papers is as good as any.
    """
    if one.sees is None:
        return False
    theirs = math.inf if other.sees is None else other.sees
    return (round(one.sees, 3), one.night_seconds) < (round(theirs, 3), other.night_seconds)


def describe_spending(each: CalibrationSpending, has_trials: bool) -> str:
    """Describe a way to spend the seconds, in words."""
    trials = f" of {each.trials} trials" if has_trials else ""
    sight = f"in half of the cases a slowdown of {format_percent(each.sees)} is detected"
    if each.sees is None:
        sight = "too few launches to detect more than gross changes in half of the cases"
    days = f", on {each.sessions} days" if each.sessions > 1 else ""
    return (
        f"{plural(each.launches, 'launch', 'es')}{trials} in {duration(each.seconds)}{days}, then "
        f"{describe_nights(each)}: {sight}"
    )


def describe_nights(each: CalibrationSpending) -> str:
    """Describe how many launches of each layout a night takes after a calibration, and how long."""
    fewest, most = each.night_launches
    counted = plural(most, "launch", "es") if fewest == most else f"{fewest} to {most} launches"
    where = f"{counted} of each layout" if most > 1 else "1 launch"
    return f"{where} a night ({duration(each.night_seconds)})"


def format_budget(advice: BudgetAdvice, site: str) -> list[str]:
    """Format both ways to spend, and the commands of the better one."""
    chosen, other = advice.chosen, advice.other
    found = [f"{advice.program}: {describe_spending(chosen, other is not None)}"]
    if other and other.trials != chosen.trials:
        found.append(f"{advice.program}: {describe_spending(other, True)}")
        if chosen.trials == PAPERS and chosen.sees is not None:
            found.append(
                f"{advice.program}: {other.trials} trials make a calibration of these seconds most precise, "
                f"but a night detects no more with them: stay with {PAPERS}"
            )
    if chosen.launches < ENOUGH_LAUNCHES:
        needed = duration(math.ceil(ENOUGH_LAUNCHES * chosen.pass_seconds))
        return [*found, f"{advice.program}: spend more, {ENOUGH_LAUNCHES} launches take {needed}"]
    found.append(f"{advice.program}: {'; then '.join(format_commands(advice, site))}")
    if advice.days:
        found.append(
            f"{advice.program}: more launches do not help here, more nights and other days do: "
            f"{describe_spending(advice.days, other is not None)}"
        )
    return found


def format_commands(advice: BudgetAdvice, site: str) -> list[str]:
    """Format the commands of a way to spend."""
    where = "" if site == "local" else f" --site {site}"
    trials = f" --trials {advice.chosen.trials}" if advice.other is not None else ""
    calibrate = f"./plumbline calibrate{where} --program {advice.program}{trials}"
    nightly = [f"./plumbline nightly{where}{trials}"] if trials else []
    chosen = advice.chosen
    days = (
        f" --at-most {math.ceil(chosen.launches / chosen.sessions)}" if chosen.sessions > 1 else ""
    )
    return [f"{calibrate} --launches {chosen.launches}{days}", *nightly]
