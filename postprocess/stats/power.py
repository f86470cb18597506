"""Detection power of a nightly run: the smallest detectable slowdown, and the false alarm rate.

On y = ln headline, its sign such that more is worse, launches scatter about mu with sigma. Of n calibration
launches with mean m, spread s and d degrees of freedom follows where mu and sigma may be: mu - m is normal with
sigma / sqrt(n), and d s^2 / sigma^2 is chi-squared of d: the pivots behind the prediction limit
(:mod:`postprocess.stats.band`). Given both, launches are independent. A case is called regressed if its launch
lies beyond the limit, and then enough fresh ones do (:mod:`postprocess.stats.confirmation_rule`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import chdtri, ndtr, stdtr

from postprocess.base.units import compute_slowdown, find_better_direction
from postprocess.model.measurement import Measurement
from postprocess.model.reference import Reference
from postprocess.stats.band import LARGEST_LOG, Band, compute_slow_distance, is_regressed
from postprocess.stats.confirmation_rule import compute_confirmation_probability

DETECTION_POWER = 0.9  #: probability with which the smallest slowdown is caught
FARTHEST = 8.0  #: of the possible centers, in their standard deviations
LEAST_TAIL = 1e-12  #: probability of the spreads that are left out, on either side
CENTERS, SPREADS = 25, 49  #: that stand for all; more change nothing that is shown


@dataclass(frozen=True)
class Scatter:
    """Scatter of the launches of a case, as known from its calibration, on the logarithm."""

    spread: float  #: standard deviation between launches, shared with kin
    degrees: float  #: of freedom that it is worth
    launches: int  #: behind the center

    def screened(self, distance: float, shift: float = 0.0) -> float:
        """Compute the probability that one launch of a case that is slower by ``shift`` lies beyond the limit.

        :param distance: of the limit from the center of the reference, on the logarithm
        """
        if self.spread == 0:
            return float(shift > distance)
        standard = self.spread * math.sqrt(1 + 1 / self.launches)
        return float(stdtr(self.degrees, (shift - distance) / standard))

    def condemned(self, distance: float, shift: float = 0.0) -> float:
        """Compute the probability of ``regressed``: screened, and confirmed by fresh launches."""
        if self.spread == 0:
            return float(shift > distance)
        return compute_detection_probability(
            (shift - distance) / self.spread, self.launches, self.degrees
        )

    def smallest(self, distance: float) -> float:
        """Return the shift that is detected with probability :data:`DETECTION_POWER`."""
        return distance + (
            self.spread * compute_detection_margin(self.launches, self.degrees)
            if self.spread
            else 0.0
        )


def compute_detectable_slowdown(
    reference: Reference, limits: Band, measured: Measurement
) -> float | None:
    """Compute the smallest slowdown, as a fraction of the time, that a night detects; None if it detects none.

    A provisional reference condemns only where the best of a launch lies beyond the limit too: the best is
    taken to be as far below the headline as in this launch, to become slower by the same factor, and to scatter
    as the headline does.
    """
    worst = math.inf if find_better_direction(reference.unit) == "lower" else 0.0
    if not is_regressed(limits, None if measured.best is None else worst):
        return None
    distance = compute_slow_distance(reference, limits)
    if limits.provisional and measured.best:
        distance += max(
            math.log(compute_slowdown(measured.value, measured.best, reference.unit)), 0.0
        )
    if reference.exact:
        return math.expm1(distance)
    spread, degrees = reference.moderated
    shift = Scatter(spread, degrees, reference.launches).smallest(distance)
    return math.expm1(min(shift, LARGEST_LOG))


def compute_detection_probability(beyond: float, launches: int, degrees: float) -> float:
    """Compute the probability that a case whose launches lie that far beyond the limit is called regressed.

    :param beyond: from the limit to the center of the reference, shifted by the slowdown; in spreads
    """
    offsets, precisions, weights = integrate_parameters(launches, degrees)
    chance = ndtr(beyond * precisions + offsets)
    return float(np.sum(weights * chance * compute_confirmation_probability(chance)))


@lru_cache(maxsize=4096)
def compute_detection_margin(launches: int, degrees: float) -> float:
    """Compute the excess over the limit, in spreads, that :data:`DETECTION_POWER` is reached at."""
    high = 4.0
    while compute_detection_probability(high, launches, degrees) < DETECTION_POWER:
        high *= 2
    return float(
        brentq(
            lambda x: compute_detection_probability(x, launches, degrees) - DETECTION_POWER,
            0.0,
            high,
            xtol=1e-6,
        )
    )


@lru_cache(maxsize=4096)
def integrate_parameters(launches: int, degrees: float) -> tuple[NDArray, NDArray, NDArray]:
    """Return possible mu and sigma after calibration: (m - mu) / sigma, s / sigma, and the weight of each pair.

    The trapezoidal rule on the normal and on the logarithm of chi-squared, whose densities fade at both ends.
    """
    z = np.linspace(-FARTHEST, FARTHEST, CENTERS)[:, None]
    ends = (float(chdtri(degrees, tail)) for tail in (1 - LEAST_TAIL, LEAST_TAIL))
    logs = np.linspace(*(math.log(end) for end in ends), SPREADS)[None, :]
    density = degrees / 2 * logs - np.exp(logs) / 2
    weights = np.exp(-(z**2) / 2 + density - density.max())
    return z / math.sqrt(launches), np.exp(logs / 2) / math.sqrt(degrees), weights / weights.sum()
