"""How steady the median of several launches is."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy.special import ndtr

FARTHEST = 8.0  #: of the values, in their standard deviations
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
