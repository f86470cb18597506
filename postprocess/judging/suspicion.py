"""What is slow again in fresh launches, but not beyond what other hours of this machine may bring.

Fresh launches of the same session share its state: they show that a case is slow tonight, and not that it has
become slow. It is called regressed if its fresh values lie beyond the call limit
(:func:`postprocess.stats.band.compute_call_limit`), which a healthy session exceeds once in 25,000 times. What
lies between band and call limit is ``suspect``. The following nights decide: the mean of the nights in which a
case was suspect without a break has a nearer limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

import polars as pl

from postprocess.base.formats import plural, quantity
from postprocess.base.units import compute_slowdown
from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.model.verdict import JUDGED, CaseResult, Verdict
from postprocess.results.query import NIGHTS, read_headlines
from postprocess.results.store import StoreError
from postprocess.stats.band import compute_call_limit

COLUMNS = ("session", "started_utc", "mode", "key", "verdict", "value", "unit", "reference")
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
        history = read_headlines(store, keys=sorted(by_key), columns=COLUMNS)
    except StoreError:
        return {}
    nights = (
        history.filter(
            pl.col("mode").is_in(NIGHTS),
            pl.col("verdict").is_in([str(each) for each in JUDGED]),
            pl.col("value") > 0,
        )
        .group_by("key", "session")
        .agg(
            pl.col("started_utc", "verdict", "reference", "unit").first(),
            pl.col("value").median(),
            pl.len().alias("launches"),
        )
        .sort("started_utc", descending=True)
    )
    return {
        by_key[key].case: count_run(by_key[key], some.iter_rows(named=True))
        for (key,), some in nights.group_by("key", maintain_order=True)
    }


def count_run(result: CaseResult, nights: Iterable[Mapping]) -> list[SuspectNight]:
    """Count the nights, the newest first, until one in which the case was not suspect by this reference."""
    center = result.reference or 0.0
    return [
        SuspectNight(
            math.log(compute_slowdown(night["value"], center, result.unit)), night["launches"]
        )
        for night in takewhile(
            lambda night: (
                night["verdict"] == Verdict.SUSPECT
                and night["unit"] == result.unit
                and math.isclose(night["reference"] or 0.0, center, rel_tol=SAME)
            ),
            nights,
        )
    ]
