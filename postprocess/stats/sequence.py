"""What is called regressed, of the deviations of a case in one session and in several independent ones.

One session says that a case was slow at that hour. A gross deviation is called at once; everything else if each
of the last j sessions, of 3 to 10, lies beyond a limit L(j). A healthy case is beyond L once in a while, j
times in a row hardly ever: exceedances multiply, whatever the tail of a single session, where a far quantile of
one session would have to be guessed. The more sessions, the nearer the limit: three call what is far beyond a
session's spread, ten what is just beyond it.

Sessions share the error of the center, and of the spread, and those of a day what that day brings. With y the
deviations in standard deviations of what is a session's own, c a normal deviate of the shared part, and u the
ratio of true to estimated spread, d u^-2 chi-squared of d degrees,

    P(all of j beyond L) = E over c and u of  Phi(-L / u + rho c)^j

and L(j) is where this is :data:`RUN_ALPHA` (:func:`postprocess.stats.sessions.predict_nights` has the
variances). ``python -m tests.statistical.simulated_sessions`` counts false alarms and misses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import chdtri, log_ndtr

from postprocess.model.reference import Reference
from postprocess.stats.band import find_narrowest_band
from postprocess.stats.sessions import SessionValue, predict_nights, predict_own

LEAST_SESSIONS, LONGEST_RUN = 3, 10  #: that must be slow, one after the other
#: Minutes that sessions lie apart, or they are one
APART_MINUTES = 20
#: Probability that so many healthy sessions are all beyond their limit. The runs of 3 to 10 overlap; together
#: they call about three times as often.
RUN_ALPHA = 1e-5
#: Probability that a healthy case is called in a night, as simulated
FALSE_CALLS = 5e-5
#: A single session is called if it is slower than all that sessions bring, in standard deviations
GROSS = 7.0
GROSS_FLOOR = 0.3  #: and by so much at least, as a fraction of the center
LEANING = 2.0  #: standard deviations of the mean of some sessions, from which nothing is learned of them
FARTHEST = 8.0  #: of the shared deviates, in their standard deviations
LEAST_TAIL = 1e-12  #: probability of the spreads that are left out, on either side
SHARED, SPREADS = (41, 49)  #: deviates and spreads that stand for all; more change nothing that is shown


@dataclass(frozen=True)
class SlowRun:
    """The last sessions of a case, each beyond the limit of so many, on the logarithm."""

    sessions: int
    mean: float  #: of their deviations
    limit: float


def compute_gross_distance(reference: Reference, launches: int, floor: float = 0.0) -> float:
    """Compute how far a single session lies from the center, on the logarithm, that is called at once.

    :param launches: whose median is its value
    :param floor: least distance, as of a coarse clock
    """
    deviation = predict_nights(reference, [SessionValue(0.0, launches)]).deviation
    return max(GROSS * deviation, math.log1p(GROSS_FLOOR), floor)


def compute_run_limit(reference: Reference, some: Sequence[SessionValue]) -> float:
    """Compute the limit that a healthy case exceeds in all of these sessions with :data:`RUN_ALPHA`."""
    least = math.log1p(find_narrowest_band(reference.case))
    together, number = predict_nights(reference, some), len(some)
    own = predict_own(reference, min(value.launches for value in some)).deviation
    if not own or not together.degrees:
        return math.inf
    shared = math.sqrt(max(together.deviation**2 - own**2 / number, 0.0)) / own
    factor = find_run_factor(number, round(shared, 2), float(f"{together.degrees:.2g}"))
    return max(factor * own, least)


@lru_cache(maxsize=4096)
def find_run_factor(number: int, shared: float, degrees: float) -> float:
    """Find the limit that so many sessions are all beyond with :data:`RUN_ALPHA`, in their own deviations.

    :param shared: standard deviation of what they share, relative to what is their own
    """
    deviates = np.linspace(-FARTHEST, FARTHEST, SHARED)[:, None]
    precisions, weights = _integrate_spreads(degrees)
    weights = weights * np.exp(-(deviates**2) / 2) / np.sum(np.exp(-(deviates**2) / 2))

    def excess(limit: float) -> float:
        logs = number * log_ndtr(-limit * precisions + shared * deviates)
        return float(np.sum(weights * np.exp(logs))) - RUN_ALPHA

    high = 4.0
    while excess(high) > 0:
        high *= 2
    return float(scipy.optimize.brentq(excess, 0.0, high, xtol=1e-4))


def _integrate_spreads(degrees: float) -> tuple[NDArray, NDArray]:
    """Return possible ratios of estimated to true spread, and the weight of each.

    The trapezoidal rule on the logarithm of chi-squared, whose density fades at both ends.
    """
    low, high = (math.log(chdtri(degrees, tail)) for tail in (1 - LEAST_TAIL, LEAST_TAIL))
    logs = np.linspace(low, high, SPREADS)[None, :]
    density = degrees / 2 * logs - np.exp(logs) / 2
    weights = np.exp(density - density.max())
    return np.exp(logs / 2) / math.sqrt(degrees), weights / weights.sum()


def find_slow_run(reference: Reference, some: Sequence[SessionValue]) -> SlowRun | None:
    """Find the fewest sessions that are all beyond their limit; None if there are none.

    :param some: sessions of the case, the newest first, each at least :data:`APART_MINUTES` from the next
    """
    for number in range(LEAST_SESSIONS, min(len(some), LONGEST_RUN) + 1):
        run = some[:number]
        least = min(value.log for value in run)
        if least <= 0:
            return None
        if least > (limit := compute_run_limit(reference, run)):
            return SlowRun(number, sum(value.log for value in run) / number, limit)
    return None


def is_leaning(reference: Reference, some: Sequence[SessionValue]) -> bool:
    """Return whether the last sessions, two or more, lie to one side: they say nothing about a healthy case."""
    for number in range(2, min(len(some), LONGEST_RUN) + 1):
        mean = sum(value.log for value in some[:number]) / number
        if abs(mean) > LEANING * predict_nights(reference, some[:number]).deviation > 0:
            return True
    return False
