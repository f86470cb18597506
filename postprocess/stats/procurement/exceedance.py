"""Exceedances: how probable it is that the largest of all values are all in one of two samples.

If two samples are of one continuous distribution, every k of all n + m values are the k largest with the same
probability: P(all k are of the m) = C(m, k) / C(n + m, k) (Gumbel and von Schelling, The distribution of the
number of exceedances, Annals of Mathematical Statistics 21, 1950).
"""

from __future__ import annotations

import math


def compute_exceedance(others: int, own: int, largest: int) -> float:
    """Compute the probability that so many largest values are all of one's own sample, by chance alone.

    :param others: size of the other sample
    :param own: size of one's own
    """
    return math.comb(own, largest) / math.comb(others + own, largest)
