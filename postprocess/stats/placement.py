"""Where the ranks of a launch lay, as far as a time from core to core shows it.

A hypervisor moves its virtual processors between the cores of a machine, and a kernel moves ranks that are not
bound. Neighbouring ranks then share a core, a cache, or nothing, and the same call takes up to twice as long.
Binding does not show it. The time in which one rank reads what the other wrote does
(``suite/src/core_latency.c``): it differs by a few percent in one place, and severalfold between places.
Launches are compared with those of the same place only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from postprocess.model.measurement import CoreLatency

#: Times from core to core that differ by less than this factor are of one place.
REACH = 1.35
MOST_OF_PLACES = 5.0  #: slowdown of a call by other cores; 3.6 was the most that was seen
#: The same for each time that a word takes longer: 2.2 was the most, of 1 MB got from the other rank's memory.
FARTHER = 2.5
#: Slowdown by other cores, however far they are said to be; 12 was the most that was seen.
MOST_FARTHER = 30.0
MOVED = math.inf  #: in the place of a time: the ranks were moved while the case was measured


@dataclass(frozen=True)
class Placement:
    """Launches whose ranks lay alike."""

    core_latency: float | None  #: median of theirs, in seconds; None if unknown
    members: tuple[int, ...]  #: their numbers, ascending


def locate_case(measured: CoreLatency | None) -> float | None:
    """Return the time from core to core while a case was measured, in seconds; None if unknown.

    The geometric mean of that before and after. :data:`MOVED` if the two differ: then the ranks lay nowhere
    that another launch may be compared with.
    """
    known = [each for each in (measured.before, measured.after) if each] if measured else []
    if not known:
        return None
    return MOVED if not is_near(known[0], known[-1]) else math.sqrt(known[0]) * math.sqrt(known[-1])


def limit_slowdown(measured: CoreLatency | None, reference: float | None) -> float:
    """Return how many times as slow as its reference a call may be because its ranks lay elsewhere.

    :param measured: times from core to core before and after the call
    :param reference: that of the launches behind the reference, in seconds; None where nothing tells
    """
    farthest = find_farthest(measured)
    if farthest is None or reference is None:
        return MOST_OF_PLACES
    return min(max(MOST_OF_PLACES, FARTHER * farthest / reference), MOST_FARTHER)


def find_farthest(measured: CoreLatency | None) -> float | None:
    """Return the longer time from core to core, before or after a case, in seconds; None if unknown."""
    known = [each for each in (measured.before, measured.after) if each] if measured else []
    return max(known) if known else None


def is_farther(one: float, other: float) -> bool:
    """Return whether cores are clearly farther apart than others, by their times from core to core."""
    return one > other and not is_near(one, other)


def is_near(one: float, other: float) -> bool:
    """Return whether two core latencies, in seconds, are of one place."""
    return max(one, other) <= REACH * min(one, other)


def is_same_place(one: float | None, other: float | None) -> bool:
    """Return whether two launches may be compared, as far as their core latencies (seconds) are known."""
    return one is None or other is None or is_near(one, other)


def group_placements(latencies: Sequence[float | None]) -> list[Placement]:
    """Group launches by place: the place of most launches first, of as many the nearer cores.

    A place is where most times lie within :data:`REACH` of one of them, then the same of what is left. Launches
    of which nothing is known are of one place.

    :param latencies: time from core to core of each launch, in seconds, or None
    """
    return list(_group_placements(tuple(latencies)))


@lru_cache(maxsize=4096)
def _group_placements(latencies: tuple[float | None, ...]) -> tuple[Placement, ...]:
    """Group launches as above: the cases of one calibration mostly share their launches."""
    unknown = tuple(number for number, each in enumerate(latencies) if each is None)
    found = [Placement(None, unknown)] if unknown else []
    left = np.array([number for number, each in enumerate(latencies) if each is not None], dtype=int)
    while left.size:
        times = np.array([latencies[number] for number in left], dtype=np.float64)
        near = np.maximum.outer(times, times) <= REACH * np.minimum.outer(times, times)
        counts = near.sum(axis=1)
        best = min(np.flatnonzero(counts == counts.max()), key=lambda each: times[each])
        members = left[near[best]]
        found.append(Placement(float(np.median(times[near[best]])), tuple(map(int, members))))
        left = left[~near[best]]
    return tuple(sorted(found, key=lambda each: (-len(each.members), each.core_latency or 0.0)))
