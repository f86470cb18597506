"""Detect drift of a case since its reference was last changed: steps that stay, and slow creep.

A night's verdict holds one night against a band that is as wide as one night's noise. Many nights tell smaller
changes: a step by the fit of levels, a creep, or a machine that was slower from the reference's first night on,
by the cumulative sum of what lies above the reference. Both are told only if they are of a size that matters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.special import stdtr

from postprocess.analyses.drift.changepoints import (
    LIMIT,
    Creep,
    Floats,
    compute_cusums,
    estimate_robust_spread,
    find_change_points,
)
from postprocess.base.units import find_better_direction
from postprocess.model.case import Case
from postprocess.model.routines.benchmark import PRINTED
from postprocess.model.routines.mpicost import OWN_PROGRAMS

LEAST = 0.03  #: change of the level that is told, as a fraction
LEAST_STEPS = 2  #: and in the smallest steps that a program prints
LEAST_NIGHTS = 5  #: that a change has lasted
ENOUGH_NIGHTS = 10  #: since the reference was changed, before anything is said
RECENT = 10  #: nights whose median is the level now
#: Standard error of a median over that of a mean, of normal noise
MEDIAN_ERROR = math.sqrt(math.pi / 2)
NORMAL_95 = 1.96
STEP, CREEP = "step", "creep"


@dataclass(frozen=True, eq=False)
class NightSeries:
    """One case, night by night in order of time. All sequences are of one length."""

    case: Case
    unit: str
    sessions: Sequence[str]
    started: Sequence[str]  #: UTC
    values: Floats  #: headline of each night, in ``unit``
    references: Floats
    lower: Floats
    upper: Floats
    epoch: int  #: first night that was held against today's reference

    @cached_property
    def logs(self) -> Floats:
        """Logarithm of each night's slowdown against its reference; above 0 is worse in every unit."""
        sign = 1.0 if find_better_direction(self.unit) == "lower" else -1.0
        return sign * np.log(self.values / self.references)

    @property
    def least(self) -> float:
        """Change of the logarithm that is told. A printed digit that turns over is no change."""
        digits = 0.0
        if self.case.program not in OWN_PROGRAMS:
            printed = PRINTED[self.unit]
            digits = LEAST_STEPS * printed / float(np.median(self.values[self.epoch :]))
        return math.log1p(max(LEAST, digits))


@dataclass(frozen=True)
class DriftFinding:
    """A change of a case. Nights are counted from the first one of the series; sizes are on the logarithm."""

    kind: str  #: ``step`` or ``creep``
    begin: int  #: first night of it
    end: int | None  #: first night on which it was over; None if it lasts
    size: float  #: above 0 is slower; of a step against the level before, of a creep against the reference
    margin: float  #: of the size, 95%
    p: float  #: bound on the probability that noise alone shows this anywhere in the series

    @property
    def slow(self) -> bool:
        """Whether it is a slowdown."""
        return self.size > 0

    @property
    def lasts(self) -> bool:
        """Whether it is not over."""
        return self.end is None


@dataclass(frozen=True, eq=False)
class Trend:
    """A case with the levels of today's epoch, and its findings."""

    nights: NightSeries
    changes: Sequence[int]  #: nights at which a new level begins, counted like a finding's
    findings: Sequence[DriftFinding]

    @property
    def known(self) -> bool:
        """Whether it has nights enough to say anything."""
        return len(self.nights.values) - self.nights.epoch >= ENOUGH_NIGHTS

    @property
    def now(self) -> float:
        """Today's level against the reference, on the logarithm."""
        return float(np.median(self.nights.logs[self.nights.epoch :][-RECENT:]))


def detect_trends(series: Sequence[NightSeries]) -> list[Trend]:
    """Detect the changes of each case since its reference was changed."""
    trends = [Trend(each, (), ()) for each in series]
    logs = [each.logs[each.epoch :] for each in series]
    enough = [number for number, each in enumerate(trends) if each.known]
    some = [logs[number] for number in enough]
    spreads = [estimate_robust_spread(each) for each in some]
    changes = find_change_points(some, spreads)
    slower = compute_cusums(some, spreads)
    faster = compute_cusums([-each for each in some], spreads)
    for place, number in enumerate(enough):
        found = find_drift(
            some[place],
            changes[place],
            spreads[place],
            (slower[place], faster[place]),
            series[number].least,
        )
        first = series[number].epoch
        trends[number] = Trend(
            series[number],
            [first + change for change in changes[place]],
            [_shifted(each, first) for each in found],
        )
    return trends


