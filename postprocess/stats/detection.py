"""Detection of slowdowns: in one session, over several, and by retests; its false alarms and its power.

One session says that a case was slow at that hour. A gross deviation is reported at once; any other if each of
the last j sessions, 3 to 10, is beyond a limit L(j). A healthy case is beyond L occasionally, but hardly ever j
times in a row: the probabilities multiply, whatever the tail of a single session, whereas a far quantile of one
session would have to be guessed. The more sessions, the lower the limit: three detect what is far beyond a
session's spread, ten what is just beyond it.

Sessions share the errors of the center and of the spread, and those of one day share the day's effect. With y
the deviations in units of a session's own standard deviation, c a normal deviate of the shared part, and u the
ratio of true to estimated spread, d u^-2 chi-squared with d degrees of freedom,

  P(all of j beyond L) = E over c and u of  Phi(-L / u + rho c)^j

and L(j) is where this is :data:`RUN_ALPHA` (:func:`postprocess.stats.sessions.predict_nights` has the
variances). ``python -m tests.statistical.simulated_sessions`` counts false alarms and misses.

All deviations are of y = ln value, signed so that more is worse, in the model of
:mod:`postprocess.stats.sessions`.

Retests are a curtailed test (Wald, Sequential Analysis, 1947): at most six launches, of which five must be
slow, ended as soon as the outcome is certain. The first two clear most cases that look slow by chance, so
launches go to the few that may really be slow. Requiring five costs little power: a launch of a case that is
slower by more than its band is slow with a probability near one. It allows a band that is left more often,
which helps because a slowdown is overlooked in the first launch. ``python -m
tests.statistical.simulated_nights`` counts both.

p is the probability that a healthy night is as slow or slower, by the prediction distribution behind the band.
q is the share of false alarms if all cases at least as unlikely were alarms
(:mod:`postprocess.stats.false_discovery`). It informs; no verdict depends on it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from postprocess.base.formats import compute_slowdown, find_better_direction
from postprocess.model.reference import Reference
from postprocess.model.verdict import CaseResult, Verdict, describe_unjudged
from postprocess.stats.band import LARGEST_LOG, compute_floor, find_narrowest_band, is_blind
from postprocess.stats.false_discovery import compute_q_values
from postprocess.stats.sessions import Prediction, SessionValue, predict_nights, predict_own

LEAST_SESSIONS, LONGEST_RUN = 3, 10  #: number of successive slow sessions
#: Minutes between two sessions; launches closer together are one session
APART_MINUTES = 20
#: Probability that so many healthy sessions are all beyond their limit. The runs of 3 to 10 overlap; together
#: their probability is about three times as large.
RUN_ALPHA = 1e-5
WITHIN = 1e-6  #: share of a limit, or deviations below one, by which it may be wrong
#: Probability that a healthy case is reported as slow in a night, as simulated
FALSE_CALLS = 5e-5
#: Standard deviations at which a single session is reported: more than sessions ever differ
GROSS = 7.0
GROSS_FLOOR = 0.3  #: the smallest such deviation, as a fraction of the center
#: standard deviations of the mean of sessions from which on the reference does not learn from them
LEANING = 2.0
FARTHEST = 8.0  #: farthest shared deviates, in their standard deviations
LEAST_TAIL = 1e-12  #: probability of the spreads left out, on either side
#: numbers of deviates and spreads in the integral; more do not change the shown digits
SHARED, SPREADS = (41, 49)


@dataclass(frozen=True)
class SlowRun:
    """The last sessions of a case, each beyond the limit for their number, on the logarithm."""

    sessions: int
    mean: float  #: mean of their deviations
    limit: float


def compute_gross_distance(reference: Reference, launches: int, floor: float = 0.0) -> float:
    """Compute the deviation of a single session that is reported at once, on the logarithm.

    :param launches: whose median is the session's value
    :param floor: smallest distance, as with a coarse clock
    """
    deviation = predict_nights(reference, [SessionValue(0.0, launches)]).deviation
    return max(GROSS * deviation, math.log1p(GROSS_FLOOR), floor)


def compute_run_limit(reference: Reference, some: Sequence[SessionValue]) -> float:
    """Compute the limit that a healthy case exceeds in all of these sessions with :data:`RUN_ALPHA`."""
    least = math.log1p(find_narrowest_band(reference.case))
    together, number = predict_nights(reference, some), len(some)
    own_deviation = predict_own(reference, min(value.launches for value in some)).deviation
    if not own_deviation or not together.degrees:
        return math.inf
    shared = math.sqrt(max(together.deviation**2 - own_deviation**2 / number, 0.0)) / own_deviation
    factor = find_run_factor(number, round(shared, 2), float(f"{together.degrees:.2g}"))
    return max(factor * own_deviation, least)


@lru_cache(maxsize=4096)
def find_run_factor(number: int, shared: float, degrees: float) -> float:
    """Find the limit that ``number`` sessions all exceed with :data:`RUN_ALPHA`, in their own deviations.

    :param shared: standard deviation of the shared part, relative to a session's own
    :raises ValueError: if there is none, as with numbers that are too large.
    """
    deviates = np.linspace(-FARTHEST, FARTHEST, SHARED)[:, None]
    precisions, weights = _integrate_spreads(degrees)
    weights = weights * np.exp(-(deviates**2) / 2) / np.sum(np.exp(-(deviates**2) / 2))

    def excess(limit: float) -> float:
        logs = number * scipy.special.log_ndtr(-limit * precisions + shared * deviates)
        return float(np.sum(weights * np.exp(logs))) - RUN_ALPHA

    low, high = 0.0, 4.0
    if not excess(low) > 0:  # NaN: each middle would be too high
        raise ValueError(f"{degrees} degrees of freedom yield no limit")
    while excess(high) > 0:
        high *= 2
    while high - low > WITHIN * max(1.0, low):  # floating point separates no large ones by less
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return (low + high) / 2


def _integrate_spreads(degrees: float) -> tuple[NDArray, NDArray]:
    """Return possible ratios of estimated to true spread, and the weight of each.

    Uses the trapezoidal rule on the logarithm of chi-squared, whose density fades at both ends.
    """
    low, high = (math.log(scipy.special.chdtri(degrees, tail)) for tail in (1 - LEAST_TAIL, LEAST_TAIL))
    logs = np.linspace(low, high, SPREADS)[None, :]
    density = degrees / 2 * logs - np.exp(logs) / 2
    weights = np.exp(density - density.max())
    return np.exp(logs / 2) / math.sqrt(degrees), weights / weights.sum()


def find_slow_run(reference: Reference, some: Sequence[SessionValue]) -> SlowRun | None:
    """Find the smallest number of last sessions that are all beyond their limit; None if there is none.

    :param some: sessions of the case, the newest first, at least :data:`APART_MINUTES` apart
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
    """Return whether the last sessions, two or more, lie to one side: the reference must not learn them."""
    for number in range(2, min(len(some), LONGEST_RUN) + 1):
        mean = sum(value.log for value in some[:number]) / number
        if abs(mean) > LEANING * predict_nights(reference, some[:number]).deviation > 0:
            return True
    return False


