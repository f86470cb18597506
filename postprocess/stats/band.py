"""The reference of a case and its band: the interval that a healthy session leaves with a stated probability.

On y = ln value, the median of a night's launches deviates from the center of its reference with the variance
that :func:`postprocess.stats.sessions.predict_nights` composes from launches, sessions, days and center. The
one-sided limits are quantiles of t with the degrees of freedom of that variance: prediction limits (Hahn and
Meeker, Statistical Intervals, 1991, section 4.7). A case slower than its band is ``suspect``.
:mod:`postprocess.stats.detection` decides what is reported as slow.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from postprocess.base.formats import SECONDS, compute_slowdown, find_better_direction
from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.stats.sessions import SessionValue, predict_nights, summarize_sessions

#: Probability that a healthy night is above the band. Retests clear it (:mod:`postprocess.stats.detection`).
SLOW_ALPHA = 0.03
FAST_ALPHA = 0.001  #: probability that a healthy night is below the band
LARGE_BYTES = 10_000
SMALL_FLOOR = 0.05  #: smallest width of a band, as a fraction of the center
#: The same from ``LARGE_BYTES`` on. With 3 or 4%, nights that are slow as a whole raise too many alarms.
LARGE_FLOOR = 0.045
FLOOR_IN_RESOLUTIONS = 2.0
#: Seconds; a coarser clock widens no band further. It is one step of the ACPI timer, usually the coarsest clock
#: of Linux. The clock behind the references is unknown: a coarser one in this night alone, by milliseconds at
#: worst, must not let everything pass.
COARSEST_CLOCK = 2.8e-7
EXACT_FLOOR = 1e-9  #: smallest width for an exact reference: rounding may differ between machines
#: Smallest half-width of a band: clocks show whole nanoseconds at both ends of an interval
CLOCK_SECONDS = 2e-9
#: largest logarithm of a limit; 1e130 s asserts nothing but is finite, and 1e-130 is not zero
LARGEST_LOG = 300.0


@dataclass(frozen=True)
class Band:
    """The range of healthy values, in the unit of the reference."""

    lower: float
    upper: float
    better: str = "lower"  #: direction, ``lower`` or ``higher``
    blind: bool = False  #: whether the spread of launches is unknown, so that no value can fail

    @property
    def slow_limit(self) -> float:
        """The limit on the side that is worse, in the unit of the reference."""
        return self.upper if self.better == "lower" else self.lower

    @property
    def fast_limit(self) -> float:
        """The limit on the better side, in the unit of the reference."""
        return self.lower if self.better == "lower" else self.upper

    def too_slow(self, value: float) -> bool:
        """Return whether a value is beyond the slow limit. The limit itself is inside."""
        return value > self.upper if self.better == "lower" else value < self.lower

    def too_fast(self, value: float) -> bool:
        """Return whether a value is beyond the fast limit. The limit itself is inside."""
        return value < self.lower if self.better == "lower" else value > self.upper


def compute_band(reference: Reference, resolution: float = 0.0, median_of: int = 1) -> Band:
    """Compute the band of a reference for the median of ``median_of`` launches on another day.

    ``resolution`` is that of the timer or of printed values, in the reference's unit. If the spread of launches
    is unknown, the band is the floor and ``blind``. Simulated time has no spread: the band of an exact
    reference covers only rounding.
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
    """Return whether the spread of launches is unknown: one launch, and no similar cases."""
    alone = reference.launches < 2 and not reference.prior
    return alone and not reference.exact


def compute_slow_distance(reference: Reference, limits: Band) -> float:
    """Return ln(slow limit / center), with slower as positive; infinite without a limit."""
    if limits.slow_limit <= 0:
        return math.inf
    return math.log(compute_slowdown(limits.slow_limit, reference.center, reference.unit))


def convert_to_reframe(reference: Reference, limits: Band) -> tuple[float, float | None, float | None, str]:
    """Return the reference as ReFrame's tuple: center, lower and upper fraction, unit.

    The fraction of the fast side is None, because a case that is too fast is listed but never fails. That of
    the slow side is None too if the reference is blind.
    """
    if limits.blind:
        return reference.center, None, None, reference.unit
    if limits.better == "lower":
        return reference.center, None, limits.upper / reference.center - 1.0, reference.unit
    return reference.center, limits.lower / reference.center - 1.0, None, reference.unit


def find_narrowest_band(case: Case) -> float:
    """Return the smallest width of any band of this case, as a fraction of its center."""
    return LARGE_FLOOR if case.bytes >= LARGE_BYTES else SMALL_FLOOR


def compute_floor(reference: Reference, resolution: float = 0.0) -> float:
    """Compute the smallest width of the band, as a fraction of the center."""
    coarsest = COARSEST_CLOCK if reference.unit == SECONDS else math.inf  # rates are as printed
    coarse = FLOOR_IN_RESOLUTIONS * min(resolution, coarsest) / reference.center
    return max(find_narrowest_band(reference.case), coarse)


def estimate_exact_references(samples: Mapping[Case, Sequence[float]]) -> list[Reference]:
    """Return an exact reference per case, sorted, from headlines in simulated seconds.

    Raises ValueError for a case whose launches differ, because its time is not exact.
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
    """Return a reference per case, sorted, from its headlines in seconds, one per launch.

    Center and spread are of the logarithm: the mean of the means of the sessions, and the spread within
    sessions. One launch has a spread of 0, and its reference is provisional.

    :param sessions: number of the session of each launch; one session if missing
    :raises ValueError: for a case without values or with a value that is not a time
    """
    return [_reference(case, samples[case], (sessions or {}).get(case, ())) for case in sorted(samples)]


def _reference(case: Case, headlines: Sequence[float], sessions: Sequence[int]) -> Reference:
    if not len(headlines) or not all(math.isfinite(value) and value > 0 for value in headlines):
        raise ValueError(f"{case.key}: headlines {list(headlines)} are not one time per launch")
    means = summarize_sessions(headlines, sessions)
    return Reference(case, float(np.exp(means.center)), means.spread, len(headlines))
