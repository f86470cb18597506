"""Detect changes of a series of nights: steps by a piecewise-constant fit, creep by a cumulative sum.

All functions take many series at once, which makes a year of 5,000 cases a matter of seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST_SEGMENT = 3  #: nights; a single outlier is no new level
PENALTY = 3.0  #: of a further segment, in ln(nights) spreads
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
    lengths = [len(each) for each in series]
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
    recent = [
        np.abs(values[:, [night]] - levels) for night in range(min(LEAST_SEGMENT - 1, nights))
    ]
    for end in range(LEAST_SEGMENT, nights + 1):
        recent = [*recent[1 - LEAST_SEGMENT :], np.abs(values[:, [end - 1]] - levels)]
        begin = end - LEAST_SEGMENT
        cost += recent[-1]
        fresh = (best[begin] + penalty)[:, None] + sum(recent)
        better = fresh < cost
        np.copyto(cost, fresh, where=better)
        np.copyto(since, begin, where=better)
        level = cost.argmin(axis=1)
        best[end] = cost[np.arange(rows), level]
        starts[end] = since[np.arange(rows), level]
    return starts


def compute_cusums(series: Sequence[Floats], spreads: Sequence[float]) -> list[Creep]:
    """Compute the one-sided cumulative sum of each series, in spreads, upwards from 0, at its last night.

    Tabular CUSUM: Page, Continuous inspection schemes, Biometrika 41 (1954).
    """
    lengths = np.array([len(each) for each in series], dtype=np.int64)
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
