"""Detection limits of a session: detectable slowdowns, the worst cases, and the cost of lower limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from postprocess.base.formats import duration, plural, whole
from postprocess.model.case import LaunchPlace
from postprocess.model.mpicost import program_order
from postprocess.model.verdict import CaseResult
from postprocess.results.launch_costs import timed_jobs
from postprocess.results.summary import Launch, SessionSummary
from postprocess.stats.sample_size import PLANS, TARGET, Plan, cheapest, seen, seen_with
from postprocess.stats.shrinkage import SIZES, kin

BOUNDS = (0.05, 0.10, 0.20, 0.50, 1.00)  #: of detectable slowdowns, beyond which is the next class
CLASSES = (*(f"{bound:.0%}" for bound in BOUNDS), "more", "nothing")
MOST_WORST = 15
#: Of the cases: a dearer plan that shows no more than so many further ones is not offered
WORTH = 0.02


@dataclass(frozen=True)
class Row:
    """Cases that are alike, and what they see. Slowdowns are fractions, None for nothing at all."""

    name: tuple[str, ...]  #: program, environment, and class of sizes
    cases: int
    shares: tuple[int, ...]  #: cases by the classes of :data:`CLASSES`
    seen: int  #: cases that see :data:`~postprocess.stats.sample_size.TARGET`
    median: float | None
    most: float | None  #: that nine cases in ten see


@dataclass(frozen=True)
class Offer:
    """What a way to measure would bring and cost, for all cases together."""

    what: str
    seen: int
    once: int  #: launches, each of all cases of its place
    nightly: int
    once_seconds: float
    nightly_seconds: float


@dataclass(frozen=True)
class Worst:
    """A case that sees little, and what would help."""

    result: CaseResult
    help: str


@dataclass(frozen=True)
class Misses:
    """The page."""

    line: str  #: the whole in one line
    programs: tuple[Row, ...]  #: by program and environment
    rows: tuple[Row, ...]  #: and by class of sizes
    offers: tuple[Offer, ...]
    worst: tuple[Worst, ...]


def misses(summary: SessionSummary) -> Misses | None:
    """What this session would miss. None if no case was judged, or not by one that knew."""
    known = judged(summary.results)
    if not known:
        return None
    seconds = seconds_by_place(summary.launches)
    return Misses(
        sight(known),
        tuple(rows(known, lambda each: (each.case.program, each.case.environment))),
        tuple(rows(known, _kind)),
        tuple(offers(known, seconds)),
        tuple(Worst(each, helping(each, seconds)) for each in worst(known)),
    )


def sight(results: Iterable[CaseResult]) -> str:
    """In how many cases of a session a slowdown would be seen, in one line; empty if nobody knows."""
    known = judged(results)
    if not known:
        return ""
    number = whole(len(seen(known)))
    return f"a {TARGET:.0%} slowdown would be seen in {number} of {plural(len(known), 'case')}"


def judged(results: Iterable[CaseResult]) -> list[CaseResult]:
    """Those that were held against a reference whose worth is known."""
    return [each for each in results if each.reference and _is_known(each)]


def _is_known(result: CaseResult) -> bool:
    return result.detectable is not None or result.spread is not None or _is_blind(result)


def _is_blind(result: CaseResult) -> bool:
    return result.reference_launches == 1


def _kind(result: CaseResult) -> tuple[str, ...]:
    return result.case.program, result.case.environment, SIZES[kin(result.case)[1]]


def rows(results: Sequence[CaseResult], name: Callable[[CaseResult], tuple[str, ...]]) -> list[Row]:
    """A row for each name, in their order."""
    found: dict[tuple[str, ...], list[CaseResult]] = {}
    for each in results:
        found.setdefault(name(each), []).append(each)

    def order(key: tuple[str, ...]) -> tuple[object, ...]:
        return program_order(key[0]), key[1], SIZES.index(key[2]) if key[2:] else 0

    return [row(key, found[key]) for key in sorted(found, key=order)]


def row(name: tuple[str, ...], results: Sequence[CaseResult]) -> Row:
    """What these cases see together."""
    values = [np.inf if each.detectable is None else each.detectable for each in results]
    counts = Counter(class_of(each.detectable) for each in results)
    median, most = np.quantile(values, (0.5, 0.9), method="inverted_cdf")
    return Row(
        name,
        len(results),
        tuple(counts[n] for n in range(len(CLASSES))),
        len(seen(results)),
        *(float(value) if np.isfinite(value) else None for value in (median, most)),
    )


def class_of(detectable: float | None) -> int:
    """Which of :data:`CLASSES`; a bound itself is inside."""
    if detectable is None:
        return len(CLASSES) - 1
    return int(np.searchsorted(BOUNDS, detectable))


def seconds_by_place(launches: Iterable[Launch]) -> dict[LaunchPlace, float]:
    """Seconds of one launch of everything at a place: the mean of those of a session."""
    times: dict[LaunchPlace, dict[int, float]] = {}
    for job in timed_jobs(launches):
        whole = times.setdefault(job.place, {})
        whole[job.number] = whole.get(job.number, 0.0) + job.seconds
    return {place: sum(each.values()) / len(each) for place, each in times.items()}


def offers(results: Sequence[CaseResult], seconds: dict[LaunchPlace, float]) -> list[Offer]:
    """What each plan brings: today's first, and then those that show clearly more than all before."""
    found = [Offer("as it is", len(seen(results)), 0, 0, 0.0, 0.0)]
    short = [each for each in results if class_of(each.detectable) > BOUNDS.index(TARGET)]
    for plan in PLANS:
        helped = [each for each in short if _sees(each, plan)]
        offer = offer_of(plan, found[0].seen, helped, seconds)
        if offer.seen - found[-1].seen > WORTH * len(results):
            found.append(offer)
    return found