DETECTION_POWER = 0.9  #: probability with which the smallest detectable slowdown is detected
TRIED_RUNS = (LEAST_SESSIONS, 6, LONGEST_RUN)  #: stand for all lengths: those between detect hardly more
#: Slowdown, as a fraction, that a night must detect for ``pass`` to mean anything
BLIND = 1.0


@dataclass(frozen=True)
class Scatter:
    """How the value of a night scatters about its reference, on the logarithm."""

    deviation: float  #: standard deviation
    degrees: float  #: degrees of freedom of the deviation

    def screened(self, distance: float, shift: float = 0.0) -> float:
        """Compute the probability that the value of a case slower by ``shift`` is beyond a limit.

        :param distance: distance of the limit from the center of the reference, on the logarithm
        """
        if self.deviation == 0:
            return float(shift > distance)
        return float(scipy.special.stdtr(self.degrees, (shift - distance) / self.deviation))


def compute_scatter(reference: Reference, median_of: int = 1) -> Scatter | None:
    """Compute the scatter of a night with ``median_of`` launches; None if it is unknown."""
    if is_blind(reference):
        return None
    predicted = predict_nights(reference, [SessionValue(0.0, median_of)])
    return Scatter(predicted.deviation, predicted.degrees)


def compute_detectable_slowdown(
    reference: Reference, median_of: int = 1, sessions: int = 1, resolution: float = 0.0
) -> float | None:
    """Compute the smallest slowdown, as a fraction of the time, that is detected; None if none is.

    :param median_of: launches of each session, whose median is its value
    :param sessions: independent sessions from the first slow night on; one detects a gross slowdown only
    :param resolution: resolution of the timer or of printed values, in the unit of the reference
    """
    if is_blind(reference):
        return None
    floor = math.log1p(compute_floor(reference, resolution))
    if reference.exact:
        return math.expm1(floor) if resolution else 0.0
    one = [SessionValue(0.0, median_of)]
    alone = predict_nights(reference, one)
    distance = compute_gross_distance(reference, median_of, floor) + alone.limit(1 - DETECTION_POWER)
    prediction = predict_own(reference, median_of)
    for number in [run for run in TRIED_RUNS if run <= sessions]:
        limit = max(compute_run_limit(reference, one * number), floor)
        missed = Prediction(prediction.deviation, alone.degrees).limit((1 - DETECTION_POWER) / number)
        distance = min(distance, limit + missed)
    return math.expm1(min(distance, LARGEST_LOG))


