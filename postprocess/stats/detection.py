"""What a value of m launches says: how steady their median is, and how often a case is called regressed by it.

On y = ln headline, its sign such that more is worse, launches scatter about mu with sigma. n calibration
launches with mean c, spread s and d degrees of freedom say where mu and sigma may be. c - mu is normal with
sigma / sqrt(n), and d s^2 / sigma^2 is chi-squared of d: the pivots behind the prediction limit
(:mod:`postprocess.stats.band`). Given both, launches are independent. A case is called regressed if the median
of its m launches lies beyond the limit, and then enough medians of m fresh ones do
(:mod:`postprocess.stats.confirmation_rule`).
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import chdtri, ndtr, stdtrit

from postprocess.stats.confirmation_rule import compute_confirmation_probability

FARTHEST = 8.0  #: of the possible centers, in their standard deviations
LEAST_TAIL = 1e-12  #: probability of the spreads that are left out, on either side
CENTERS, SPREADS = 25, 49  #: that stand for all; more change nothing that is shown
POINTS = 801  #: of the normal distribution, when a median is integrated


@cache
def compute_median_efficiency(median_of: int) -> float:
    """Compute the standard deviation of the median of n normal values, relative to that of one.

    From the density of the middle order statistic, or of the mean of the middle two, which lie as far below it
    as above (David and Nagaraja, Order Statistics, 2003, section 2.1).
    """
    below, odd = divmod(median_of, 2)
    x = np.linspace(-FARTHEST, FARTHEST, POINTS)
    if odd:
        density = (ndtr(x) * ndtr(-x)) ** below * np.exp(-(x**2) / 2)
    else:
        apart = np.linspace(0, FARTHEST, POINTS)
        low, high = x[:, None] - apart, x[:, None] + apart
        joint = (ndtr(low) * ndtr(-high)) ** (below - 1) * np.exp(-(low**2 + high**2) / 2)
        density = np.trapezoid(joint, apart, axis=1)
    return math.sqrt(float(np.sum(x**2 * density) / np.sum(density)))


def compute_standard_error(launches: int, median_of: int = 1) -> float:
    """Compute the standard deviation of a median about the mean of so many other launches, in spreads."""
    return math.sqrt(compute_median_efficiency(median_of) ** 2 + 1.0 / launches)


@lru_cache(maxsize=4096)
def compute_limit_factor(launches: int, degrees: float, alpha: float, median_of: int = 1) -> float:
    """Compute the distance of the limit from the center, in spreads.

    Of a single launch it is the prediction limit, t(1 - alpha; d) sqrt(1 + 1/n). That of a median has the
    median's own deviation in the place of the 1. But the steadier the medians, the more do those of a night
    share what the center does not know, and fresh ones would confirm more often what is not there. The limit
    is so far out that a healthy case is called regressed no more often than by single launches.
    """
    factor = float(stdtrit(degrees, 1.0 - alpha)) * compute_standard_error(launches, median_of)
    if median_of == 1:
        return factor
    single = compute_limit_factor(launches, degrees, alpha)
    promised = compute_detection_probability(-single, launches, degrees)

    def excess(limit: float) -> float:
        return compute_detection_probability(-limit, launches, degrees, median_of) - promised

    if excess(factor) <= 0:
        return factor
    if excess(single) >= 0:
        return single
    return float(scipy.optimize.brentq(excess, factor, single, xtol=1e-6))


def compute_detection_probability(
    beyond: float, launches: int, degrees: float, median_of: int = 1
) -> float:
    """Compute the probability that a case whose launches lie that far beyond the limit is called regressed.

    :param beyond: from the limit to the center of the reference, shifted by the slowdown; in spreads
    :param median_of: launches of one value, in the night and each time that it is measured again
    """
    offsets, precisions, weights = integrate_parameters(launches, degrees)
    steady = compute_median_efficiency(median_of)
    chance = ndtr((beyond * precisions + offsets) / steady)
    return float(np.sum(weights * chance * compute_confirmation_probability(chance)))


@lru_cache(maxsize=4096)
def integrate_parameters(launches: int, degrees: float) -> tuple[NDArray, NDArray, NDArray]:
    """Return possible mu and sigma after calibration: (c - mu) / sigma, s / sigma, and the weight of each pair.

    The trapezoidal rule on the normal and on the logarithm of chi-squared, whose densities fade at both ends.
    """
    z = np.linspace(-FARTHEST, FARTHEST, CENTERS)[:, None]
    ends = (float(chdtri(degrees, tail)) for tail in (1 - LEAST_TAIL, LEAST_TAIL))
    logs = np.linspace(*(math.log(end) for end in ends), SPREADS)[None, :]
    density = degrees / 2 * logs - np.exp(logs) / 2
    weights = np.exp(-(z**2) / 2 + density - density.max())
    return z / math.sqrt(launches), np.exp(logs / 2) / math.sqrt(degrees), weights / weights.sum()
