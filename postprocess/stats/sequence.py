"""The sequential test over sessions: what is called regressed, of the deviations of a case in independent sessions.

One session says that a case was slow at that hour. A gross deviation is called at once; everything else in several
sessions, by their mean: each deviation y_i = ln(value / center) counts no farther than :data:`CLIP` standard
deviations of a session, so that no single one, however far out, decides anything. The mean of the last j sessions, of
3 to 10, is beyond its limit if it exceeds

    t(1 - alpha; d) sqrt(V_j)

with V_j the variance of the mean of j sessions about the center of the reference
(:func:`postprocess.stats.sessions.predict_nights`), which holds what they share: the center, and the day. The mean of
j sessions has 1/sqrt(j) of their spread. So three sessions call what lies far beyond the limit of one, and ten what
lies just beyond it. It is a sum test with a window, near a CUSUM (Page, Continuous inspection schemes, Biometrika 41,
1954) of clipped deviations (Huber's psi; Huber and Ronchetti, Robust Statistics, 2009, section 4.5), whose limits
follow from the number of sessions behind the reference.
``python -m tests.statistical.simulated_sessions`` counts false alarms and misses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from postprocess.model.reference import Reference
from postprocess.stats.band import find_narrowest_band
from postprocess.stats.sessions import SessionValue, predict_nights

LEAST_SESSIONS, LONGEST_RUN = 3, 10  #: whose mean is looked at
#: Minutes that sessions lie apart, or they are one
APART_MINUTES = 20
CLIP = 4.0  #: a deviation counts no farther, in standard deviations of one session
#: Probability that the mean of so many healthy sessions is beyond its limit; all windows together exceed about three
#: times as often: 0.05 false alarms in a night of 1,000 cases, with room for spreads that differ by case
SEQUENCE_ALPHA = 5e-6
#: Probability that a healthy case is called in a night, as simulated
FALSE_CALLS = 5e-5
#: A single session is called if it is slower than all that sessions bring, in their standard deviations
GROSS = 7.0
GROSS_FLOOR = 0.3  #: and by so much at least, as a fraction of the center
LEANING = (
    2.0  #: standard deviations of the mean of some sessions, from which nothing is learned of them
)
STILL_SLOW = 0.5  #: of the mean; a case whose last session is less slow has recovered


@dataclass(frozen=True)
class SlowRun:
    """Sessions whose mean lies beyond its limit, on the logarithm."""

    sessions: int
    mean: float  #: of the deviations, as they were
    limit: float  #: of the mean of the clipped ones


def compute_gross_distance(reference: Reference, launches: int, floor: float = 0.0) -> float:
    """Compute how far a single session lies from the center, on the logarithm, that is called at once.

    :param launches: whose median is its value
    :param floor: least distance, as of a coarse clock
    """
    deviation = predict_nights(reference, [SessionValue(0.0, launches)]).deviation
    return max(GROSS * deviation, math.log1p(GROSS_FLOOR), floor)


def compute_sequence_limit(reference: Reference, some: Sequence[SessionValue]) -> float:
    """Compute the limit of the mean of the clipped deviations of some sessions, on the logarithm."""
    least = math.log1p(find_narrowest_band(reference.case))
    return max(predict_nights(reference, some).limit(SEQUENCE_ALPHA), least)


def find_slow_run(reference: Reference, some: Sequence[SessionValue]) -> SlowRun | None:
    """Find the fewest sessions whose mean lies beyond its limit; None if there are none.

    :param some: sessions of the case, the newest first, each at least :data:`APART_MINUTES` from the next
    """
    logs = clip_deviations(reference, some)
    for number in range(LEAST_SESSIONS, min(len(some), LONGEST_RUN) + 1):
        mean, limit = (
            sum(logs[:number]) / number,
            compute_sequence_limit(reference, some[:number]),
        )
        if mean > limit and some[0].log >= STILL_SLOW * mean:
            return SlowRun(number, sum(each.log for each in some[:number]) / number, limit)
    return None


def clip_deviations(reference: Reference, some: Sequence[SessionValue]) -> list[float]:
    """Return the deviations of sessions, none farther than :data:`CLIP` standard deviations of its own."""
    found = []
    for each in some:
        most = CLIP * predict_nights(reference, [each]).deviation
        found.append(max(min(each.log, most), -most))
    return found


def is_leaning(reference: Reference, some: Sequence[SessionValue]) -> bool:
    """Return whether the last sessions, two or more, lie to one side: then they tell nothing of a healthy case."""
    logs = clip_deviations(reference, some)
    for number in range(2, min(len(some), LONGEST_RUN) + 1):
        predicted = predict_nights(reference, some[:number])
        if abs(sum(logs[:number]) / number) > LEANING * predicted.deviation > 0:
            return True
    return False
