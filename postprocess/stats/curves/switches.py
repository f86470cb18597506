"""Switches: steps of a time from one size to the next, as a change of protocol or algorithm leaves them.

Two segments (:mod:`postprocess.stats.curves.segments`) have a line each, for the sizes before and those behind.
The lines may meet, as where a cache overflows and each further byte costs more. If they do not, the library did
something else from that size on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from postprocess.stats.curves.segments import Segment, check_times

NEAREST = 6  #: sizes on either side whose lines are held against each other
MOST_SEGMENTS = 8  #: of one curve: protocols and caches
LEAST_STEP = 0.10  #: of what is called a switch, relative
SURE = 5.0  #: standard errors of such a step, at least


@dataclass(frozen=True)
class Switch:
    """A step between two neighbouring sizes that were measured."""

    below: int  #: bytes; the last size before
    above: int  #: the first size behind
    step: float  #: times as long, by the lines of both sides half-way between the two sizes


def find_switches(
    sizes: Sequence[int], times: Sequence[float], segments: Sequence[Segment], error: float
) -> list[Switch]:
    """Find the steps where segments part.

    :param sizes: in bytes, rising, and their ``times`` in seconds
    :param error: relative standard error of a time
    """
    x, y = check_times(sizes, times)
    found = []
    for earlier, segment in pairwise(segments):
        at = int(np.searchsorted(x, segment.first))
        begin = max(at - NEAREST, int(np.searchsorted(x, earlier.first)))
        end = min(at + NEAREST, int(np.searchsorted(x, segment.last)) + 1)
        before, behind = (fit_free_line(x[begin:at], y[begin:at]), fit_free_line(x[at:end], y[at:end]))
        middle = (x[at - 1] + x[at]) / 2
        near = (x[max(at - 2, 0)], middle, x[min(at + 1, x.size - 1)])
        gaps = [behind.time(each) - before.time(each) for each in near]
        if min(before.time(middle), behind.time(middle)) <= 0 or not (min(gaps) > 0 or max(gaps) < 0):
            continue  # they meet there
        step = behind.time(middle) / before.time(middle)
        unsure = error * math.hypot(before.relative_error(middle), behind.relative_error(middle))
        if abs(math.log(step)) >= max(math.log1p(LEAST_STEP), SURE * unsure):
            found.append(Switch(int(x[at - 1]), int(x[at]), float(step)))
    return found


@dataclass(frozen=True)
class FreeLine:
    """A line of either sign, and how far it may lie off."""

    start: float  #: seconds
    slope: float  #: seconds per byte
    #: of both, shape (2, 2), for a relative error of 1 of each time
    covariance: NDArray[np.float64]

    def time(self, size: float) -> float:
        """Compute the time of a size."""
        return self.start + self.slope * size

    def relative_error(self, size: float) -> float:
        """Compute the standard error of a time, relative to it, for a relative error of 1 of each time."""
        at = np.array([1.0, size])
        return math.sqrt(float(at @ self.covariance @ at)) / self.time(size)


def fit_free_line(x: NDArray[np.float64], y: NDArray[np.float64]) -> FreeLine:
    """Fit start and slope by least squares of relative errors, to two sizes or more."""
    scale = max(float(x[-1]), 1.0)
    rows = np.stack([1 / y, x / scale / y], axis=1)
    start, slope = np.linalg.lstsq(rows, np.ones(x.size), rcond=None)[0]
    back = np.diag([1.0, 1 / scale])
    return FreeLine(float(start), float(slope) / scale, back @ np.linalg.pinv(rows.T @ rows) @ back)
