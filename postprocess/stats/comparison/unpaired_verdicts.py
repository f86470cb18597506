"""Verdicts on two sides that were measured in sessions of their own, one after the other.

What the machine did in between does not cancel, as it does in pairs (:mod:`.paired_verdicts`), so a
difference counts only beyond what two sessions differ by anyway (:mod:`postprocess.stats.sessions`). No
number of launches proves two sides the same, or one not slower, when all of one side's are of one hour: of
these verdicts there are only ``slower``, ``faster`` and ``undecided``. Among all cases called ``slower``, 5% at
most are false, on average (Benjamini and Hochberg, JRSS B 57, 1995).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from scipy.special import stdtr

from postprocess.stats.comparison.paired_verdicts import ERROR, EXACT, PairedVerdict
from postprocess.stats.sessions import Prediction


@dataclass(frozen=True)
class UnpairedCase:
    """The difference of a case between two sides."""

    difference: float  #: ln(new / old) of the means of sessions; above 0 is worse
    #: how far the side lies off by its sessions; None: nothing is known of that
    old: Prediction | None
    new: Prediction | None
    margin: float  #: on the logarithm
    exact: bool = False  #: whether time is simulated: any difference is one

    @property
    def noise(self) -> Prediction | None:
        """How far the difference lies off; None if nothing is known of it.

        Both sides may know their noise from the same reference, so their degrees of freedom do not add up.
        """
        if self.old is None or self.new is None:
            return None
        deviation = math.hypot(self.old.deviation, self.new.deviation)
        return Prediction(deviation, min(self.old.degrees, self.new.degrees))


@dataclass(frozen=True)
class UnpairedResult:
    """The verdict on a case, and what it rests on."""

    verdict: PairedVerdict
    limits: tuple[float, float] | None  #: of the difference, 90% between them
    q: float | None  #: of being slower, among all cases
    unseen: float | None  #: the difference that two sessions of the case reach without a cause


def judge_unpaired(cases: Sequence[UnpairedCase]) -> list[UnpairedResult]:
    """Judge all cases of an unpaired comparison."""
    if not cases:
        return []
    worse = np.array([compute_probability(each, each.difference) for each in cases])
    better = np.array([compute_probability(each, -each.difference) for each in cases])
    slower_q, faster_q = map(scipy.stats.false_discovery_control, (worse, better))
    return [
        judge_case(each, float(slow), float(fast))
        for each, slow, fast in zip(cases, slower_q, faster_q, strict=True)
    ]


def compute_probability(case: UnpairedCase, difference: float) -> float:
    """Compute the probability that an unchanged case differs as far to the same side; 1 if that is unknown."""
    if case.exact:
        return float(difference <= EXACT)
    noise = case.noise
    if noise is None or noise.deviation <= 0:
        return 1.0
    return float(stdtr(noise.degrees, -difference / noise.deviation))


def judge_case(case: UnpairedCase, slower_q: float, faster_q: float) -> UnpairedResult:
    """Judge one case."""
    noise = Prediction(0.0, 0.0) if case.exact else case.noise
    if noise is None or (noise.deviation <= 0 and not case.exact):
        return UnpairedResult(PairedVerdict.UNDECIDED, None, None, None)
    reach = noise.limit(ERROR)
    lower, upper = case.difference - reach, case.difference + reach
    verdict = PairedVerdict.UNDECIDED
    if lower > 0 and case.difference > case.margin / 2 and slower_q <= ERROR:
        verdict = PairedVerdict.SLOWER
    elif upper < 0 and case.difference < -case.margin / 2 and faster_q <= ERROR:
        verdict = PairedVerdict.FASTER
    return UnpairedResult(verdict, (lower, upper), slower_q, reach)