SLOW_TO_CONFIRM = 5  #: slow launches that confirm a regression
FINE_TO_CLEAR = 2  #: launches within the band that clear it
#: Launches per pass: the fewest that can clear, then those missing to confirm, then one more each.
PASSES = (FINE_TO_CLEAR, SLOW_TO_CONFIRM - FINE_TO_CLEAR, *(FINE_TO_CLEAR - 1) * (1,))


def is_cleared(fine: Any) -> Any:
    """Return whether ``fine`` launches within the band clear the case; accepts numbers and arrays."""
    return fine >= FINE_TO_CLEAR


def is_decided(slow: Any, fine: Any) -> Any:
    """Return whether no further launch can change the decision."""
    return (slow >= SLOW_TO_CONFIRM) | is_cleared(fine)


def compute_confirmation_probability(chance: Any) -> Any:
    """Compute the probability that retests confirm a slowdown, if each is slow with this probability.

    SLOW_TO_CONFIRM launches are slow before FINE_TO_CLEAR are not, which means that at least SLOW_TO_CONFIRM of
    SLOW_TO_CONFIRM + FINE_TO_CLEAR - 1 would be slow.
    """
    return scipy.special.betainc(SLOW_TO_CONFIRM, FINE_TO_CLEAR, chance)


def extract_scatter(result: CaseResult) -> Scatter | None:
    """Return the scatter of a result about its reference; None if it is unknown or zero."""
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

    :raises ValueError: if the result is not a probability, as with numbers that are too large.
    """
    scatter = extract_scatter(result)
    if scatter is None or not result.value or not result.reference:
        return None
    chance = scatter.screened(math.log(compute_slowdown(result.value, result.reference, result.unit)))
    if not 0 <= chance <= 1:
        raise ValueError(f"{chance} is not a probability")
    return chance


def add_q_values(results: Sequence[CaseResult]) -> list[CaseResult]:
    """Return the results with the q-value of each judged one among all of them.

    A result whose probability cannot be computed becomes ``incorrect`` with the reason, and affects no other.
    """
    judged = list(results)
    chances: dict[int, float] = {}
    for place, result in enumerate(results):
        try:
            if (chance := compute_slow_probability(result)) is not None:
                chances[place] = chance
        except Exception as error:
            judged[place] = replace(result, verdict=Verdict.INCORRECT, reason=describe_unjudged(error))
    if chances:
        for place, q in zip(chances, compute_q_values([*chances.values()]), strict=True):
            judged[place] = replace(results[place], q=float(q))
    return judged


def compute_tail(chances: Sequence[float], count: int) -> float:
    """Compute the probability that at least ``count`` of independent events happen, given their chances.

    The distribution is exact (Poisson's binomial), computed by convolution.

    :param chances: probability of each event, from 0 to 1
    """
    if count <= 0:
        return 1.0
    distribution = np.ones(1)
    for chance in chances:
        distribution = np.convolve(distribution, (1 - chance, chance))
    return float(min(1.0, distribution[count:].sum()))


def compare_shares(hits: int, of: int, earlier_hits: int, earlier_of: int) -> float:
    """Compute the probability that at least ``hits`` of all hits fall in the ``of`` current events by chance.

    This is Fisher's exact test, one-sided: the hypergeometric tail.
    """
    return float(scipy.stats.hypergeom.sf(hits - 1, of + earlier_of, hits + earlier_hits, of))
