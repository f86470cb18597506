"""Judge guidelines: a launch is one value of a comparison, and all of them are corrected together.

The rules are those of ``compare`` (:mod:`postprocess.stats.paired_verdicts`), of ratios within a
launch in the place of ratios of two launches, and with one look.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from postprocess.base.grouping import group_pairs
from postprocess.model.launch import FinishedLaunch
from postprocess.model.routines.guidelines import Guideline, Measured, list_guidelines
from postprocess.stats import paired_verdicts


@dataclass(frozen=True, order=True)
class Place:
    """Where operations are compared with each other."""

    partition: str  #: ``system:partition``
    environment: str
    layout: str  #: processes and processes per node, as in ``4x2``

    @property
    def processes(self) -> int:
        return int(self.layout.partition("x")[0])

    @property
    def per_node(self) -> int:
        return int(self.layout.partition("x")[2])

    def __str__(self) -> str:
        return f"{self.partition}, {self.environment}, {self.layout}"


@dataclass(frozen=True)
class LaunchTimes:
    """What one launch measured, in seconds."""

    place: Place
    number: int  #: of the round
    setting: str  #: name of the settings that were tried; empty for the usual ones
    library: str
    exact: bool  #: whether time is simulated
    times: Mapping[Measured, float]


def extract_times(finished: Sequence[FinishedLaunch]) -> Iterator[LaunchTimes]:
    """Extract what the launches that ended well measured: of each case the median of the trials, as PGMPI does.

    The papers' mean keeps what exceeds a tenth of the trials. Long calls are interrupted more often than short
    ones, so that on a machine that others use it would find every operation too slow for its size.
    """
    for launched in finished:
        launch = launched.launch
        times = {
            Measured(case.routine, case.bytes): measured.summary.median
            for case in launch.cases
            if (measured := launched.measurements.get(case.variable)) and measured.summary
        }
        if times:
            place = Place(launch.partition, launch.environment, launch.cases[0].layout)
            library = str(launched.run.get("mpi_library", ""))
            yield LaunchTimes(place, launch.number, launch.start, library, launch.exact, times)


#: A guideline holds if its operation is shown to be slower by no more than this; half of it violates one.
MARGIN = 0.10
FEWEST_LAUNCHES = 6  #: for an interval
EXACT_LOOK = 6  #: pairs that a look of simulated time stands for: one launch says all


class Standing(str, Enum):
    """What the launches say of a guideline. The order is that in which people need to see them."""

    VIOLATED = "violated"
    OPEN = "open"  #: neither proven
    UNJUDGED = "unjudged"  #: too few launches
    HOLDS = "holds"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class JudgedGuideline:
    """A guideline in one place, and what its standing rests on."""

    place: Place
    guideline: Guideline
    standing: Standing
    launches: int
    special: float  #: median of the launches, in seconds
    general: float  #: the same, times the calls of the guideline
    ratio: float | None = None  #: of special to general; above 1 breaks the guideline
    limits: tuple[float, float] | None = None  #: of the ratio
    q: float | None = None  #: of being slower, among all guidelines of the session


def judge_guidelines(launches: Iterable[LaunchTimes]) -> list[JudgedGuideline]:
    """Judge every guideline of which both sides were measured, the violated ones first."""
    by_place = group_pairs((times.place, times) for times in launches)
    asked = [
        (place, guideline, pair_up(of_place, *sides_of(guideline)))
        for place, of_place in sorted(by_place.items())
        for guideline in list_guidelines([*{key for each in of_place for key in each.times}])
    ]
    asked = [each for each in asked if each[2]]
    exact = any(each.exact for of_place in by_place.values() for each in of_place)
    results = judge_logs(
        [[math.log(a / b) for a, b in pairs] for _, _, pairs in asked],
        [f"{place} {guideline.rule}" for place, guideline, _ in asked],
        exact,
    )
    found = [
        describe(place, guideline, pairs, result)
        for (place, guideline, pairs), result in zip(asked, results, strict=True)
    ]
    order = list(Standing)
    return sorted(found, key=lambda each: (order.index(each.standing), each.place, -(each.ratio or 0)))


def sides_of(
    guideline: Guideline,
) -> tuple[Callable[[LaunchTimes], float | None], Callable[[LaunchTimes], float | None]]:

    def special(launch: LaunchTimes) -> float | None:
        return launch.times.get(guideline.special)

    def general(launch: LaunchTimes) -> float | None:
        time = launch.times.get(guideline.general)
        return None if time is None else guideline.times * time

    return special, general


def pair_up(
    launches: Sequence[LaunchTimes],
    one: Callable[[LaunchTimes], float | None],
    other: Callable[[LaunchTimes], float | None],
) -> list[tuple[float, float]]:
    """Pair what each launch says of both sides, in the order of launches; without those that lack one."""
    ordered = sorted(launches, key=lambda each: each.number)
    pairs = ((one(times), other(times)) for times in ordered)
    return [(a, b) for a, b in pairs if a is not None and b is not None]


def judge_logs(
    logs: Sequence[Sequence[float]], groups: Sequence[str], exact: bool
) -> list[paired_verdicts.PairedResult]:
    """Judge series of ln(one / other), all at one look: after as many launches as most series have.

    :param groups: series of one group have alike spreads
    """
    counts = [len(log) for log in logs if len(log) >= FEWEST_LAUNCHES]
    look = EXACT_LOOK if exact else min(counts, default=FEWEST_LAUNCHES)
    margin = math.log1p(MARGIN)
    cases = [
        paired_verdicts.PairedCase(tuple(each), margin, group, exact)
        for each, group in zip(logs, groups, strict=True)
    ]
    return paired_verdicts.judge_pairs(cases, [look])


def describe(
    place: Place,
    guideline: Guideline,
    pairs: Sequence[tuple[float, float]],
    result: paired_verdicts.PairedResult,
) -> JudgedGuideline:
    return JudgedGuideline(
        place,
        guideline,
        find_standing(result),
        len(pairs),
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
        result.estimate.ratio if result.estimate else None,
        result.estimate.limits if result.estimate else None,
        result.q,
    )


def find_standing(result: paired_verdicts.PairedResult) -> Standing:
    """Find the standing of a guideline whose operation is the new side of the pairs."""
    if result.estimate is None:
        return Standing.UNJUDGED
    if result.verdict == paired_verdicts.PairedVerdict.SLOWER:
        return Standing.VIOLATED
    return Standing.HOLDS if result.verdict in paired_verdicts.NOT_WORSE else Standing.OPEN


def select_violated(judged: Iterable[JudgedGuideline]) -> list[JudgedGuideline]:
    return [guideline for guideline in judged if guideline.standing is Standing.VIOLATED]


@dataclass(frozen=True)
class OverrideSeries:
    """What one override does to an operation, as it was measured."""

    place: Place
    operation: Measured
    setting: str  #: name of the override; empty if none could be tried, or none looked better
    variables: Mapping[str, str]
    tried: int  #: overrides of this operation that were launched
    gains: tuple[float, ...]  #: ln(without / with) of each round: more is better


@dataclass(frozen=True)
class JudgedOverride(OverrideSeries):
    """What a setting does to one operation: its time with it over that without, from the same rounds."""

    helps: bool  #: proven to be faster, among all that were confirmed
    ratio: float | None = None  #: below 1 is faster
    limits: tuple[float, float] | None = None
    q: float | None = None  #: of being faster


def judge_overrides(series: Sequence[OverrideSeries], exact: bool) -> list[JudgedOverride]:
    """Judge what overrides do, all together; those without a value help nothing."""
    measured = [each for each in series if each.gains]
    results = judge_logs([each.gains for each in measured], [str(each.place) for each in measured], exact)
    known = dict(zip(map(id, measured), results, strict=True))
    return [_judged(each, known.get(id(each))) for each in series]


def _judged(series: OverrideSeries, result: paired_verdicts.PairedResult | None) -> JudgedOverride:
    if result is None:
        return JudgedOverride(**vars(series), helps=False)
    helps = result.verdict == paired_verdicts.PairedVerdict.SLOWER  # without it: the new side of the pairs
    ratio, limits = _inverted(result.estimate)
    return JudgedOverride(**vars(series), helps=helps, ratio=ratio, limits=limits, q=result.q)


def _inverted(estimate: paired_verdicts.PairedRatio | None) -> tuple[float | None, tuple[float, float] | None]:
    """Return the ratio and limits of the other side."""
    if estimate is None:
        return None, None
    low, high = estimate.limits
    return 1 / estimate.ratio, (1 / high if high else 0.0, 1 / low if low else math.inf)


def list_losers(violated: Iterable[JudgedGuideline]) -> dict[Place, list[Measured]]:
    """List the operations that lose, for which an override is looked for, by place."""
    found: dict[Place, set[Measured]] = {}
    for guideline in violated:
        found.setdefault(guideline.place, set()).add(guideline.guideline.special)
    return {place: sorted(operations) for place, operations in found.items()}
