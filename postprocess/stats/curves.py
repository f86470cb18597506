"""Fit times over sizes by straight lines, with breaks where a protocol changes, and find the steps there.

A message of n bytes takes start + slope n (Hockney, Parallel Computing 20, 1994), with other parameters for
each protocol: eager, rendezvous, in pieces. Lines are fitted by least squares of relative errors, so that a
message of 8 bytes counts as much as one of 1 MB. Dynamic programming finds the best partition of the sizes. A
further break is accepted only if an F test finds the lines without it worse; its level is small, because it
tests the best of many breaks.

Two segments have a line each, for the sizes below and above the break. The lines may meet, as where a cache
overflows and each further byte costs more. If they do not meet, the library behaves differently from that size
on.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import NDArray

LEAST_POINTS = 3  #: sizes of a segment: one more than the parameters of a line
LEVEL = 0.001  #: level of the test for a further break
RESOLUTION = 0.01  #: relative; a fit better than this does not count as better
PARAMETERS = 3  #: parameters of each further segment: its break, start and slope
MOST_LINES = 4

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Segment:
    """Measured sizes from ``first`` to ``last`` bytes, whose time is ``start + slope * size`` seconds."""

    first: float
    last: float
    start: float  #: seconds, 0 or more
    slope: float  #: seconds per byte, 0 or more

    def time(self, size: float) -> float:
        """Compute the time of a size in seconds."""
        return self.start + self.slope * size


def fit_segments(sizes: Sequence[float], times: Sequence[float], most: int = MOST_LINES) -> tuple[Segment, ...]:
    """Fit as many lines as the times require, but at most ``most``, and the breaks between them.

    ``sizes``: bytes, shape (n,), rising; ``times``: seconds, shape (n,), positive. A protocol changes between
    the last size of a segment and the first of the next.

    :raises ValueError: for fewer than two sizes, sizes that do not rise, or times that are not positive.
    """
    x, y = check_times(sizes, times)
    count = min(most, max(1, x.size // LEAST_POINTS))
    ways = _part_best(x, y, count)
    chosen = 0
    for more in range(1, count):
        if _is_better(ways[chosen][0], ways[more][0], x.size, chosen + 1, more + 1):
            chosen = more
    edges = [0, *ways[chosen][1], x.size]
    return tuple(_fit(x[a:b], y[a:b])[0] for a, b in itertools.pairwise(edges))


def fit_line(sizes: Sequence[float], times: Sequence[float]) -> Segment:
    """Fit one line by least squares of relative errors. Arguments and errors as in :func:`fit_segments`."""
    return _fit(*check_times(sizes, times))[0]


def find_segment(segments: Sequence[Segment], size: float) -> Segment:
    """Find the segment of a size. Between two segments it is the nearer one, by the ratio of sizes."""
    for low, high in itertools.pairwise(segments):
        if size < math.sqrt(max(low.last, 1.0) * max(high.first, 1.0)):
            return low
    return segments[-1]


def predict_time(segments: Sequence[Segment], size: float) -> float:
    """Compute the time of a size in seconds from its segment."""
    return find_segment(segments, size).time(size)


def compute_mean_error(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Compute the mean absolute relative error; 0.25 is a quarter. Raises ValueError without a value."""
    if not len(measured) or len(predicted) != len(measured):
        raise ValueError("as many predicted times as measured ones are needed, and one at least")
    ratios = np.asarray(predicted, float) / np.asarray(measured, float)
    return float(np.mean(np.abs(ratios - 1)))


def check_times(sizes: Sequence[float], times: Sequence[float]) -> tuple[_Floats, _Floats]:
    """Return sizes and times as arrays of shape (n,). Raises ValueError as :func:`fit_segments` does."""
    x, y = np.asarray(sizes, float), np.asarray(times, float)
    if x.ndim != 1 or x.shape != y.shape or x.size < 2:
        raise ValueError("two sizes or more are needed, each with its time")
    if not (np.diff(x) > 0).all() or x[0] < 0:
        raise ValueError("sizes must rise from 0 or more")
    if not (np.isfinite(y).all() and (y > 0).all()):
        raise ValueError("a time is not a positive number")
    return x, y


def _fit(x: _Floats, y: _Floats) -> tuple[Segment, float]:
    """Return the line with the least squares of relative errors, and their sum. No parameter is negative."""
    rows = np.stack([1 / y, x / y], axis=1)
    scale = np.linalg.norm(rows, axis=0)
    scale[scale == 0] = 1.0
    start, slope = np.linalg.lstsq(rows / scale, np.ones(x.size), rcond=None)[0] / scale
    if slope < 0:
        start, slope = _alone(rows[:, 0]), 0.0
    elif start < 0:
        start, slope = 0.0, _alone(rows[:, 1])
    errors = rows @ np.array([start, slope]) - 1
    return Segment(float(x[0]), float(x[-1]), float(start), float(slope)), float(errors @ errors)


def _alone(column: _Floats) -> float:
    """Return the single parameter that fits 1 best."""
    return float(column.sum() / (column @ column))


