"""Tolerance limits: what a share of all future launches keeps, with a stated confidence, from n launches.

On y = ln slowdown, normal, the limit is m + k s. There k sqrt(n) is the confidence quantile of the noncentral t
with n - 1 degrees of freedom and noncentrality z(coverage) sqrt(n). Sources: Hahn and Meeker, Statistical
Intervals, 1991, section 4.6.3 and table A.12d; Krishnamoorthy and Mathew, Statistical Tolerance Regions, 2009,
section 2.2. Without a distribution the limit is the k-th largest of n values, where
P(Binomial(n, coverage) <= n - k) >= confidence (Hahn and Meeker, section 5.3.2; Wilks, Annals of Mathematical
Statistics 12, 1941); for 95% and 99% from 299 launches on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy
from scipy.special import ndtri

NORMAL, ORDERED, EXACT = "normal tolerance limit", "order statistic", "exact"
LEAST_LAUNCHES = 3  #: launches; of two, k is 37, which proposes nothing that anybody could use


@dataclass(frozen=True)
class ToleranceLimit:
    """A limit on the slow side, on the logarithm."""

    limit: float
    method: str
    factor: float  #: k of the normal limit; 0 else
    launches: int


@cache
def compute_tolerance_factor(launches: int, confidence: float, coverage: float) -> float:
    """Compute k of the one-sided normal limit m + k s of n launches."""
    root = math.sqrt(launches)
    return (
        float(scipy.stats.nct.ppf(confidence, launches - 1, float(ndtri(coverage)) * root)) / root
    )


@cache
def find_order_statistic(launches: int, confidence: float, coverage: float) -> int:
    """Find which of the largest values is a limit without a distribution: 1 for the largest; 0 for none."""
    ranks = np.arange(1, launches + 1)
    sure = scipy.stats.binom.cdf(launches - ranks, launches, coverage)
    return int(np.count_nonzero(sure >= confidence))


def compute_tolerance_limit(
    logs: Sequence[float], confidence: float, coverage: float, exact: bool = False
) -> ToleranceLimit:
    """Compute the limit of launches.

    :param logs: ln of how slow each launch was; more is worse
    :param exact: whether they are of simulated time, which has no spread
    :raises ValueError: for too few launches
    """
    values = np.sort(np.asarray(logs, dtype=float))
    count = len(values)
    if exact and count:
        return ToleranceLimit(float(values[-1]), EXACT, 0.0, count)
    if count < LEAST_LAUNCHES:
        raise ValueError(f"{count} launches give no tolerance limit; {LEAST_LAUNCHES} do")
    if rank := find_order_statistic(count, confidence, coverage):
        return ToleranceLimit(float(values[-rank]), ORDERED, 0.0, count)
    factor = compute_tolerance_factor(count, confidence, coverage)
    limit = float(values.mean() + factor * values.std(ddof=1))
    return ToleranceLimit(limit, NORMAL, factor, count)
