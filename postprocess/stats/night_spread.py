"""What nights tell of the spread between sessions: their deviations go into its variance, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from postprocess.model.reference import Reference, SessionEvidence
from postprocess.stats.detection import compute_median_efficiency
from postprocess.stats.sessions import estimate_session_spread

LEAST_NIGHTS = 3  #: fewer say nothing of a variance about their own median
#: Deviations of nights count this far, in their own robust standard deviations. With 2, a sixth of the variance
#: of sessions as measured is lost: few are slow by much, and the median deviation does not show it.
HUBER = 3.0
#: Of a normal value whose square counts up to HUBER^2: the mean of the square
KEPT = 0.9950
#: Degrees of freedom that a night is worth: 0.9 if sessions are normal, 0.5 if they are as measured
NIGHT_WORTH = 0.75


@dataclass(frozen=True)
class NightSpread:
    """How much the values of a case differ between nights in which it was well, on the logarithm."""

    nights: int
    variance: float  #: of their values: between sessions, and what is left of the launches
    degrees: float  #: of freedom that it is worth
    share: float  #: of the variance between launches that the value of a night has, in the mean


def estimate_night_spread(
    deviations: Sequence[float], launches: Sequence[int]
) -> NightSpread | None:
    """Estimate the spread between nights; None of too few.

    About their own median, so that a case which has moved for good tells of no wider sessions. What lies far
    out counts as no farther than :data:`HUBER` (Huber and Ronchetti, Robust Statistics, 2009, section 5.2, one
    step).

    :param deviations: ln(value / center) of each night, in which the case was well
    :param launches: of each night, whose median is its value
    """
    if len(deviations) < LEAST_NIGHTS:
        return None
    values = np.asarray(deviations, dtype=np.float64)
    apart = np.abs(values - np.median(values))
    most = HUBER * 1.4826 * float(np.median(apart))
    degrees = len(values) - 1.0
    variance = float(np.sum(np.minimum(apart, most) ** 2)) / degrees / KEPT
    share = float(np.mean([compute_median_efficiency(each) ** 2 for each in launches]))
    return NightSpread(len(values), variance, NIGHT_WORTH * degrees, share)


def assume_nights(reference: Reference, more: int) -> Reference:
    """Return the reference as so many more nights, which differ as estimated, would make it.

    What similar cases would add is left out.
    """
    known = reference.evidence or SessionEvidence(1, reference.inverse_launches)
    nights = known.nights + more
    if nights < LEAST_NIGHTS:
        return reference
    degrees = NIGHT_WORTH * (nights - 1)
    added = max(degrees - known.night_degrees, 0.0) * estimate_session_spread(reference) ** 2
    variance = (known.night_degrees * known.night_variance + added) / degrees
    told = replace(known, nights=nights, night_variance=variance, night_degrees=degrees)
    return replace(reference, evidence=told)


def add_night_spread(reference: Reference, told: NightSpread | None) -> Reference:
    """Return the reference with what nights say of the variance between sessions; its center never moves."""
    if told is None or reference.exact:
        return reference
    within = reference.moderated[0] ** 2
    known = reference.evidence or SessionEvidence(1, reference.inverse_launches)
    between = max(told.variance - within * told.share, 0.0)
    nights = replace(known, nights=told.nights, night_variance=between, night_degrees=told.degrees)
    return replace(reference, evidence=nights)
