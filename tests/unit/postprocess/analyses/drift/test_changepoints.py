"""The fit of levels is the best one there is, and the cumulative sum is the textbook's."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postprocess.analyses.drift import detect as changepoints
from postprocess.analyses.drift.detect import (
    LEAST_SEGMENT,
    PENALTY,
    compute_cusums,
    estimate_robust_spread,
    find_change_points,
)

heights = st.integers(-6, 6).map(float) | st.floats(-6, 6)
series = st.lists(heights, min_size=3, max_size=11).map(np.array)
scales = st.floats(0.01, 10)


def all_segmentations(nights: int) -> Iterator[tuple[int, ...]]:
    """Each way to cut so many nights into segments of ``LEAST_SEGMENT`` or more."""
    yield ()
    for last in range(LEAST_SEGMENT, nights - LEAST_SEGMENT + 1):
        yield from ((*earlier, last) for earlier in all_segmentations(last))


def cost(values: np.ndarray, changes: tuple[int, ...], scale: float) -> float:
    """What the fit makes least."""
    bounds = [0, *changes, len(values)]
    parts = [values[a:b] / scale for a, b in pairwise(bounds)]
    penalty = PENALTY * math.log(len(values)) * len(changes)
    return penalty + sum(float(np.abs(part - np.median(part)).sum()) for part in parts)


def one(values: np.ndarray, scale: float) -> tuple[int, ...]:
    return tuple(find_change_points([values], [scale])[0])


# ---------------------------------------------------------------- levels


@settings(max_examples=200)
@given(series, scales)
def test_no_segmentation_is_better(values, scale):
    found = one(values, scale)
    assert all(end - begin >= LEAST_SEGMENT for begin, end in pairwise([0, *found, len(values)]))
    best = min(cost(values, each, scale) for each in all_segmentations(len(values)))
    assert cost(values, found, scale) == pytest.approx(best, abs=1e-6)


@settings(max_examples=50)
@given(st.lists(st.tuples(series, scales), min_size=1, max_size=6))
def test_others_beside_it_change_nothing(several):
    """Series of different lengths share the arrays of one computation."""
    together = find_change_points([values for values, _ in several], [scale for _, scale in several])
    assert [tuple(each) for each in together] == [one(values, scale) for values, scale in several]


def test_more_series_than_are_fitted_together(monkeypatch):
    monkeypatch.setattr(changepoints, "CHUNK", 2)
    several = [np.array([0.0] * n + [9.0] * 6) for n in (7, 3, 5, 9, 4)]
    assert find_change_points(several, [0.1] * 5) == [[7], [3], [5], [9], [4]]


def test_one_night_out_of_line_is_no_level():
    """Of any height, also as the first or the last one: fewer than LEAST_SEGMENT nights never are."""
    for night in (0, 11, 29):
        values = np.zeros(30)
        values[night] = 1e6
        assert one(values, 0.01) == ()


def test_nothing_to_fit():
    assert find_change_points([], []) == []
    assert compute_cusums([], []) == []


# ---------------------------------------------------------------- spread


@given(st.lists(st.integers(-6, 6), min_size=3, max_size=20), st.integers(-9, 9), scales)
def test_spread_follows_scale_and_not_level(values, shift, scale):
    values = np.array(values, dtype=float)
    own = estimate_robust_spread(values)
    assert estimate_robust_spread(values + shift) == pytest.approx(own)
    if own > changepoints.LEAST_SPREAD:
        assert estimate_robust_spread(scale * values) == pytest.approx(scale * own)


def test_spread_is_the_standard_deviation_of_normal_noise_whatever_the_level_does():
    random = np.random.default_rng(2)
    noise = random.normal(0, 0.02, 5000)
    stairs = np.repeat([0.0, 0.5, 0.1, 0.3, -1.0], 1000)
    for level in (np.zeros(5000), stairs, np.linspace(0, 3, 5000)):
        assert estimate_robust_spread(noise + level) == pytest.approx(0.02, rel=0.06)


def test_spread_of_a_series_that_does_not_move_is_not_zero():
    assert estimate_robust_spread(np.zeros(20)) == changepoints.LEAST_SPREAD
    assert estimate_robust_spread(np.repeat([0.0, 1e-9], 10)) == changepoints.LEAST_SPREAD


def test_spread_of_a_rounded_series_is_that_of_its_digits():
    """Most nights print the same digits: the median difference is 0, and the noise is not."""
    rounded = np.zeros(60)
    rounded[::7] = 0.05
    assert estimate_robust_spread(rounded) > 0.01


# ---------------------------------------------------------------- creep


def plain_sum(values: np.ndarray, scale: float) -> tuple[float, int]:
    height, start = 0.0, 0
    for night, value in enumerate(values):
        height += min(value / scale, changepoints.MOST_OF_A_NIGHT) - changepoints.ALLOWANCE
        height = min(max(height, 0.0), changepoints.MOST_IN_ALL)
        start = night + 1 if height == 0.0 else start
    return height, start


@given(st.lists(st.tuples(series, scales), min_size=1, max_size=5))
def test_the_cumulative_sum_is_that_of_each_series_alone(several):
    found = compute_cusums([values for values, _ in several], [scale for _, scale in several])
    for (values, scale), total in zip(several, found, strict=True):
        height, start = plain_sum(values, scale)
        assert total.height == pytest.approx(height, abs=1e-9)
        assert total.start == start


def test_one_night_however_bad_is_no_creep():
    (total,) = compute_cusums([np.array([0.0] * 20 + [1e9])], [0.02])
    assert total.height < changepoints.LIMIT


def test_a_creep_that_is_over_is_forgotten_in_weeks():
    slow_for_a_year = np.array([0.1] * 365 + [0.0] * 20)
    (total,) = compute_cusums([slow_for_a_year], [0.02])
    assert total.height < changepoints.LIMIT
