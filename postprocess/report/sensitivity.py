"""Detection limits of a session: detectable slowdowns, the worst cases, and the cost of lower limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from postprocess.base.formats import duration, format_whole, plural
from postprocess.model.case import LaunchPlace
from postprocess.model.routines.mpicost import program_sort_key
from postprocess.model.verdict import CaseResult
from postprocess.results.launch_costs import list_timed_jobs
from postprocess.results.summary import SessionSummary, SummaryLaunch
from postprocess.stats.planning.sample_size import (
    PLANS,
    TARGET,
    Plan,
    choose_cheapest_plan,
    compute_detectable_under,
    select_sensitive,
)
from postprocess.stats.shrinkage import SIZES, group_of

BOUNDS = (0.05, 0.10, 0.20, 0.50, 1.00)  #: of detectable slowdowns, beyond which is the next class
CLASSES = (*(f"{bound:.0%}" for bound in BOUNDS), "more", "nothing")
MOST_WORST = 15
CALIBRATION = "calibrate"  #: mode of its session
#: Of the cases: a dearer plan that shows no more than so many further ones is not offered
WORTH = 0.02


@dataclass(frozen=True)
class SensitivityRow:
    """Cases of one kind with their detection limits: slowdowns as fractions, None if none is detected."""

    name: tuple[str, ...]  #: program, environment, and class of sizes
    cases: int
    shares: tuple[int, ...]  #: cases by the classes of :data:`CLASSES`
    seen: int  #: cases that see :data:`~postprocess.stats.planning.sample_size.TARGET`
    median: float | None
    most: float | None  #: that nine cases in ten see


@dataclass(frozen=True)
class PlanOffer:
    """The benefit and the cost of a plan, for all cases together."""

    what: str
    seen: int
    once: int  #: launches, each of all cases of its place
    nightly: int
    once_seconds: float
    nightly_seconds: float


@dataclass(frozen=True)
class LeastSensitiveCase:
    """A case with a high detection limit, and what would lower it."""

    result: CaseResult
    help: str


@dataclass(frozen=True)
class Sensitivity:
    """The section on detection limits."""

    line: str  #: the whole in one line
    programs: tuple[SensitivityRow, ...]  #: by program and environment
    rows: tuple[SensitivityRow, ...]  #: and by class of sizes
    offers: tuple[PlanOffer, ...]
    worst: tuple[LeastSensitiveCase, ...]


def assess_sensitivity(summary: SessionSummary) -> Sensitivity | None:
    """Assess which slowdowns this session would miss; None if no case was judged with known scatter."""
    results = summary.results
    if summary.mode == CALIBRATION:  # its values are of many launches, and those of a night are not
        results = [replace(each, launches=1) for each in results]
    known = select_with_power(results)
    if not known:
        return None
    seconds = measure_place_seconds(summary.launches)
    return Sensitivity(
        summarise_sensitivity(known),
        tuple(
            build_sensitivity_rows(known, lambda each: (each.case.program, each.case.environment))
        ),
        tuple(build_sensitivity_rows(known, _kind)),
        tuple(build_offers(known, seconds)),
        tuple(
            LeastSensitiveCase(each, describe_remedy(each, seconds))
            for each in list_least_sensitive(known)
        ),
    )


def summarise_sensitivity(results: Iterable[CaseResult]) -> str:
    """Summarise, in one line, in how many cases a slowdown would be detected; empty if unknown."""
    known = select_with_power(results)
    if not known:
        return ""
    number = format_whole(len(select_sensitive(known)))
    return f"a {TARGET:.0%} slowdown would be seen in {number} of {plural(len(known), 'case')}"


def select_with_power(results: Iterable[CaseResult]) -> list[CaseResult]:
    """Select the results that were judged by a reference of known scatter."""
    return [each for each in results if each.reference and _is_known(each)]


def _is_known(result: CaseResult) -> bool:
    return result.detectable is not None or result.spread is not None or _is_blind(result)


def _is_blind(result: CaseResult) -> bool:
    return result.reference_launches == 1


def _kind(result: CaseResult) -> tuple[str, ...]:
    return result.case.program, result.case.environment, SIZES[group_of(result.case)[1]]


def build_sensitivity_rows(
    results: Sequence[CaseResult], name: Callable[[CaseResult], tuple[str, ...]]
) -> list[SensitivityRow]:
    """Build a row for each name, in their order."""
    found: dict[tuple[str, ...], list[CaseResult]] = {}
    for each in results:
        found.setdefault(name(each), []).append(each)

    def order(key: tuple[str, ...]) -> tuple[object, ...]:
        return program_sort_key(key[0]), key[1], SIZES.index(key[2]) if key[2:] else 0

    return [build_sensitivity_row(key, found[key]) for key in sorted(found, key=order)]


def build_sensitivity_row(name: tuple[str, ...], results: Sequence[CaseResult]) -> SensitivityRow:
    """Build the row of these cases."""
    values = [np.inf if each.detectable is None else each.detectable for each in results]
    counts = Counter(classify_detectable(each.detectable) for each in results)
    median, most = np.quantile(values, (0.5, 0.9), method="inverted_cdf")
    return SensitivityRow(
        name,
        len(results),
        tuple(counts[n] for n in range(len(CLASSES))),
        len(select_sensitive(results)),
        *(float(value) if np.isfinite(value) else None for value in (median, most)),
    )


def classify_detectable(detectable: float | None) -> int:
    """Classify a detectable slowdown, a fraction of the time, into :data:`CLASSES`; a bound is inside."""
    if detectable is None:
        return len(CLASSES) - 1
    return int(np.searchsorted(BOUNDS, detectable))


def measure_place_seconds(launches: Iterable[SummaryLaunch]) -> dict[LaunchPlace, float]:
    """Measure seconds of one launch of everything at a place: the mean of those of a session."""
    times: dict[LaunchPlace, dict[int, float]] = {}
    for job in list_timed_jobs(launches):
        whole = times.setdefault(job.place, {})
        whole[job.number] = whole.get(job.number, 0.0) + job.seconds
    return {place: sum(each.values()) / len(each) for place, each in times.items()}


def build_offers(
    results: Sequence[CaseResult], seconds: dict[LaunchPlace, float]
) -> list[PlanOffer]:
    """Build the offer of each plan: today's first, then those that detect clearly more than all before."""
    found = [PlanOffer("as it is", len(select_sensitive(results)), 0, 0, 0.0, 0.0)]
    short = [
        each for each in results if classify_detectable(each.detectable) > BOUNDS.index(TARGET)
    ]
    for plan in PLANS:
        helped = [each for each in short if _sees(each, plan)]
        offer = build_offer(plan, found[0].seen, helped, seconds)
        if offer.seen - found[-1].seen > WORTH * len(results):
            found.append(offer)
    return found


