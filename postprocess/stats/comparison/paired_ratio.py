"""Paired ratios: how many times as slow one side is as the other, from launches taken in turn.

Each pair of launches gives d = ln(new / old), its sign such that more is worse. The estimate is that of Hodges
and Lehmann, the median of the Walsh averages (d_i + d_j) / 2, i <= j. The interval is that of Wilcoxon's signed
ranks (Hollander, Wolfe and Chicken, *Nonparametric Statistical Methods*, 2014, sections 3.2 and 3.3). What both
launches of a pair share, such as the state of the machine at that hour, cancels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

#: Variance of the signed ranks for normal differences, over that of the mean (ibid., 3.11).
EFFICIENCY = math.pi / 3

UNKNOWN_SPREAD = 2  #: pairs more, because the spread is estimated from the pairs themselves


@dataclass(frozen=True)
class PairedRatio:
    """An estimate of ln(new / old) with its interval."""

    center: float
    lower: float  #: minus infinity if there are too few pairs for the level
    upper: float
    pairs: int

    @property
    def ratio(self) -> float:
        """How many times as slow the new side is."""
        return math.exp(self.center)

    @property
    def limits(self) -> tuple[float, float]:
        """Limits of the ratio."""
        return math.exp(self.lower), math.exp(min(self.upper, 700.0))


def estimate_paired_ratio(differences: Sequence[float], alpha: float) -> PairedRatio:
    """Estimate ln(new / old) from the differences of pairs.

    :param differences: ln(new / old) of each pair; at least one
    :param alpha: probability that the value lies beyond either limit, at most
    """
    walsh = compute_walsh_averages(differences)
    count = len(differences)
    outside = count_outside(count, alpha)
    lower = float(walsh[outside - 1]) if outside else -math.inf
    upper = float(walsh[len(walsh) - outside]) if outside else math.inf
    return PairedRatio(float(np.median(walsh)), lower, upper, count)


def compute_walsh_averages(differences: Sequence[float]) -> NDArray[np.float64]:
    """Compute the averages of all pairs of differences, each with itself too; sorted."""
    d = np.asarray(differences, dtype=float)
    rows, columns = np.triu_indices(len(d))
    return np.sort((d[rows] + d[columns]) / 2)


@cache
def count_outside(pairs: int, alpha: float) -> int:
    """Count the Walsh averages up to and with a limit: the largest c with P(W < c) <= alpha; 0 if none is."""
    chances = np.cumsum(compute_signed_rank_distribution(pairs))
    return int(np.searchsorted(chances, alpha * (1 + 1e-12), side="right"))


@cache
def compute_signed_rank_distribution(pairs: int) -> NDArray[np.float64]:
    """Compute the probability of each sum of positive ranks, from 0 to n (n + 1) / 2, if the center is 0."""
    chances = np.ones(1)
    for rank in range(1, pairs + 1):
        longer = np.zeros(len(chances) + rank)
        longer[: len(chances)] += chances / 2
        longer[rank:] += chances / 2
        chances = longer
    return chances


def count_deciding_pairs(spread: float, distance: float, alpha: float) -> int:
    """Count the pairs whose interval reaches no farther than a distance to either side, for normal differences.

    :param spread: standard deviation of the differences
    :param distance: above 0
    :param alpha: probability that the value lies beyond either limit
    """
    z = float(-ndtri(alpha))
    return math.ceil((z * spread / distance) ** 2 * EFFICIENCY) + UNKNOWN_SPREAD
