"""Find the period of events: of short trains, each with a phase of its own, and of a timer by the clock.

The power of a train of events at a frequency f is ``|sum w exp(2 pi i f t)|^2 / sum w^2``, w their weights. If
events have nothing to do with f, it is on average 1 and nearly exponential (Rayleigh, 1880; Mardia and Jupp,
"Directional Statistics", 2000, section 6.3); powers of independent trains add up to a gamma distribution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc

LEVEL = 0.001  #: of a period that chance makes
LEAST_EVENTS = 2.5  #: of a train, as many as its weights count for: (sum w)^2 / sum w^2
STEPS = 8  #: frequencies that are tried, for each one that a train tells from its neighbour
FINE = 50  #: steps between two frequencies in the end
TIMERS = tuple(60 * minutes for minutes in (1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 720, 1440))
DRAWS = 4000
TIMER_LEVEL = 0.01
LEAST_HITS = 4

Train = Sequence[tuple[float, float]]  #: when, in seconds, and its weight


def find_period(trains: Sequence[Train], least: float, most: float) -> float | None:
    """Find the period of weighted events, in seconds; None if chance explains them as well.

    :param trains: each with a phase of its own; those of too few events do not count
    :param least: shortest period that is looked for, in seconds
    :param most: longest one; trains must be longer
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
    telling = gammaincc(len(arrays), power) * independent <= LEVEL
    if not telling.any():
        return None
    first = int(np.argmax(telling))  # a frequency tells no less than its multiples
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
    """Compute the power of all trains together, of each frequency. Hz."""
    power = np.zeros(frequencies.size)
    for train in trains:
        turns = np.exp(2j * np.pi * np.outer(frequencies, train[:, 0]))
        power += np.abs(turns @ train[:, 1]) ** 2 / (train[:, 1] ** 2).sum()
    return power


def find_timer(hits: Sequence[float], moments: Sequence[float]) -> int | None:
    """Find the period of a timer by the clock, one of ``TIMERS``, in seconds; None if chance explains the hits.

    What counts is how much closer together the hits are on the clock's face than as many moments drawn by
    lot: nights begin at the same hour, so that whatever happens in them is daily.

    :param hits: when something happened, in seconds since 1970
    :param moments: when it could have been seen, the hits among them
    """
    if len(hits) < LEAST_HITS or len(moments) <= len(hits):
        return None
    drawn = np.random.default_rng(0).permuted(np.tile(moments, (DRAWS, 1)), axis=1)[:, : len(hits)]
    for period in reversed(TIMERS):  # what comes each hour comes every five minutes of the clock, too
        found = np.abs(np.exp(2j * np.pi * np.asarray(hits) / period).sum())
        others = np.abs(np.exp(2j * np.pi * drawn / period).sum(axis=1))
        chance = (1 + (others >= found * (1 - 1e-9)).sum()) / (1 + DRAWS)
        if chance * len(TIMERS) <= TIMER_LEVEL:
            return period
    return None
