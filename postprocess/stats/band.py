"""The band around a reference: the interval that a healthy launch leaves with a stated probability.

On y = ln headline, n launches have the mean m and the standard deviation s with d degrees of freedom. A new
launch exceeds the one-sided prediction limit m + t(1 - alpha; d) s sqrt(1 + 1/n) with probability alpha,
averaged over calibrations (Hahn and Meeker, Statistical Intervals, 1991, section 4.7). Of the launches alone,
d is n - 1; what other cases say of the spread adds to it (:mod:`postprocess.stats.shrinkage`).
The limit of a median of several launches is nearer (:func:`postprocess.stats.detection.compute_limit_factor`).
Sessions differ by more than their launches: where something is known of them, V of
:func:`postprocess.stats.sessions.predict_nights` stands in the place of s^2 (1 + 1/n).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from postprocess.base.units import SECONDS, compute_slowdown, find_better_direction
from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.stats.detection import compute_limit_factor
from postprocess.stats.sessions import TAIL_DEGREES, predict_nights

#: Probability that a healthy launch lies above the band. Fresh launches clear it
#: (:mod:`postprocess.stats.confirmation_rule`).
SLOW_ALPHA = 0.03
FAST_ALPHA = 0.001  #: that it lies below it; also on both sides of a reference of few launches
#: Probability that a night of a healthy case, or the mean of several, lies beyond the call limit: 0.05 false
#: alarms a night of 1,000 cases, with some room
CALL_ALPHA = 4e-5
LARGE_BYTES = 10_000
SMALL_FLOOR = 0.05  #: no band is narrower than this fraction of the center
#: The same from ``LARGE_BYTES`` on. With 3 or 4%, nights that are slow as a whole alarm too often.
LARGE_FLOOR = 0.045
#: Few launches can assert a factor of four at best: a virtual machine whose two CPUs are now the threads of one
#: core and now two cores was seen to differ by 3.4 from one minute to another, with nothing else changed.
FEW_FLOOR = 3.0
FLOOR_IN_RESOLUTIONS = 2.0
#: Seconds; a coarser clock widens no band further. One step of the ACPI timer, as a rule the coarsest clock of
#: Linux. What the references were timed with is not known: a clock that is coarser in this night alone, by
#: milliseconds at worst, must not let everything pass.
COARSEST_CLOCK = 2.8e-7
EXACT_FLOOR = 1e-9  #: of an exact reference: rounding, which another machine may do otherwise
#: A band reaches at least so far: clocks tell whole nanoseconds, at both ends of an interval
CLOCK_SECONDS = 2e-9
LARGEST_LOG = 300.0  #: of a limit; 1e130 s asserts nothing, and is finite still; 1e-130 is no zero


@dataclass(frozen=True)
class Band:
    """What a healthy launch may give, in the unit of the reference."""

    lower: float
    upper: float
    few_launches: bool  #: the reference has too few of them: only gross changes are asserted
    better: str = "lower"  #: direction, ``lower`` or ``higher``
    #: Of a single launch, which does not show how launches differ: nothing fails by it
    blind: bool = False

    @property
    def slow_limit(self) -> float:
        """The limit on the side that is worse, in the unit of the reference."""
        return self.upper if self.better == "lower" else self.lower

    @property
    def fast_limit(self) -> float:
        """The limit on the other side, in the unit of the reference."""
        return self.lower if self.better == "lower" else self.upper

    def too_slow(self, value: float) -> bool:
        """Return whether a value lies outside on the side that is worse. A limit itself is inside."""
        return value > self.upper if self.better == "lower" else value < self.lower

    def too_fast(self, value: float) -> bool:
        """Return whether a value lies outside on the other side."""
        return value < self.lower if self.better == "lower" else value > self.upper


def compute_band(reference: Reference, resolution: float = 0.0, median_of: int = 1) -> Band:
    """Compute the band of a reference. ``resolution``, of the timer or of what is printed, is in its unit.

    It is that of the median of ``median_of`` launches.

    Two launches or three give a band that may span powers of ten: they say no more. One launch
    says nothing of the spread: its band is the floor alone, and ``blind``. Simulated time has no
    spread, and the band of an exact reference is what numbers are rounded to.
    """
    if reference.exact:
        width = max(EXACT_FLOOR * reference.center, CLOCK_SECONDS)
        return Band(max(reference.center - width, 0.0), reference.center + width, False)
    few = reference.few_launches
    floor = _floor(reference, resolution)
    center = math.log(reference.center)
    alpha = FAST_ALPHA if few else SLOW_ALPHA
    slow = max(_width(reference, alpha, median_of), math.log1p(floor))
    fast = max(_width(reference, FAST_ALPHA, median_of), math.log1p(floor))
    direction = find_better_direction(reference.unit)
    below, above = (fast, slow) if direction == "lower" else (slow, fast)
    upper = math.exp(min(center + above, LARGEST_LOG))
    lower = math.exp(max(center - below, -LARGEST_LOG))
    return Band(lower, upper, few, direction, reference.launches < 2)


def compute_call_limit(
    reference: Reference, resolution: float = 0.0, values: Sequence[int] = (1,)
) -> float:
    """Compute the limit beyond which the mean of consecutive nights is called regressed, in the unit.

    The mean is that of the logarithms. The limit of several nights may lie inside the band of one.

    :param values: launches of each night, whose median is its value
    """
    limits = compute_band(reference, resolution, min(values))
    if reference.exact or limits.blind:
        return limits.slow_limit
    if reference.session_prior is None:
        distance = _width(reference, CALL_ALPHA, min(values))
    else:
        distance = predict_nights(reference, values).limit(CALL_ALPHA, TAIL_DEGREES)
    distance = min(max(distance, math.log1p(_floor(reference, resolution))), LARGEST_LOG)
    sign = 1.0 if limits.better == "lower" else -1.0
    return math.exp(
        min(max(math.log(reference.center) + sign * distance, -LARGEST_LOG), LARGEST_LOG)
    )


def compute_slow_distance(reference: Reference, limits: Band) -> float:
    """Return ln(slow limit / center), signed so that slower is positive; infinite without a limit."""
    if limits.slow_limit <= 0:
        return math.inf
    return math.log(compute_slowdown(limits.slow_limit, reference.center, reference.unit))


def is_regressed(limits: Band, best: float | None) -> bool:
    """Return whether a launch whose headline lies on the slow side of the band has regressed.

    Few launches know little of the machine's bad moments, and a mean is moved by a single one. A slower
    routine is slower in every trial: a reference of few launches fails a launch only where even its
    ``best`` trial lies outside, and never where a program reports only a mean (None). A reference of a
    single launch fails nothing.
    """
    if limits.blind:
        return False
    return not limits.few_launches or (best is not None and limits.too_slow(best))


def convert_to_reframe(
    reference: Reference, limits: Band, best: float | None
) -> tuple[float, float | None, float | None, str]:
    """Return the reference as ReFrame's tuple: center, lower and upper fraction, unit.

    The fraction of the fast side is None: a case that is too fast is listed, and never a failure. So
    is that of the slow side where the reference could not fail any headline.
    """
    if not is_regressed(limits, best):
        return reference.center, None, None, reference.unit
    if limits.better == "lower":
        return reference.center, None, limits.upper / reference.center - 1.0, reference.unit
    return reference.center, limits.lower / reference.center - 1.0, None, reference.unit


def _width(reference: Reference, alpha: float, median_of: int) -> float:
    """Compute the distance of the limit from the center, in natural logarithms."""
    n = reference.launches
    if n < 2:
        return 0.0
    if reference.session_prior is not None:
        return predict_nights(reference, [median_of]).limit(alpha)
    return float(compute_prediction_distance(*reference.moderated, n, alpha, median_of))


def compute_prediction_distance(
    spread: Any, degrees: float, launches: int, alpha: float, median_of: int = 1
) -> Any:
    """Compute the distance of the one-sided limit from the mean of launches; ``spread`` may be an array."""
    return compute_limit_factor(launches, degrees, alpha, median_of) * spread


def find_narrowest_band(case: Case) -> float:
    """Return the least width of any band of this case, as a fraction of its center."""
    return LARGE_FLOOR if case.bytes >= LARGE_BYTES else SMALL_FLOOR


def _floor(reference: Reference, resolution: float) -> float:
    """Compute the least width of the band, as a fraction of the center."""
    practical = FEW_FLOOR if reference.few_launches else find_narrowest_band(reference.case)
    coarsest = COARSEST_CLOCK if reference.unit == SECONDS else math.inf  # rates are as printed
    return max(practical, FLOOR_IN_RESOLUTIONS * min(resolution, coarsest) / reference.center)
