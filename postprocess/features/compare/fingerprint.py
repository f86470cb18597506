"""The fingerprint of an MPI, by measurement: empty message, asymptotic bandwidth, and where it switches.

It is taken of ping-pong with warm buffers, in launches of their own. A switch is a step of the time from one
size to the next, as a change of protocol leaves it; which protocol, no measurement tells.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from postprocess.base.documents.records import Amount, Count, Measured
from postprocess.base.formats import quantity, size
from postprocess.base.units import MEGABYTES, SECONDS
from postprocess.stats.curves.segments import LEAST_POINTS, Segment, fit_segments
from postprocess.stats.curves.switches import MOST_SEGMENTS, Switch, find_switches
from postprocess.stats.placement import group_placements

STEPS = (1, 1.5)  #: sizes of an octave, as parts of a power of two
#: Bytes that are measured: from an empty message to 4 MiB.
SIZES = (0, 1, 2, 4, 8, *(int(2**k * f) for k in range(4, 22) for f in STEPS), 2**22)
SIDES = ("old", "new")
UNKNOWN_ERROR = 0.05  #: relative, of a time of which there is one launch only
MEDIAN_LOSS = 1.25  #: of a median beside a mean, in standard errors


@dataclass(frozen=True)
class FingerprintLaunch:
    """What one launch of a side says of ping-pong at one place."""

    side: str
    number: Count  #: of the launch, from 0 on
    partition: str
    layout: str  #: as ``2x1``
    session: str
    seconds: Amount  #: that the launch and its start took; of one place only if there are several
    sizes: tuple[Count, ...]
    times: tuple[Measured, ...]  #: in seconds
    #: From core to core, in seconds; None where nothing tells
    core_latency: Measured | None = None
    moved: bool = False  #: whether its ranks were moved meanwhile: it counts nowhere


@dataclass(frozen=True)
class SideFingerprint:
    """The fingerprint of a side at one place."""

    sizes: tuple[int, ...]
    times: tuple[float, ...]  #: median of the launches, in seconds
    launches: int
    empty: float | None  #: time of an empty message, in seconds
    #: bytes per second that a further byte is worth, of the longest messages
    bandwidth: float | None
    segments: tuple[Segment, ...]
    switches: tuple[Switch, ...]

    @property
    def words(self) -> dict[str, str]:
        """What it says, for people; of a switch the last size before it, and what it costs or saves."""
        switches = [f"{size(switch.below)} ({switch.step:.2f} times)" for switch in self.switches]
        return {
            "empty message": quantity(self.empty, SECONDS),
            "asymptotic bandwidth": quantity(self.bandwidth and self.bandwidth / 1e6, MEGABYTES),
            "switches after": ", ".join(switches) or "none",
        }


@dataclass(frozen=True)
class FingerprintPair:
    """The fingerprints of both sides at one place."""

    partition: str
    layout: str
    old: SideFingerprint
    new: SideFingerprint

    @property
    def inside(self) -> bool:
        """Whether its messages stay inside a node."""
        return not self.layout.endswith("x1")

    @property
    def where(self) -> str:
        """Where its messages go, in words."""
        return f"{'inside a node' if self.inside else 'between nodes'} ({self.partition})"

    def ratio(self, low: int, high: int) -> float:
        """Return how many times as slow messages of these sizes are on the new side, by the median; else 1."""
        new = dict(zip(self.new.sizes, self.new.times, strict=True))
        both = zip(self.old.sizes, self.old.times, strict=True)
        ratios = [new[n] / t for n, t in both if low <= n <= high and n in new]
        return float(np.median(ratios)) if ratios else 1.0


def build_fingerprints(launches: Iterable[FingerprintLaunch]) -> list[FingerprintPair]:
    """Build the fingerprints of all places at which both sides were measured with their ranks on like cores."""
    places: dict[tuple[str, str], list[FingerprintLaunch]] = defaultdict(list)
    for launch in launches:
        if not launch.moved:
            places[launch.partition, launch.layout].append(launch)
    found = []
    for place, some in sorted(places.items()):
        old, new = select_like_cores(some)
        if old and new:
            found.append(FingerprintPair(*place, build_side(old), build_side(new)))
    return found


def select_like_cores(
    launches: Sequence[FingerprintLaunch],
) -> tuple[list[FingerprintLaunch], list[FingerprintLaunch]]:
    """Select the launches of the old and of the new side whose ranks lay alike: where both have the most."""
    groups = group_placements([launch.core_latency for launch in launches])
    sides = []
    for group in groups:
        old, new = ([launches[n] for n in group.members if launches[n].side == side] for side in SIDES)
        sides.append((old, new))
    return max(sides, key=lambda pair: min(map(len, pair)), default=([], []))


def build_side(launches: Sequence[FingerprintLaunch]) -> SideFingerprint:
    """Build the fingerprint of one side."""
    logs: dict[int, list[float]] = defaultdict(list)
    for launch in launches:
        for bytes_, time in zip(launch.sizes, launch.times, strict=True):
            logs[bytes_].append(math.log(time))
    sizes = tuple(sorted(logs))
    times = tuple(math.exp(float(np.median(logs[each]))) for each in sizes)
    error = estimate_error([logs[each] for each in sizes])
    found = fit_segments(sizes, times, MOST_SEGMENTS) if len(sizes) >= LEAST_POINTS else ()
    last = found[-1].slope if found else 0.0
    return SideFingerprint(
        sizes,
        times,
        len(launches),
        times[0] if sizes and sizes[0] == 0 else None,
        1 / last if last > 0 else None,
        found,
        tuple(find_switches(sizes, times, found, error) if found else ()),
    )


def estimate_error(logs: Sequence[Sequence[float]]) -> float:
    """Estimate the relative standard error of a median of launches, of all sizes alike."""
    spreads = [float(np.var(log, ddof=1)) for log in logs if len(log) > 1]
    if not spreads:
        return UNKNOWN_ERROR
    number = float(np.mean([len(log) for log in logs]))
    return MEDIAN_LOSS * math.sqrt(float(np.median(spreads)) / number)


def tell_fingerprint(pair: FingerprintPair) -> list[tuple[str, str, str]]:
    """Tell a fingerprint: what, of the old side, of the new one."""
    new = pair.new.words
    return [(f"{what}, {pair.where}", told, new[what]) for what, told in pair.old.words.items()]


def describe_fingerprint(pairs: Sequence[FingerprintPair]) -> dict[str, Any]:
    """Describe fingerprints for programs. Times in seconds, bandwidth in bytes per second."""
    return {
        f"{pair.partition}/{pair.layout}": {
            name: {
                "launches": side.launches,
                "empty": side.empty,
                "bandwidth": side.bandwidth,
                "switches": [[s.below, s.above, s.step] for s in side.switches],
                "sizes": list(side.sizes),
                "times": list(side.times),
            }
            for name, side in (("old", pair.old), ("new", pair.new))
        }
        for pair in pairs
    }