def _part_best(x: _Floats, y: _Floats, most: int) -> list[tuple[float, list[int]]]:
    """Return, for one segment and more, the least sum of squares and where its segments begin."""
    squares = _sum_squares(x, y)
    costs = {
        (a, b): float(squares[a, b])
        for a in range(x.size)
        for b in range(a + min(LEAST_POINTS, x.size), x.size + 1)
    }
    best: list[dict[int, tuple[float, list[int]]]] = [
        {b: (cost, []) for (a, b), cost in costs.items() if a == 0}
    ]
    for _ in range(1, most):
        cheapest: dict[int, tuple[float, list[int]]] = {}
        for (a, b), cost in costs.items():
            if a in best[-1]:
                before, edges = best[-1][a]
                if b not in cheapest or before + cost < cheapest[b][0]:
                    cheapest[b] = (before + cost, [*edges, a])
        best.append(cheapest)
    return [ways[x.size] for ways in best if x.size in ways]


def _sum_squares(x: _Floats, y: _Floats) -> _Floats:
    """Return the squares that :func:`_fit` leaves for the sizes from a to before b, shape (n, n + 1)."""
    x = x / x[-1]
    columns = np.stack([1 / y**2, x / y**2, x**2 / y**2, 1 / y, x / y, np.ones(x.size)])
    sums = np.concatenate([np.zeros((6, 1)), np.cumsum(columns, axis=1)], axis=1)
    w, wx, wxx, u, ux, n = sums[:, None, :] - sums[:, :-1, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        determinant = w * wxx - wx**2
        start = (wxx * u - wx * ux) / determinant
        slope = (w * ux - wx * u) / determinant
        both = n - start * u - slope * ux
        flat, steep = n - u**2 / w, n - ux**2 / wxx
    squares = np.where(slope < 0, flat, np.where(start < 0, steep, both))
    return np.maximum(np.nan_to_num(squares, nan=np.inf), 0.0)


def _is_better(before: float, after: float, points: int, few: int, many: int) -> bool:
    """Return whether more segments fit significantly better, and better than the resolution matters."""
    left = points - PARAMETERS * many + 1
    if left < 1:
        return False
    floor = points * RESOLUTION**2
    before, after = max(before, floor), max(after, floor)
    added = PARAMETERS * (many - few)
    ratio = (before - after) / added / (after / left)
    return bool(scipy.special.fdtrc(added, left, ratio) < LEVEL)


NEAREST = 6  #: sizes on either side whose lines are compared
MOST_SEGMENTS = 8  #: most segments of one curve: protocols and caches
LEAST_STEP = 0.10  #: smallest relative step at a switch
SURE = 5.0  #: standard errors that such a step has at least


@dataclass(frozen=True)
class Switch:
    """A step between two neighbouring measured sizes."""

    below: int  #: bytes; the last size before the step
    above: int  #: bytes; the first size behind it
    step: float  #: ratio of times, by the lines of both sides half-way between the two sizes


def find_switches(
    sizes: Sequence[int], times: Sequence[float], segments: Sequence[Segment], error: float
) -> list[Switch]:
    """Find the steps between segments.

    :param sizes: sizes in bytes, rising, with their ``times`` in seconds
    :param error: relative standard error of a time
    """
    x, y = check_times(sizes, times)
    switches = []
    for earlier, segment in pairwise(segments):
        at = int(np.searchsorted(x, segment.first))
        begin = max(at - NEAREST, int(np.searchsorted(x, earlier.first)))
        end = min(at + NEAREST, int(np.searchsorted(x, segment.last)) + 1)
        before, behind = (fit_free_line(x[begin:at], y[begin:at]), fit_free_line(x[at:end], y[at:end]))
        middle = (x[at - 1] + x[at]) / 2
        near = (x[max(at - 2, 0)], middle, x[min(at + 1, x.size - 1)])
        gaps = [behind.time(size) - before.time(size) for size in near]
        if min(before.time(middle), behind.time(middle)) <= 0 or not (min(gaps) > 0 or max(gaps) < 0):
            continue  # the lines meet there
        step = behind.time(middle) / before.time(middle)
        unsure = error * math.hypot(before.relative_error(middle), behind.relative_error(middle))
        if abs(math.log(step)) >= max(math.log1p(LEAST_STEP), SURE * unsure):
            switches.append(Switch(int(x[at - 1]), int(x[at]), float(step)))
    return switches


@dataclass(frozen=True)
class FreeLine:
    """A line of either sign, with its uncertainty."""

    start: float  #: seconds
    slope: float  #: seconds per byte
    #: covariance of both, shape (2, 2), for a relative error of 1 of each time
    covariance: NDArray[np.float64]

    def time(self, size: float) -> float:
        return self.start + self.slope * size

    def relative_error(self, size: float) -> float:
        """Compute the relative standard error of a time, for a relative error of 1 of each measured time."""
        at = np.array([1.0, size])
        return math.sqrt(float(at @ self.covariance @ at)) / self.time(size)


def fit_free_line(x: NDArray[np.float64], y: NDArray[np.float64]) -> FreeLine:
    """Fit start and slope to at least two sizes by least squares of relative errors."""
    scale = max(float(x[-1]), 1.0)
    rows = np.stack([1 / y, x / scale / y], axis=1)
    start, slope = np.linalg.lstsq(rows, np.ones(x.size), rcond=None)[0]
    back = np.diag([1.0, 1 / scale])
    return FreeLine(float(start), float(slope) / scale, back @ np.linalg.pinv(rows.T @ rows) @ back)
