"""Format a calibration budget: noise sources, cost, and advice for the given seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from postprocess.base.formats import DASH, duration, percent, plural
from postprocess.model.case import LaunchPlace
from postprocess.model.mpicost import PAPERS, program_order
from postprocess.model.reference import ENOUGH_LAUNCHES
from postprocess.stats.shrinkage import SIZES, kin
from postprocess.stats.trial_allocation import Cost, Known, Spending, median_trials

HEAD = (
    *("program", "environment", "what", "cases"),
    *("launches differ by", "a trial by", "start", "a trial takes", "best trials"),
)
ALL = "all"


@dataclass(frozen=True)
class Row:
    """Cases that are alike. Spreads are standard deviations of ln headline, the median over the cases."""

    program: str
    environment: str
    what: str  #: a layout, a class of sizes, or all
    cases: int
    between: float
    trial: float
    cost: Cost | None  #: None for a part of what a launch measures
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
            percent(self.between),
            percent(self.trial) if has_trials else DASH,
            duration(self.cost.start) if self.cost else DASH,
            f"{self.cost.trial * 1e3:.3g} ms" if self.cost and has_trials else DASH,
            str(self.best) if has_trials else DASH,
        )


@dataclass(frozen=True)
class Advice:
    """What to do for one program: the better of the two ways to spend the seconds, and the other."""

    program: str
    chosen: Spending
    other: Spending | None  #: None for a program without trials


def rows(known: Sequence[Known], costs: Mapping[LaunchPlace, Cost]) -> list[Row]:
    """A row for each program and environment, then its layouts and its classes of sizes if they are several."""
    found = []
    for program in sorted({each.case.program for each in known}, key=program_order):
        for environment in sorted({each.case.environment for each in known}):
            some = [
                each
                for each in known
                if (each.case.program, each.case.environment) == (program, environment)
            ]
            if some:
                found += parts(some, costs)
    return found


def parts(some: Sequence[Known], costs: Mapping[LaunchPlace, Cost]) -> list[Row]:
    """The rows of one program and environment."""
    places = sorted({each.place for each in some})
    found = [row(ALL, some, costs, together([costs[place] for place in places]))]
    if len(places) > 1:
        found += [
            row(
                f"{place.partition} {place.processes}x{place.per_node}",
                [e for e in some if e.place == place],
                costs,
                costs[place],
            )
            for place in places
        ]
    classes = sorted({kin(each.case)[1] for each in some})
    if len(classes) > 1:
        found += [
            row(SIZES[number], [each for each in some if kin(each.case)[1] == number], costs, None)
            for number in classes
        ]
    return found


def together(some: Sequence[Cost]) -> Cost:
    """One launch of each place."""
    return Cost(sum(each.start for each in some), sum(each.trial for each in some))


def row(
    what: str, some: Sequence[Known], costs: Mapping[LaunchPlace, Cost], cost: Cost | None
) -> Row:
    """Of these cases, all of one program and environment."""
    case = some[0].case
    between, trial = (
        float(np.sqrt(np.median([getattr(each.noise, part) for each in some])))
        for part in ("between", "trial")
    )
    best = median_trials(some, costs) if case.program == "mpicost" else None
    return Row(case.program, case.environment, what, len(some), between, trial, cost, best)


def better(one: Spending, other: Spending) -> bool:
    """Whether half of the cases see smaller slowdowns; with the same sight, what is cheaper every night.

    Never where half of the cases see nothing: then the count of the papers is as good as any.
    """
    if one.sees is None:
        return False
    theirs = math.inf if other.sees is None else other.sees
    return (round(one.sees, 3), one.night_seconds) < (round(theirs, 3), other.night_seconds)


def described(each: Spending, has_trials: bool) -> str:
    """A way to spend the seconds, in words."""
    trials = f" of {each.trials} trials" if has_trials else ""
    sight = f"half of the cases see a slowdown of {percent(each.sees)}"
    if each.sees is None:
        sight = "too few to see more than gross changes in half of the cases"
    return (
        f"{plural(each.launches, 'launch', 'es')}{trials} in {duration(each.seconds)} "
        f"({duration(each.night_seconds)} a night): {sight}"
    )


def lines(advice: Advice, site: str) -> list[str]:
    """Both ways, and the commands of the better one."""
    chosen, other = advice.chosen, advice.other
    found = [f"{advice.program}: {described(chosen, other is not None)}"]
    if other and other.trials != chosen.trials:
        found.append(f"{advice.program}: {described(other, True)}")
        if chosen.trials == PAPERS and chosen.sees is not None:
            found.append(
                f"{advice.program}: {other.trials} trials tell the mean of a calibration best for its seconds, "
                f"but a night is one launch, and sees no more with them: stay with {PAPERS}"
            )
    if chosen.launches < ENOUGH_LAUNCHES:
        needed = duration(math.ceil(ENOUGH_LAUNCHES * chosen.night_seconds))
        return [*found, f"{advice.program}: spend more, {ENOUGH_LAUNCHES} launches take {needed}"]
    return [*found, f"{advice.program}: {'; then '.join(commands(advice, site))}"]


def commands(advice: Advice, site: str) -> list[str]:
    """What to type."""
    where = "" if site == "local" else f" --site {site}"
    trials = f" --trials {advice.chosen.trials}" if advice.other is not None else ""
    calibrate = f"./plumbline calibrate{where} --program {advice.program}{trials}"
    nightly = [f"./plumbline nightly{where}{trials}"] if trials else []
    return [f"{calibrate} --launches {advice.chosen.launches}", *nightly]
