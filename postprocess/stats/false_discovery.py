"""False discovery rate: the p-value of each result of a session, and its q-value among all of them.

p is the probability that a healthy night is as slow or slower, by the prediction distribution behind the band.
q is the share of false alarms if all cases as unlikely, or more so, were alarms (Benjamini and Hochberg,
Controlling the false discovery rate, JRSS B 57, 1995). It informs; no verdict hangs on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import scipy

from postprocess.base.units import compute_slowdown, find_better_direction
from postprocess.model.verdict import CaseResult, Verdict, describe_unjudged
from postprocess.stats.power import Scatter


def extract_scatter(result: CaseResult) -> Scatter | None:
    """Return how the value of a case scatters about its reference; None if unknown or not at all."""
    if not result.spread or result.degrees is None:
        return None
    return Scatter(result.spread, result.degrees)


def compute_limit_distance(result: CaseResult) -> float:
    """Compute ln(slow limit / reference) of a result; 0 if it was not judged."""
    if not result.band or not result.reference:
        return 0.0
    limit = result.band[1] if find_better_direction(result.unit) == "lower" else result.band[0]
    return math.log(compute_slowdown(limit, result.reference, result.unit))


def compute_slow_probability(result: CaseResult) -> float | None:
    """Compute the probability that a healthy night is as slow or slower; None if the scatter is unknown.

    :raises ValueError: if what comes out is no probability, as of numbers that are too large.
    """
    known = extract_scatter(result)
    if known is None or not result.value or not result.reference:
        return None
    chance = known.screened(math.log(compute_slowdown(result.value, result.reference, result.unit)))
    if not 0 <= chance <= 1:
        raise ValueError(f"{chance} is no probability")
    return chance


def add_q_values(results: Sequence[CaseResult]) -> list[CaseResult]:
    """Return the results, with the q-value of each judged one among all of them.

    One of which no probability can be computed is ``incorrect``, with the reason, and spoils no other.
    """
    told = list(results)
    known: dict[int, float] = {}
    for place, each in enumerate(results):
        try:
            if (chance := compute_slow_probability(each)) is not None:
                known[place] = chance
        except Exception as error:
            told[place] = replace(each, verdict=Verdict.INCORRECT, reason=describe_unjudged(error))
    if known:
        q_values = scipy.stats.false_discovery_control([*known.values()])
        for place, q in zip(known, q_values, strict=True):
            told[place] = replace(results[place], q=float(q))
    return told