def build_offer(
    plan: Plan, today: int, helped: Sequence[CaseResult], seconds: dict[LaunchPlace, float]
) -> PlanOffer:
    """Build the offer of a plan, with its cost in seconds at the places of the cases that it helps."""
    launches: dict[LaunchPlace, int] = {}
    nightly: dict[LaunchPlace, int] = {}
    for each in helped:
        place = LaunchPlace.of(each.case)
        launches[place] = max(launches.get(place, 0), plan.once(each.reference_launches))
        nightly[place] = max(nightly.get(place, 0), plan.nightly(each.launches))
    return PlanOffer(
        describe_plan(plan),
        today + len(helped),
        sum(launches.values()),
        sum(nightly.values()),
        sum(number * seconds.get(place, 0.0) for place, number in launches.items()),
        sum(number * seconds.get(place, 0.0) for place, number in nightly.items()),
    )


def _sees(result: CaseResult, plan: Plan) -> bool:
    there = compute_detectable_under(result, plan)
    return there is not None and there <= TARGET


def describe_plan(plan: Plan) -> str:
    """Describe a plan in words."""
    if plan.median_of == 1:
        return f"calibrate with {plan.calibration} launches"
    return f"median of {plan.median_of} launches a night, references of {plan.calibration} or more"


def list_least_sensitive(results: Sequence[CaseResult]) -> list[CaseResult]:
    """List the least sensitive cases, those that detect nothing first."""

    def sight(result: CaseResult) -> tuple[float, object]:
        return -np.inf if result.detectable is None else -result.detectable, result.case

    short = [
        each for each in results if classify_detectable(each.detectable) > BOUNDS.index(TARGET)
    ]
    return sorted(short, key=sight)[:MOST_WORST]


def describe_remedy(result: CaseResult, seconds: dict[LaunchPlace, float]) -> str:
    """Describe, in one line, what would make a case detect the target, and its cost.

    :param seconds: of a launch, by place
    """
    if _is_blind(result):
        return "calibrate it: a single launch does not show how launches differ"
    plan = choose_cheapest_plan(result)
    if plan is None:
        return (
            f"more launches do not help here, more nights and calibrations on other days may: {TARGET:.0%} is "
            "less than it differs by"
        )
    each = seconds.get(LaunchPlace.of(result.case), 0.0)
    once, nightly = plan.once(result.reference_launches), plan.nightly(result.launches)
    costs = [f"{plural(once, 'launch', 'es')} once ({duration(once * each)})"] if once else []
    costs += [f"{nightly} more a night ({duration(nightly * each)})"] if nightly else []
    return f"{describe_plan(plan)}: {', '.join(costs)}"