def offer_of(
    plan: Plan, today: int, helped: Sequence[CaseResult], seconds: dict[LaunchPlace, float]
) -> Offer:
    """What a plan costs at the places of those that it helps."""
    launches: dict[LaunchPlace, int] = {}
    for each in helped:
        place = LaunchPlace.of(each.case)
        launches[place] = max(launches.get(place, 0), plan.once(each.reference_launches))
    return Offer(
        described(plan),
        today + len(helped),
        sum(launches.values()),
        plan.nightly * len(launches),
        sum(number * seconds.get(place, 0.0) for place, number in launches.items()),
        sum(plan.nightly * seconds.get(place, 0.0) for place in launches),
    )


def _sees(result: CaseResult, plan: Plan) -> bool:
    there = seen_with(result, plan)
    return there is not None and there <= TARGET


def described(plan: Plan) -> str:
    """A plan in words."""
    if plan.median_of == 1:
        return f"calibrate with {plan.values} launches"
    return f"median of {plan.median_of} launches, calibrate with {plan.values} such medians"


def worst(results: Sequence[CaseResult]) -> list[CaseResult]:
    """The cases that see least, those that see nothing first."""

    def sight(result: CaseResult) -> tuple[float, object]:
        return -np.inf if result.detectable is None else -result.detectable, result.case

    short = [each for each in results if class_of(each.detectable) > BOUNDS.index(TARGET)]
    return sorted(short, key=sight)[:MOST_WORST]


def helping(result: CaseResult, seconds: dict[LaunchPlace, float]) -> str:
    """What would make a case see the target, and what it costs, in one line."""
    if _is_blind(result):
        return "calibrate it: a single launch says nothing of how launches differ"
    plan = cheapest(result)
    if plan is None:
        return f"no plan here shows {TARGET:.0%}: find what makes its launches differ"
    once, each = plan.once(result.reference_launches), seconds.get(LaunchPlace.of(result.case), 0.0)
    cost = f"{plural(once, 'launch', 'es')} once ({duration(once * each)})"
    if plan.nightly:
        more = f"{plan.nightly} more a night ({duration(plan.nightly * each)})"
        cost = f"{cost}, {more}"
    return f"{described(plan)}: {cost}"
