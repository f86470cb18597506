"""What a night sees: the smallest slowdown that it calls, alone and together with further sessions.

On y = ln value, its sign such that more is worse; the model is that of :mod:`postprocess.stats.sessions`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import stdtr

from postprocess.model.reference import Reference
from postprocess.stats.band import LARGEST_LOG, compute_floor, is_blind
from postprocess.stats.sequence import LEAST_SESSIONS, compute_gross_distance, compute_run_limit
from postprocess.stats.sessions import Prediction, SessionValue, predict_nights, predict_own

DETECTION_POWER = 0.9  #: probability with which the smallest slowdown is called
#: Slowdown, as a fraction, that a night must call for ``pass`` to mean anything
BLIND = 1.0


@dataclass(frozen=True)
class Scatter:
    """How the value of a night scatters about its reference, on the logarithm."""

    deviation: float  #: standard deviation
    degrees: float  #: of freedom that it is worth

    def screened(self, distance: float, shift: float = 0.0) -> float:
        """Compute the probability that the value of a case that is slower by ``shift`` lies beyond a limit.

        :param distance: of the limit from the center of the reference, on the logarithm
        """
        if self.deviation == 0:
            return float(shift > distance)
        return float(stdtr(self.degrees, (shift - distance) / self.deviation))


def compute_scatter(reference: Reference, median_of: int = 1) -> Scatter | None:
    """Compute how the value of a night of so many launches scatters; None if that is unknown."""
    if is_blind(reference):
        return None
    predicted = predict_nights(reference, [SessionValue(0.0, median_of)])
    return Scatter(predicted.deviation, predicted.degrees)


def compute_detectable_slowdown(
    reference: Reference, median_of: int = 1, sessions: int = 1, resolution: float = 0.0
) -> float | None:
    """Compute the smallest slowdown, as a fraction of the time, that is called; None if none is.

    :param median_of: launches of each session, whose median is its value
    :param sessions: independent ones, from the first slow night on. One calls a gross slowdown only.
    :param resolution: of the timer, or of what is printed, in the unit of the reference
    """
    if is_blind(reference):
        return None
    floor = math.log1p(compute_floor(reference, resolution))
    if reference.exact:
        return math.expm1(floor) if resolution else 0.0
    one = [SessionValue(0.0, median_of)]
    alone = predict_nights(reference, one)
    found = compute_gross_distance(reference, median_of, floor) + alone.limit(1 - DETECTION_POWER)
    own = predict_own(reference, median_of)
    for number in range(LEAST_SESSIONS, sessions + 1):
        limit = max(compute_run_limit(reference, one * number), floor)
        missed = Prediction(own.deviation, alone.degrees).limit((1 - DETECTION_POWER) / number)
        found = min(found, limit + missed)
    return math.expm1(min(found, LARGEST_LOG))