def find_drift(
    logs: Floats, changes: Sequence[int], sigma: float, sums: tuple[Creep, Creep], least: float
) -> list[DriftFinding]:
    """Find the changes of one series, steps first.

    :param changes: nights at which a new level begins
    :param sigma: spread of the noise
    :param sums: cumulative sums upwards and downwards
    :param least: smallest size that is told
    """
    found = [each for each in find_steps(logs, changes, sigma, least) if _old(each, len(logs))]
    for sign, total in zip((1.0, -1.0), sums, strict=True):
        explained = any(each.kind == STEP and each.lasts and each.size * sign > 0 for each in found)
        crept = None if explained else find_creep(sign * logs, total, sigma, least)
        if crept:
            found.append(
                DriftFinding(CREEP, crept.begin, None, sign * crept.size, crept.margin, crept.p)
            )
    return found


def _old(step: DriftFinding, nights: int) -> bool:
    return (nights if step.end is None else step.end) - step.begin >= LEAST_NIGHTS


def find_steps(
    logs: Floats, changes: Sequence[int], sigma: float, least: float
) -> list[DriftFinding]:
    """Find the steps among the changes of level. The way back from an excursion belongs to the excursion.

    A step is measured against the level just before it, or against the last one that was told if that is
    further away: small steps add up.

    :param logs: ln slowdown of each night; ``sigma`` and ``least`` are in its unit
    """
    bounds = [0, *changes, len(logs)]
    levels = [float(np.median(logs[a:b])) for a, b in pairwise(bounds)]
    found: list[DriftFinding] = []
    base, place, returned = levels[0], 1, False
    while place < len(levels):
        sizes = [levels[place] - base] + [levels[place] - levels[place - 1]] * (not returned)
        size, returned = max(sizes, key=abs), False
        if abs(size) < least:
            place += 1
            continue
        before = levels[place] - size
        back = next(
            (n for n in range(place + 1, len(levels)) if (levels[n] - before) / size < 0.5), None
        )
        end = None if back is None else bounds[back]
        begin = bounds[place]
        error = _error(sigma, begin - bounds[place - 1], (end or len(logs)) - begin)
        p = _p(size / error, len(logs))
        found.append(DriftFinding(STEP, begin, end, size, NORMAL_95 * error, p))
        if back is None:
            base, place, returned = levels[place], place + 1, False
        else:
            base, place, returned = before, back, True
    return found


def find_creep(logs: Floats, total: Creep, sigma: float, least: float) -> DriftFinding | None:
    """Find the slow rise of a series above its reference, or None.

    :param logs: ln slowdown of each night; ``sigma`` and ``least`` are in its unit
    """
    lasted = len(logs) - total.start
    if total.height <= LIMIT or lasted < LEAST_NIGHTS:
        return None
    recent = logs[-min(RECENT, lasted) :]
    size = float(np.median(recent))
    if size < least or float(np.median(logs[-LEAST_NIGHTS:])) < least / 2:
        return None
    error = MEDIAN_ERROR * sigma / math.sqrt(len(recent))
    return DriftFinding(
        CREEP, total.start, None, size, NORMAL_95 * error, _p(size / error, len(logs))
    )


def _error(sigma: float, *nights: int) -> float:
    """Return the standard error of the difference of two medians of so many nights."""
    return MEDIAN_ERROR * sigma * math.sqrt(sum(1 / number for number in nights))


def _p(ratio: float, nights: int) -> float:
    """Return the two-sided p-value, times the number of nights at which the change could have been found."""
    return min(1.0, 2 * nights * float(stdtr(nights - 2, -abs(ratio))))


def _shifted(finding: DriftFinding, nights: int) -> DriftFinding:
    end = None if finding.end is None else finding.end + nights
    return replace(finding, begin=finding.begin + nights, end=end)
