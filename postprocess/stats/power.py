"""Detection power of a nightly run: the smallest detectable slowdown, and the false alarm rate.

On y = ln headline, its sign such that more is worse; the model is that of :mod:`postprocess.stats.detection`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import scipy
from scipy.special import stdtr

from postprocess.base.units import compute_slowdown, find_better_direction
from postprocess.model.measurement import Measurement
from postprocess.model.reference import Reference
from postprocess.stats.band import (
    LARGEST_LOG,
    Band,
    compute_call_limit,
    compute_slow_distance,
    is_regressed,
)
from postprocess.stats.detection import compute_detection_probability, compute_standard_error
from postprocess.stats.sessions import predict_nights

DETECTION_POWER = 0.9  #: probability with which the smallest slowdown is caught


def compute_band_scatter(reference: Reference, median_of: int = 1) -> tuple[float, float]:
    """Compute the spread of a launch, and its degrees of freedom, that the band of a night amounts to.

    Of independent launches of this spread the prediction limit is that of the band, which contains what
    sessions differ by.
    """
    if reference.session_prior is None or reference.launches < 2:
        return reference.moderated
    predicted = predict_nights(reference, [median_of])
    standard = compute_standard_error(reference.launches, median_of)
    return predicted.deviation / standard, predicted.degrees


@dataclass(frozen=True)
class Scatter:
    """Scatter of the launches of a case, as known from its calibration, on the logarithm."""

    spread: float  #: standard deviation between launches, shared with similar cases
    degrees: float  #: of freedom that it is worth
    launches: int  #: behind the center
    median_of: int = 1  #: launches of one value of a night

    def screened(self, distance: float, shift: float = 0.0) -> float:
        """Compute the probability that the value of a case that is slower by ``shift`` lies beyond the limit.

        :param distance: of the limit from the center of the reference, on the logarithm
        """
        if self.spread == 0:
            return float(shift > distance)
        standard = self.spread * compute_standard_error(self.launches, self.median_of)
        return float(stdtr(self.degrees, (shift - distance) / standard))

    def confirmed(self, distance: float, shift: float = 0.0) -> float:
        """Compute the probability of ``regressed``: screened, and confirmed by fresh launches."""
        if self.spread == 0:
            return float(shift > distance)
        return compute_detection_probability(
            (shift - distance) / self.spread, self.launches, self.degrees, self.median_of
        )

    def smallest(self, distance: float) -> float:
        """Return the shift that is detected with probability :data:`DETECTION_POWER`."""
        return distance + (
            self.spread * compute_detection_margin(self.launches, self.degrees, self.median_of)
            if self.spread
            else 0.0
        )


def compute_detectable_slowdown(
    reference: Reference, limits: Band, measured: Measurement, median_of: int = 1
) -> float | None:
    """Compute the smallest slowdown, as a fraction of the time, that a night detects; None if it detects none.

    A reference of few launches fails a launch only where its best trial lies beyond the limit too. The best is
    assumed to be as far below the headline as in this launch, to become slower by the same factor, and to
    scatter as the headline does.
    """
    worst = math.inf if find_better_direction(reference.unit) == "lower" else 0.0
    if not is_regressed(limits, None if measured.best is None else worst):
        return None
    distance = compute_slow_distance(reference, limits)
    if limits.few_launches and measured.best:
        distance += max(
            math.log(compute_slowdown(measured.value, measured.best, reference.unit)), 0.0
        )
    if reference.exact:
        return math.expm1(distance)
    if reference.session_prior is not None:
        call = compute_call_distance(reference, limits, median_of)
        shift = predict_nights(reference, [median_of]).limit(1.0 - DETECTION_POWER)
        beyond = max(distance, call) if not limits.few_launches else distance
        return math.expm1(min(beyond + shift, LARGEST_LOG))
    spread, degrees = reference.moderated
    shift = Scatter(spread, degrees, reference.launches, median_of).smallest(distance)
    return math.expm1(min(shift, LARGEST_LOG))


def compute_call_distance(reference: Reference, limits: Band, median_of: int = 1) -> float:
    """Compute how far the call limit of one night lies from the center, on the logarithm.

    :param limits: of the case; their floor, of the resolution, is one of the call limit too
    """
    call = compute_call_limit(reference, values=[median_of])
    distance = math.log(compute_slowdown(call, reference.center, reference.unit))
    return max(distance, compute_slow_distance(reference, limits))


@lru_cache(maxsize=4096)
def compute_detection_margin(launches: int, degrees: float, median_of: int = 1) -> float:
    """Compute the excess over the limit, in spreads, that :data:`DETECTION_POWER` is reached at."""
    high = 4.0

    def compute_missing_power(beyond: float) -> float:
        found = compute_detection_probability(beyond, launches, degrees, median_of)
        return found - DETECTION_POWER

    while compute_missing_power(high) < 0:
        high *= 2
    return float(scipy.optimize.brentq(compute_missing_power, 0.0, high, xtol=1e-6))
