"""Periods of events are found, and none where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from postprocess.stats.period import find_period, find_timer

HOUR, DAY = 3600.0, 86400.0


def train(random: np.random.Generator, period: float) -> list[tuple[float, float]]:
    """A probe of 40 ms beside a daemon, with the short detours that every kernel makes."""
    times = np.arange(random.uniform(0, period), 0.04, period)
    ticks = random.uniform(0, 0.04, 8)
    events = [(when, 1e-3) for when in times] + [(when, 2e-5) for when in ticks]
    return sorted(events)


@pytest.mark.parametrize("period", [0.002, 0.004, 0.01, 0.012])
def test_a_daemon_has_its_period(period: float) -> None:
    random = np.random.default_rng(1)
    found = find_period([train(random, period) for _ in range(20)], 0.001, 0.02)
    assert found == pytest.approx(period, rel=0.02)


def test_what_comes_at_random_has_none() -> None:
    random = np.random.default_rng(2)
    named = 0
    for _ in range(200):
        trains = [[(when, 1e-3) for when in np.sort(random.uniform(0, 0.04, 4))] for _ in range(20)]
        named += find_period(trains, 0.001, 0.02) is not None
    assert named <= 2


def test_one_event_of_a_train_tells_no_period() -> None:
    assert find_period([[(0.01, 1e-3)]] * 20, 0.001, 0.02) is None
    assert find_period([], 0.001, 0.02) is None


def test_a_timer_of_each_hour_is_found() -> None:
    """Nights of two hours begin at random; the timer goes off at 17 minutes past."""
    random = np.random.default_rng(3)
    begins = np.array([DAY * day + random.uniform(0, HOUR) for day in range(10)])
    moments = np.concatenate([begin + np.arange(0, 2 * HOUR, 60) for begin in begins])
    hits = [when for when in moments if (when - 17 * 60) % HOUR < 60]
    assert find_timer(hits, [*moments]) == HOUR


def test_that_nights_begin_at_the_same_hour_is_no_timer() -> None:
    random = np.random.default_rng(4)
    moments = np.concatenate([DAY * day + np.arange(0, HOUR, 60) for day in range(20)])
    found = [find_timer([*random.choice(moments, 12, replace=False)], [*moments]) for _ in range(50)]
    assert sum(each is not None for each in found) <= 2
