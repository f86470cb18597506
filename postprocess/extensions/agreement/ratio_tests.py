"""Intervals and tests of ratios, on the logarithms of the rounds' ratios."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import scipy

CONFIDENCE = 0.95  #: of an interval
FEWEST_LAUNCHES = 3  #: for an interval


def estimate_log_spread(logs: Sequence[float]) -> float:
    """Estimate the standard deviation of two or more logarithms."""
    return statistics.stdev(logs)


def compute_ratio_interval(logs: Sequence[float], least: float = 0.0) -> tuple[float, float] | None:
    """Compute the confidence interval of the geometric mean of ratios, from their logarithms; None for too few.

    Student's interval of the mean, the paired t procedure on ln(a/b): mean -+ t(1 - alpha/2; n - 1)
    s / sqrt(n) (Jain, The Art of Computer Systems Performance Analysis, 13.4.1). ``least``: a smaller
    standard deviation s is not used.
    """
    if len(logs) < FEWEST_LAUNCHES:
        return None
    mean, error = statistics.fmean(logs), _error(logs, least)
    half = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, len(logs) - 1)) * error
    return math.exp(mean - half), math.exp(mean + half)


def compute_outside_probability(
    logs: Sequence[float], low: float, high: float, least: float = 0.0
) -> float:
    """Compute how probable a mean so far outside ``low`` to ``high`` is if the true ratio is inside; at most 1.

    Two one-sided paired t tests against the nearer end, doubled. 1 for too few launches. ``least`` as in
    :func:`compute_ratio_interval`.
    """
    if len(logs) < FEWEST_LAUNCHES:
        return 1.0
    mean, error = statistics.fmean(logs), _error(logs, least)
    beyond = max(math.log(low) - mean, mean - math.log(high))
    if error == 0 or beyond <= 0:
        return 0.0 if beyond > 0 else 1.0
    return min(1.0, 2 * float(scipy.stats.t.sf(beyond / error, len(logs) - 1)))


def reject_by_holm(probabilities: Sequence[float], level: float) -> list[bool]:
    """Return which hypotheses are rejected if any false rejection may have the probability ``level``.

    Step-down procedure of Holm, Scandinavian Journal of Statistics 6 (1979) 65-70: of m probabilities in
    rising order the k-th, counted from 0, is rejected if it and all before it are at most level / (m - k).
    """
    order = sorted(range(len(probabilities)), key=lambda number: probabilities[number])
    rejected = [False] * len(probabilities)
    for k, number in enumerate(order):
        if probabilities[number] > level / (len(order) - k):
            break
        rejected[number] = True
    return rejected


def _error(logs: Sequence[float], least: float) -> float:
    """Return the standard error of the mean."""
    return max(estimate_log_spread(logs), least) / math.sqrt(len(logs))
