"""Statistics of single launches: the headline of trials, the placement of ranks, the period of late events.

The headline is the filtered mean of Luecke et al. (2001). The first trial is dropped. Of the m values left,
those above 1.8 times their median are spikes. The largest spikes are removed, but at most a tenth of the data
(Luecke et al. 2003 make clear that the tenth is of the data). The rest is averaged.

The steady time is the mean of the fastest quarter of the same m values. A disturbance makes a call slower, so
the fast trials stay where they were; a call that became slower is slower in every trial. Taboada et al. (2003,
section 3) go further and take the minimum. Of all statistics that were tried, the mean of a quarter differs
least between launches (docs/statistics.md).

A hypervisor moves its virtual processors between the cores of a machine, and a kernel moves ranks that are not
bound. Neighbouring ranks then share a core, a cache, or nothing, and the same call takes up to twice as long.
Binding does not reveal this, but the time in which one rank reads what the other wrote does
(``suite/src/core_latency.c``): mostly it varies by a few percent in one placement, and severalfold between two.
Launches are only compared with launches of the same placement.

The power of a train of events at a frequency f is ``|sum w exp(2 pi i f t)|^2 / sum w^2`` with weights w. If
the events are unrelated to f, its mean is 1 and its distribution nearly exponential (Rayleigh, 1880; Mardia and
Jupp, "Directional Statistics", 2000, section 6.3); the sum of the powers of independent trains has a gamma
distribution.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from postprocess.model.measurement import CoreLatency, TrialSummary

SPIKE_FACTOR = 1.8
CAP_DIVISOR = 10  #: at most one value in ten is removed
SIDE_DIVISOR = 5  #: each mode of bimodal data has at least one value in five
GAP_IN_MAD = 3.0
GAP_IN_RESOLUTIONS = 2.0
QUARTER = 4  #: the steady time is the mean of the fastest one in four trials


def summarise_trials(
    trials: NDArray[np.float64],
    late: NDArray[np.bool_] | None = None,
    dropped: int = 1,
    resolution: float = 0.0,
) -> TrialSummary:
    """Compute headline and health of the trials of one case.

    ``trials``: shape (n,), in the order they were run; ``late``: shape (n,), true where a trial
    missed its start window; ``dropped``: leading trials to leave out; ``resolution``: that of the timer,
    in the unit of ``trials``. Raises ValueError if no trial is left or one is not finite.
    """
    values = np.sort(trials[_entering(trials, late, dropped)])
    median = float(np.median(values))
    candidates, removed = _spikes(values, median)
    kept = values.size - removed
    return TrialSummary(
        headline=float(np.mean(values[:kept])),
        steady=float(np.mean(values[: -(-values.size // QUARTER)])),
        median=median,
        minimum=float(values[0]),
        p90=float(np.percentile(values, 90)),
        p99=float(np.percentile(values, 99)),
        kept=kept,
        candidates=candidates,
        removed=removed,
        filter_saturated=candidates > removed,
        bimodal=_is_bimodal(values, median, resolution),
    )


def bound_slowest_mean(
    t_max: NDArray[np.float64], t_min: NDArray[np.float64], ranks: int, dropped: int = 1
) -> tuple[float, float]:
    """Bound the largest of the ranks' means, from the longest and shortest time of each trial.

    OSU and IMB average each rank's times over the trials, without a filter, and print the largest of these
    means. It is at most the mean of the maxima, and at least the mean over all ranks. The latter is at least
    (max + (p - 1) min) / p: one rank had the longest time, and none had less than the shortest.

    ``t_max``, ``t_min``: shape (n,), in the order they were run; ``ranks``: how many took part; ``dropped``:
    leading trials to leave out. The result has the unit of the trials. Raises ValueError if no trial is left,
    or the shapes differ.
    """
    if t_max.shape != t_min.shape or t_max.size <= dropped or ranks < 1:
        raise ValueError("longest and shortest times of the same trials are needed")
    most, least = float(np.mean(t_max[dropped:])), float(np.mean(t_min[dropped:]))
    return (most + (ranks - 1) * least) / ranks, most


def mark_removed_trials(
    trials: NDArray[np.float64], late: NDArray[np.bool_] | None = None, dropped: int = 1
) -> NDArray[np.bool_]:
    """Mark the trials that do not enter the headline: the dropped, the late and the removed spikes.

    Shapes and errors are as in :func:`summarise_trials`; the result has the shape of ``trials``.
    """
    entering = np.flatnonzero(_entering(trials, late, dropped))
    order = entering[np.argsort(trials[entering], kind="stable")]
    _, removed = _spikes(trials[order], float(np.median(trials[order])))
    excluded = np.ones(trials.shape, dtype=bool)
    excluded[order[: order.size - removed]] = False
    return excluded


def _entering(trials: NDArray[np.float64], late: NDArray[np.bool_] | None, dropped: int) -> NDArray[np.bool_]:
    """Return a mask of the m trials that the statistics are computed from."""
    if trials.ndim != 1 or (late is not None and late.shape != trials.shape):
        raise ValueError("trials and late flags must be two lists of the same length")
    if dropped < 0:
        raise ValueError(f"cannot drop {dropped} trials")
    entering = np.ones(trials.shape, dtype=bool) if late is None else ~late.astype(bool)
    entering[:dropped] = False
    if not entering.any():
        raise ValueError(f"none of {trials.size} trials is left without the dropped and late ones")
    if not np.isfinite(trials[entering]).all():
        raise ValueError("a trial is not a finite number")
    return entering


def _spikes(values: NDArray[np.float64], median: float) -> tuple[int, int]:
    """Count the candidates above the threshold, and how many of them the filter removes."""
    candidates = int(np.count_nonzero(values > SPIKE_FACTOR * median))
    return candidates, min(candidates, values.size // CAP_DIVISOR)


def _is_bimodal(ordered: NDArray[np.float64], median: float, resolution: float) -> bool:
    """Return whether a gap with a fifth of the data on each side is wider than 3 MAD and 2 ticks."""
    side = -(-ordered.size // SIDE_DIVISOR)
    gaps = np.diff(ordered)[side - 1 : ordered.size - side]
    if not gaps.size:
        return False
    deviation = float(np.median(np.abs(ordered - median)))
    limit = max(GAP_IN_MAD * deviation, GAP_IN_RESOLUTIONS * resolution)
    return bool(gaps.max() > limit)


#: Times from core to core that differ by less than this factor belong to one placement.
REACH = 1.35
STRAYS = 0.2  #: share of the readings of a case that may be out of reach although its ranks stayed
MOST_OF_PLACES = 5.0  #: slowdown of a call on other cores; at most 3.6 was seen
#: The same per factor of core-to-core time; at most 2.2 was seen, when 1 MB was got from the other rank.
FARTHER = 2.5
#: Slowdown on other cores, however far apart they seem; at most 12 was seen.
MOST_FARTHER = 30.0
MOVED = math.inf  #: instead of a time: the ranks were moved while the case was measured


@dataclass(frozen=True)
class Placement:
    """Launches with the same placement of ranks."""

    core_latency: float | None  #: their median, in seconds; None if unknown
    members: tuple[int, ...]  #: indices of the launches, ascending


def summarise_visits(readings: Sequence[float | None]) -> CoreLatency:
    """Summarise the core-to-core times around the visits of a case: two equal times if its ranks stayed.

    One reading takes microseconds, so a disturbance easily doubles it, and the extremes of ten say little.
    Ranks stayed if each visit has a reading within :data:`REACH` of the median, and nearly all readings are.

    :param readings: in seconds, before and after the first visit, before and after the second, and so on
    """
    known = [reading for reading in readings if reading is not None]
    if len(readings) <= 2 or not known:
        return CoreLatency(readings[0], readings[-1])
    median = statistics.median(known)
    visits = [
        [each for each in visit if each is not None]
        for visit in zip(readings[::2], readings[1::2], strict=True)
    ]
    seen = all(any(is_near(reading, median) for reading in visit) for visit in visits if visit)
    strays = sum(not is_near(reading, median) for reading in known)
    if seen and strays <= STRAYS * len(known):
        return CoreLatency(median, median)
    low, high = known.index(min(known)), known.index(max(known))
    return CoreLatency(known[min(low, high)], known[max(low, high)])


def locate_case(measured: CoreLatency | None) -> float | None:
    """Return the core-to-core time while a case was measured, in seconds; None if unknown.

    It is the geometric mean of the times before and after. If the two differ it is :data:`MOVED`: no other
    launch can be compared with this placement.
    """
    latencies = [latency for latency in (measured.before, measured.after) if latency] if measured else []
    if not latencies:
        return None
    return (
        MOVED
        if not is_near(latencies[0], latencies[-1])
        else math.sqrt(latencies[0]) * math.sqrt(latencies[-1])
    )


def limit_slowdown(measured: CoreLatency | None, reference: float | None) -> float:
    """Return the largest slowdown that another placement of the ranks may explain, as a factor.

    :param measured: core-to-core times before and after the call
    :param reference: median time of the launches behind the reference, in seconds; None if unknown
    """
    farthest = find_farthest(measured)
    if farthest is None or reference is None:
        return MOST_OF_PLACES
    return min(max(MOST_OF_PLACES, FARTHER * farthest / reference), MOST_FARTHER)


def find_farthest(measured: CoreLatency | None) -> float | None:
    """Return the longer core-to-core time, before or after a case, in seconds; None if unknown."""
    latencies = [latency for latency in (measured.before, measured.after) if latency] if measured else []
    return max(latencies) if latencies else None


def is_farther(one: float, other: float) -> bool:
    """Return whether cores are clearly farther apart than others, judged by their core-to-core times."""
    return one > other and not is_near(one, other)


def is_near(one: float, other: float) -> bool:
    """Return whether two core-to-core times, in seconds, belong to one placement."""
    return max(one, other) <= REACH * min(one, other)


def is_same_place(one: float | None, other: float | None) -> bool:
    """Return whether two launches may be compared, as far as their core-to-core times (seconds) are known."""
    return one is None or other is None or is_near(one, other)


def group_placements(latencies: Sequence[float | None]) -> list[Placement]:
    """Group launches by placement: the largest group first; of equal groups, the one with nearer cores.

    The first placement is the one that covers most times within :data:`REACH` of one of them, and so on for the
    rest. Launches without a time form one group.

    :param latencies: core-to-core time of each launch, in seconds, or None
    """
    return list(_group_placements(tuple(latencies)))


@lru_cache(maxsize=4096)
def _group_placements(latencies: tuple[float | None, ...]) -> tuple[Placement, ...]:
    """Group launches as above; cached because the cases of a calibration mostly share their launches."""
    unknown = tuple(number for number, latency in enumerate(latencies) if latency is None)
    placements = [Placement(None, unknown)] if unknown else []
    left = np.array([number for number, latency in enumerate(latencies) if latency is not None], dtype=int)
    while left.size:
        times = np.array([latencies[number] for number in left], dtype=np.float64)
        near = np.maximum.outer(times, times) <= REACH * np.minimum.outer(times, times)
        counts = near.sum(axis=1)
        best = min(np.flatnonzero(counts == counts.max()), key=lambda launch: times[launch])
        members = left[near[best]]
        placements.append(Placement(float(np.median(times[near[best]])), tuple(map(int, members))))
        left = left[~near[best]]
    return tuple(
        sorted(placements, key=lambda placement: (-len(placement.members), placement.core_latency or 0.0))
    )


LEVEL = 0.001  #: probability that a period arises by chance
LEAST_EVENTS = 2.5  #: effective number of events of a train: (sum w)^2 / sum w^2
STEPS = 8  #: frequencies tried per resolvable one
FINE = 50  #: steps between two frequencies in the final search
TIMERS = tuple(60 * minutes for minutes in (1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 720, 1440))
DRAWS = 4000
TIMER_LEVEL = 0.01
LEAST_HITS = 4

Train = Sequence[tuple[float, float]]  #: times of events in seconds, with their weights


def find_period(trains: Sequence[Train], least: float, most: float) -> float | None:
    """Find the period of weighted events, in seconds; None if chance explains them as well.

    :param trains: each with its own phase; those with too few events do not count
    :param least: shortest period to look for, in seconds
    :param most: longest period, in seconds; trains must be longer
    """
    arrays = [np.array(train, dtype=float) for train in trains if len(train) > 1]
    arrays = [train for train in arrays if _count_events(train[:, 1]) >= LEAST_EVENTS]
    if not arrays:
        return None
    span = max(float(np.ptp(train[:, 0])) for train in arrays)
    if not 0 < least < most or span <= 0:
        return None
    independent = max(2.0, span * (1 / least - 1 / most))
    tried = np.linspace(1 / most, 1 / least, int(np.ceil(STEPS * independent)))
    power = _compute_power(arrays, tried)
    telling = scipy.special.gammaincc(len(arrays), power) * independent <= LEVEL
    if not telling.any():
        return None
    first = int(np.argmax(telling))  # a frequency is as significant as its multiples
    while first + 1 < power.size and power[first + 1] > power[first]:
        first += 1
    step = tried[1] - tried[0]
    near = np.linspace(tried[first] - step, tried[first] + step, 2 * FINE + 1)
    return float(1 / near[int(np.argmax(_compute_power(arrays, near)))])


def _count_events(weights: NDArray[np.float64]) -> float:
    return float(weights.sum() ** 2 / (weights**2).sum())


def _compute_power(
    trains: Sequence[NDArray[np.float64]], frequencies: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute the power of all trains together at each frequency, in Hz."""
    power = np.zeros(frequencies.size)
    for train in trains:
        turns = np.exp(2j * np.pi * np.outer(frequencies, train[:, 0]))
        power += np.abs(turns @ train[:, 1]) ** 2 / (train[:, 1] ** 2).sum()
    return power


def find_timer(hits: Sequence[float], moments: Sequence[float]) -> int | None:
    """Find the period of a timer, one of ``TIMERS``, in seconds; None if chance explains the hits.

    Hits are compared with as many moments drawn at random, by how close together they are on a clock face. A
    comparison with all times would not do: nights begin at the same hour, so that whatever happens in them is
    daily.

    :param hits: when something happened, in seconds since 1970
    :param moments: when it could have been seen, including the hits
    """
    if len(hits) < LEAST_HITS or len(moments) <= len(hits):
        return None
    drawn = np.random.default_rng(0).permuted(np.tile(moments, (DRAWS, 1)), axis=1)[:, : len(hits)]
    for period in reversed(TIMERS):  # what happens every hour also happens at a multiple of five minutes
        resultant = np.abs(np.exp(2j * np.pi * np.asarray(hits) / period).sum())
        others = np.abs(np.exp(2j * np.pi * drawn / period).sum(axis=1))
        chance = (1 + (others >= resultant * (1 - 1e-9)).sum()) / (1 + DRAWS)
        if chance * len(TIMERS) <= TIMER_LEVEL:
            return period
    return None
