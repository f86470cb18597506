"""The reference of a case, and the band: the interval that a healthy session leaves with a stated probability.

On y = ln value, the median of a night's launches deviates from the center of its reference with the variance
that :func:`postprocess.stats.sessions.predict_nights` puts together of launches, sessions, days and center. The
one-sided limits are quantiles of t with as many degrees of freedom as that is known by: prediction limits (Hahn
and Meeker, Statistical Intervals, 1991, section 4.7). What is slower than its band is ``suspect``.
:mod:`postprocess.stats.detection` says what is called.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from postprocess.base.formats import SECONDS, compute_slowdown, find_better_direction
from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.stats.sessions import SessionValue, predict_nights, summarize_sessions

#: Probability that a healthy night lies above the band. Fresh launches clear it
#: (:mod:`postprocess.stats.detection`).
SLOW_ALPHA = 0.03
FAST_ALPHA = 0.001  #: that it lies below it
LARGE_BYTES = 10_000
SMALL_FLOOR = 0.05  #: no band is narrower than this fraction of the center
#: The same from ``LARGE_BYTES`` on. With 3 or 4%, nights that are slow as a whole alarm too often.
LARGE_FLOOR = 0.045
FLOOR_IN_RESOLUTIONS = 2.0
#: Seconds; a coarser clock widens no band further. One step of the ACPI timer, as a rule the coarsest clock of
#: Linux. What the references were timed with is not known: a clock that is coarser in this night alone, by
#: milliseconds at worst, must not let everything pass.
COARSEST_CLOCK = 2.8e-7
EXACT_FLOOR = 1e-9  #: of an exact reference: rounding, which another machine may do otherwise
#: A band reaches at least so far: clocks show whole nanoseconds, at both ends of an interval
CLOCK_SECONDS = 2e-9
LARGEST_LOG = 300.0  #: of a limit; 1e130 s asserts nothing, and is finite still; 1e-130 is no zero


@dataclass(frozen=True)
class Band:
    """What a healthy launch may give, in the unit of the reference."""

    lower: float
    upper: float
    better: str = "lower"  #: direction, ``lower`` or ``higher``
    blind: bool = False  #: how launches differ is unknown, so no value can fail

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

    It is that of the median of ``median_of`` launches, on another day than those of the reference. Where
    nothing tells how launches differ it is the floor alone, and ``blind``. Simulated time has no spread, and
    the band of an exact reference is what numbers are rounded to.
    """
    if reference.exact:
        width = max(EXACT_FLOOR * reference.center, CLOCK_SECONDS)
        return Band(max(reference.center - width, 0.0), reference.center + width)
    floor = math.log1p(compute_floor(reference, resolution))
    center = math.log(reference.center)
    predicted = predict_nights(reference, [SessionValue(0.0, median_of)])
    slow = max(predicted.limit(SLOW_ALPHA), floor)
    fast = max(predicted.limit(FAST_ALPHA), floor)
    direction = find_better_direction(reference.unit)
    below, above = (fast, slow) if direction == "lower" else (slow, fast)
    upper = math.exp(min(center + above, LARGEST_LOG))
    lower = math.exp(max(center - below, -LARGEST_LOG))
    return Band(lower, upper, direction, is_blind(reference))


def is_blind(reference: Reference) -> bool:
    """Return whether it is unknown how launches of the case differ: it has one launch, and no similar cases."""
    alone = reference.launches < 2 and not reference.prior
    return alone and not reference.exact


def compute_slow_distance(reference: Reference, limits: Band) -> float:
    """Return ln(slow limit / center), signed so that slower is positive; infinite without a limit."""
    if limits.slow_limit <= 0:
        return math.inf
    return math.log(compute_slowdown(limits.slow_limit, reference.center, reference.unit))


def convert_to_reframe(reference: Reference, limits: Band) -> tuple[float, float | None, float | None, str]:
    """Return the reference as ReFrame's tuple: center, lower and upper fraction, unit.

    The fraction of the fast side is None: a case that is too fast is listed, and never a failure. So
    is that of the slow side where the reference could not fail any value.
    """
    if limits.blind:
        return reference.center, None, None, reference.unit
    if limits.better == "lower":
        return reference.center, None, limits.upper / reference.center - 1.0, reference.unit
    return reference.center, limits.lower / reference.center - 1.0, None, reference.unit


def find_narrowest_band(case: Case) -> float:
    """Return the least width of any band of this case, as a fraction of its center."""
    return LARGE_FLOOR if case.bytes >= LARGE_BYTES else SMALL_FLOOR


def compute_floor(reference: Reference, resolution: float = 0.0) -> float:
    """Compute the least width of the band, as a fraction of the center."""
    coarsest = COARSEST_CLOCK if reference.unit == SECONDS else math.inf  # rates are as printed
    coarse = FLOOR_IN_RESOLUTIONS * min(resolution, coarsest) / reference.center
    return max(find_narrowest_band(reference.case), coarse)


def estimate_exact_references(samples: Mapping[Case, Sequence[float]]) -> list[Reference]:
    """Return one exact reference per case, sorted, from headlines in simulated seconds.

    Raises ValueError for a case whose launches differ: then its time is not exact.
    """
    references = []
    for case in sorted(samples):
        first, *others = samples[case]
        reference = Reference(case, first, 0.0, 1 + len(others), exact=True)
        limits = compute_band(reference)
        if not all(limits.lower <= value <= limits.upper for value in others):
            raise ValueError(f"{case.key}: simulated time does not repeat: {list(samples[case])}")
        references.append(reference)
    return references


def estimate_references(
    samples: Mapping[Case, Sequence[float]], sessions: Mapping[Case, Sequence[int]] | None = None
) -> list[Reference]:
    """Return one reference per case, sorted, from its headlines in seconds, one per launch.

    Center and spread are taken on the logarithm: the mean of the means of the sessions, and the spread within
    them. One launch has no spread: 0, and the reference is provisional.

    :param sessions: number of the session of each launch; without, they are of one
    :raises ValueError: for a case without a value or with one that is not a time
    """
    return [_reference(case, samples[case], (sessions or {}).get(case, ())) for case in sorted(samples)]


def _reference(case: Case, headlines: Sequence[float], sessions: Sequence[int]) -> Reference:
    if not len(headlines) or not all(math.isfinite(value) and value > 0 for value in headlines):
        raise ValueError(f"{case.key}: headlines {list(headlines)} are not one time per launch")
    told = summarize_sessions(headlines, sessions)
    return Reference(case, float(np.exp(told.center)), told.spread, len(headlines))
