"""Steps of a time over sizes are found where they were put, and none where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from postprocess.features.compare.facts import SIZES
from postprocess.stats.curves.segments import fit_segments
from postprocess.stats.curves.switches import MOST_SEGMENTS, Switch, find_switches


def measure(limit: int, extra: float, noise: float, seed: int = 0) -> list[float]:
    """Times of a library that needs a handshake beyond a limit."""
    random = np.random.default_rng(seed)
    times = [1e-6 + 1e-10 * s + (extra if s > limit else 0) for s in SIZES]
    return [t * float(np.exp(random.normal(0, noise))) for t in times]


def find(times: list[float], error: float) -> list[Switch]:
    return find_switches(SIZES, times, fit_segments(SIZES, times, MOST_SEGMENTS), error)


@pytest.mark.parametrize("limit", [1024, 8192, 65536])
@pytest.mark.parametrize("seed", range(3))
def test_an_eager_limit_is_found_where_it_is(limit: int, seed: int) -> None:
    (found,) = find(measure(limit, 4e-6, 0.01, seed), 0.01)
    assert found.below == limit and found.step > 1.1


@pytest.mark.parametrize("seed", range(10))
def test_a_line_has_no_switch(seed: int) -> None:
    assert not find(measure(0, 0.0, 0.03, seed), 0.03)


def test_a_bend_without_a_step_is_no_switch() -> None:
    """A cache that overflows makes each further byte dearer, from one size to the next."""
    times = [1e-6 + 1e-10 * min(s, 65536) + 4e-10 * max(s - 65536, 0) for s in SIZES]
    assert len(fit_segments(SIZES, times, MOST_SEGMENTS)) > 1 and not find(times, 0.01)


def test_a_step_that_the_noise_may_make_is_no_switch() -> None:
    times = measure(8192, 4e-6, 0.0)
    assert find(times, 0.01) and not find(times, 0.5)
