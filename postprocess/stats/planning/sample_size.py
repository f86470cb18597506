"""Sample-size planning: launches of a calibration and of a night that detect a smaller slowdown.

More calibration launches narrow the band, down to what launches differ by. Beyond that only a steadier value
of the night helps: the median of several launches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from postprocess.model.reference import Prior, Reference
from postprocess.model.verdict import CaseResult
from postprocess.stats.band import LARGEST_LOG, compute_band, compute_slow_distance
from postprocess.stats.false_discovery import compute_limit_distance, extract_scatter
from postprocess.stats.power import Scatter

TARGET = 0.10  #: slowdown that every case ought to see
NIGHTS = 30  #: over which a plan's launches are added up, when the cheapest is sought


@dataclass(frozen=True, order=True)
class Plan:
    """Another way to measure a case."""

    median_of: int  #: launches of a night, whose median is judged
    calibration: int  #: launches behind the reference

    def once(self, launches: int) -> int:
        """Count the launches of the calibration. Those there are serve if a value stays one launch."""
        return max(self.calibration - launches, 0)

    def nightly(self, launches: int) -> int:
        """Count the further launches of every night."""
        return max(self.median_of - launches, 0)


PLANS = [Plan(median_of, once) for median_of in (1, 2, 3, 5, 9, 15) for once in (10, 20, 40)]


def compute_detectable_under(result: CaseResult, plan: Plan) -> float | None:
    """Compute the smallest slowdown detected under a plan; None if the scatter is unknown."""
    known = extract_scatter(result)
    if known is None or not result.reference:
        return None
    median_of = max(plan.median_of, known.median_of)
    # Two digits are enough for a plan, and cases of alike degrees share what is integrated.
    prior_degrees = float(f"{max(known.degrees - (known.launches - 1), 0.0):.2g}")
    now = _reference(result, known.spread, known.launches, prior_degrees)
    launches = max(plan.calibration, known.launches)
    then = _reference(result, known.spread, launches, prior_degrees)
    distance = max(
        compute_slow_distance(then, compute_band(then, median_of=median_of)),
        _floor_of_resolution(result, now, known.median_of),
    )
    there, degrees = then.moderated
    shift = Scatter(there, degrees, launches, median_of).smallest(distance)
    return math.expm1(min(shift + _excess_of_sessions(result, known), LARGEST_LOG))


def choose_cheapest_plan(result: CaseResult) -> Plan | None:
    """Choose the plan of fewest launches in a month that detects ``TARGET``; None if none does."""
    fit = [plan for plan in PLANS if (compute_detectable_under(result, plan) or math.inf) <= TARGET]
    return min(fit, key=lambda plan: count_month_launches(plan, result), default=None)


def count_month_launches(plan: Plan, result: CaseResult) -> int:
    """Count the launches of a plan in its first month, beyond those of today."""
    return plan.once(result.reference_launches) + NIGHTS * plan.nightly(result.launches)


def select_sensitive(results: Sequence[CaseResult]) -> list[CaseResult]:
    """Select the results that detect a slowdown of ``TARGET`` as measured today."""
    return [each for each in results if each.detectable is not None and each.detectable <= TARGET]


def _reference(result: CaseResult, spread: float, launches: int, prior_degrees: float) -> Reference:
    """Return a reference of this case with so many launches and this spread."""
    center = result.reference or math.nan
    prior = Prior(spread, prior_degrees)
    return Reference(result.case, center, spread, launches, result.unit, prior=prior)


def _excess_of_sessions(result: CaseResult, known: Scatter) -> float:
    """Return how much farther out a case is called than independent launches; more do not reduce it."""
    if result.detectable is None:
        return 0.0
    own = known.smallest(compute_limit_distance(result))
    excess = math.log1p(result.detectable) - own
    return excess if excess > 1e-6 else 0.0


def _floor_of_resolution(result: CaseResult, now: Reference, median_of: int) -> float:
    """Return the part of the band due to the resolution of the value; more launches do not reduce it."""
    distance = compute_limit_distance(result)
    own = compute_slow_distance(now, compute_band(now, median_of=median_of))
    return distance if distance > own * (1 + 1e-9) else 0.0
