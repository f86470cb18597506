"""Detect drift of a case since its reference was last changed: steps that stay, and slow creep.

A night's verdict holds one night against a band that is as wide as one night's noise. Many nights tell smaller
changes: a step by the fit of levels, a creep, or a machine that was slower from the reference's first night on,
by the cumulative sum of what lies above the reference. Both are told only if they are of a size that matters.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import NDArray

from postprocess.base.formats import find_better_direction
from postprocess.model.case import Case
from postprocess.model.routines.benchmark import PRINTED
from postprocess.model.routines.mpicost import OWN_PROGRAMS

Floats = NDArray[np.float64]

LEAST_SEGMENT = 3  #: nights; a single outlier is no new level
PENALTY = 3.0  #: of a further segment, in ln(nights) spreads
#: Costs that are nearer than this are equal: which of them rounding makes the least depends on the processor.
TIE = 1e-9
LEAST_SPREAD = 1e-4  #: of ln headline; a series that never moves has none of its own
ALLOWANCE = 0.5  #: k of the cumulative sum, in spreads
LIMIT = 8.0  #: h
MOST_OF_A_NIGHT = 3.0  #: spreads that one night can add, since creep takes many nights
MOST_IN_ALL = 2 * LIMIT  #: a limit, or a creep that is over would be reported for months
CHUNK = 64  #: series that are fitted together: they fit a processor's cache
TO_SIGMA = 1.4826  #: from the median absolute deviation to a standard deviation, of normal noise
MEAN_TO_SIGMA = math.sqrt(math.pi / 2)  #: from the mean absolute deviation


@dataclass(frozen=True, eq=False)
class Creep:
    """The cumulative sum of a series at its last night."""

    height: float  #: in spreads
    start: int  #: first night of the excursion; the number of nights if there is none


def estimate_robust_spread(series: Floats) -> float:
    """Estimate the noise (standard deviation) of a series of three nights or more, blind to steps and trend.

    From the differences between nights, of which steps are few, by their median absolute deviation; where most
    of them are 0 (a rounded series), by their mean absolute deviation.
    """
    differences = np.diff(series)
    away = np.abs(differences - np.median(differences))
    sigma = TO_SIGMA * float(np.median(away))
    if sigma < LEAST_SPREAD:
        sigma = MEAN_TO_SIGMA * float(away.mean())
    return max(LEAST_SPREAD, sigma / math.sqrt(2))


def find_change_points(series: Sequence[Floats], spreads: Sequence[float]) -> list[list[int]]:
    """Find the nights at which a new level of each series begins, by the best piecewise-constant fit.

    The fit has the least sum of absolute deviations from the median of each segment, plus ``PENALTY`` ln(n)
    spreads for each further one; no segment is shorter than ``LEAST_SEGMENT`` nights.
    """
    found: list[list[int]] = [[]] * len(series)
    order = sorted(range(len(series)), key=lambda number: len(series[number]))
    for begin in range(0, len(order), CHUNK):
        some = order[begin : begin + CHUNK]
        scaled = [series[number] / spreads[number] for number in some]
        for number, changes in zip(some, _fitted(scaled), strict=True):
            found[number] = changes
    return found


def _fitted(series: Sequence[Floats]) -> Iterator[list[int]]:
    """Return the change points of some series in units of their spreads.

    The median of a segment is one of the series' values, so the best level is looked for among these. The cost
    of an open segment at each level grows by one deviation a night, and a new segment opens wherever that is
    cheaper. This is a dynamic programme over levels, as for the Potts functional with absolute deviations
    (Storath, Weinmann and Unser, Jump-penalized least absolute values estimation, SIAM J. Sci. Comput. 39,
    2017).
    """
    lengths = [len(logs) for logs in series]
    nights = max(lengths)
    values = np.zeros((len(series), nights))
    levels = np.full((len(series), nights), np.inf)  # beyond a series none is chosen
    for row, each in enumerate(series):
        values[row, : len(each)] = levels[row, : len(each)] = each
    penalty = np.array([PENALTY * math.log(max(length, 1)) for length in lengths])
    starts = _last_starts(values, levels, penalty)
    for row, length in enumerate(lengths):
        changes: list[int] = []
        at = length
        while at >= LEAST_SEGMENT and (at := int(starts[at, row])) > 0:
            changes.append(at)
        yield changes[::-1]


def _last_starts(values: Floats, levels: Floats, penalty: Floats) -> NDArray[np.int64]:
    """Return where the last segment of the best fit to the first t nights begins: (nights + 1, series)."""
    rows, nights = values.shape
    starts = np.zeros((nights + 1, rows), dtype=np.int64)
    best = np.full((nights + 1, rows), np.inf)
    best[0] = 0.0  # the first segment costs a penalty too: one more for every fit
    cost = np.full(levels.shape, np.inf)  # of the best fit whose last segment is at this level
    since = np.zeros(levels.shape, dtype=np.int32)
    recent = [np.abs(values[:, [night]] - levels) for night in range(min(LEAST_SEGMENT - 1, nights))]
    for end in range(LEAST_SEGMENT, nights + 1):
        recent = [*recent[1 - LEAST_SEGMENT :], np.abs(values[:, [end - 1]] - levels)]
        begin = end - LEAST_SEGMENT
        cost += recent[-1]
        fresh = (best[begin] + penalty)[:, None] + sum(recent)
        better = fresh < cost - TIE
        np.copyto(cost, fresh, where=better)
        np.copyto(since, begin, where=better)
        level = (cost <= cost.min(axis=1, keepdims=True) + TIE).argmax(axis=1)
        best[end] = cost[np.arange(rows), level]
        starts[end] = since[np.arange(rows), level]
    return starts


def compute_cusums(series: Sequence[Floats], spreads: Sequence[float]) -> list[Creep]:
    """Compute the one-sided cumulative sum of each series, in spreads, upwards from 0, at its last night.

    Tabular CUSUM: Page, Continuous inspection schemes, Biometrika 41 (1954).
    """
    lengths = np.array([len(logs) for logs in series], dtype=np.int64)
    height = np.zeros(len(series))
    start = np.zeros(len(series), dtype=np.int64)
    values = np.zeros((int(lengths.max(initial=0)), len(series)))
    for column, (each, scale) in enumerate(zip(series, spreads, strict=True)):
        values[: len(each), column] = np.minimum(each / scale, MOST_OF_A_NIGHT)
    for night, row in enumerate(values):
        open_ = night < lengths
        height = np.where(open_, np.clip(height + row - ALLOWANCE, 0.0, MOST_IN_ALL), height)
        start = np.where(open_ & (height == 0), night + 1, start)
    return [Creep(float(h), int(s)) for h, s in zip(height, start, strict=True)]


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
            some[place], changes[place], spreads[place], (slower[place], faster[place]), series[number].least
        )
        first = series[number].epoch
        trends[number] = Trend(
            series[number],
            [first + change for change in changes[place]],
            [_shifted(finding, first) for finding in found],
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
    found = [finding for finding in find_steps(logs, changes, sigma, least) if _old(finding, len(logs))]
    for sign, total in zip((1.0, -1.0), sums, strict=True):
        explained = any(finding.kind == STEP and finding.lasts and finding.size * sign > 0 for finding in found)
        crept = None if explained else find_creep(sign * logs, total, sigma, least)
        if crept:
            found.append(DriftFinding(CREEP, crept.begin, None, sign * crept.size, crept.margin, crept.p))
    return found


def _old(step: DriftFinding, nights: int) -> bool:
    return (nights if step.end is None else step.end) - step.begin >= LEAST_NIGHTS


def find_steps(logs: Floats, changes: Sequence[int], sigma: float, least: float) -> list[DriftFinding]:
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
        back = next((n for n in range(place + 1, len(levels)) if (levels[n] - before) / size < 0.5), None)
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
    return DriftFinding(CREEP, total.start, None, size, NORMAL_95 * error, _p(size / error, len(logs)))


def _error(sigma: float, *nights: int) -> float:
    """Return the standard error of the difference of two medians of so many nights."""
    return MEDIAN_ERROR * sigma * math.sqrt(sum(1 / number for number in nights))


def _p(ratio: float, nights: int) -> float:
    """Return the two-sided p-value, times the number of nights at which the change could have been found."""
    return min(1.0, 2 * nights * float(scipy.special.stdtr(nights - 2, -abs(ratio))))


def _shifted(finding: DriftFinding, nights: int) -> DriftFinding:
    end = None if finding.end is None else finding.end + nights
    return replace(finding, begin=finding.begin + nights, end=end)
