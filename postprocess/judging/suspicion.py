"""What is slow again in fresh launches, but not beyond what other hours of this machine may bring.

Fresh launches of the same session share its state: they show that a case is slow tonight, and not that it has
become slow. It is called regressed if its fresh values lie beyond the call limit
(:func:`postprocess.stats.band.compute_call_limit`), which a healthy session exceeds once in 25,000 times. What
lies between band and call limit is ``suspect``. The following nights decide: the mean of the nights in which a
case was suspect without a break has a nearer limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

from postprocess.base.formats import plural, quantity
from postprocess.base.units import compute_slowdown
from postprocess.judging.night_history import JudgedNight, read_nights
from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.results.store import StoreError
from postprocess.stats.band import compute_call_limit

SAME = 1e-9  #: relative difference of two centers that are the same


@dataclass(frozen=True)
class SuspectNight:
    """A night's value of a case: how much slower than its reference, on the logarithm."""

    log: float
    launches: int  #: whose median it is


def decide_suspicion(
    result: CaseResult,
    fresh: Sequence[float],
    reference: Reference | None,
    before: Sequence[SuspectNight] = (),
) -> CaseResult:
    """Return a regressed result, or a suspect one if its fresh values are inside the call limit.

    :param fresh: values of its confirmation runs, each a median of as many launches as its own value
    :param before: the nights before in which it was suspect without a break, on the same reference
    """
    if result.verdict != Verdict.REGRESSED or not fresh or reference is None or reference.exact:
        return result
    logs = [math.log(compute_slowdown(each, reference.center, result.unit)) for each in fresh]
    tonight = SuspectNight(sum(logs) / len(logs), max(result.launches, 1) * len(logs))
    if tonight.log > compute_call_distance(reference, [tonight]):
        return result
    nights = [tonight, *before]
    mean = sum(each.log for each in nights) / len(nights)
    if before and mean > compute_call_distance(reference, nights):
        told = f"as it was in {plural(len(before), 'night')} before, {math.exp(mean):.2f} times in the mean"
        return replace(result, reason=f"{result.reason}; {told}")
    limit = quantity(compute_call_limit(reference, values=[tonight.launches]), result.unit)
    told = f"other hours may bring up to {limit}, so the next night decides"
    return replace(result, verdict=Verdict.SUSPECT, reason=f"{result.reason}; {told}")


def compute_call_distance(reference: Reference, nights: Sequence[SuspectNight]) -> float:
    """Compute ln(call limit / center) of the mean of some nights, signed so that slower is positive."""
    limit = compute_call_limit(reference, values=[each.launches for each in nights])
    return math.log(compute_slowdown(limit, reference.center, reference.unit))


def find_suspect_nights(
    store: Path, results: Iterable[CaseResult]
) -> dict[Case, list[SuspectNight]]:
    """Find the last nights in which these cases were suspect without a break, the newest first.

    A night counts only against the same center. A store that is damaged tells of none, and hides nothing: what
    is beyond the call limit is called without it.
    """
    by_key = {each.case.key: each for each in results if each.reference}
    if not by_key:
        return {}
    try:
        nights = read_nights(store, by_key)
    except StoreError:
        return {}
    return {by_key[key].case: count_run(by_key[key], some) for key, some in nights.items()}


def count_run(result: CaseResult, nights: Iterable[JudgedNight]) -> list[SuspectNight]:
    """Count the nights, the newest first, until one in which the case was not suspect by this reference."""
    return [
        SuspectNight(night.log, night.launches)
        for night in takewhile(
            lambda night: (
                night.verdict == Verdict.SUSPECT
                and night.unit == result.unit
                and math.isclose(night.reference, result.reference or 0.0, rel_tol=SAME)
            ),
            nights,
        )
    ]
