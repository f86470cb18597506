"""Straight lines through times over sizes: breaks that are there are found, and others are not."""

import numpy as np
import pytest

from postprocess.features.compare.facts import SIZES
from postprocess.stats import curves

LINE_SIZES = [0, *(2**k for k in range(21))]  #: to 1 MiB
FOURS = [0, *(4**k for k in range(11))]
EAGER = curves.Segment(0, 16384, 1.2e-6, 0.5e-9)
RENDEZVOUS = curves.Segment(32768, 2**20, 7e-6, 0.11e-9)


def times(sizes, *segments, noise=0.0, seed=0):
    exact = np.array([next(s for s in segments if size <= s.last).time(size) for size in sizes], dtype=float)
    return exact * np.exp(np.random.default_rng(seed).normal(0, noise, exact.size))


def test_an_exact_line_is_one_segment_and_comes_out_again():
    line = curves.Segment(0, 2**20, 3e-6, 1 / 350e6)
    (found,) = curves.fit_segments(LINE_SIZES, times(LINE_SIZES, line))
    assert (found.first, found.last) == (0, 2**20)
    assert found.start == pytest.approx(3e-6, rel=1e-9)
    assert found.slope == pytest.approx(1 / 350e6, rel=1e-9)


def test_a_change_of_protocol_is_found_between_its_sizes():
    low, high = curves.fit_segments(LINE_SIZES, times(LINE_SIZES, EAGER, RENDEZVOUS, noise=0.02))
    assert (low.last, high.first) == (16384, 32768)
    assert low.start == pytest.approx(1.2e-6, rel=0.05)
    assert high.slope == pytest.approx(0.11e-9, rel=0.1)


def test_two_changes_are_found_among_powers_of_two():
    middle = curves.Segment(1024, 16384, 3e-6, 0.9e-9)
    small = curves.Segment(0, 512, 1.2e-6, 0.5e-9)
    found = curves.fit_segments(LINE_SIZES, times(LINE_SIZES, small, middle, RENDEZVOUS, noise=0.01))
    assert [segment.first for segment in found] == [0, 1024, 32768]


@pytest.mark.parametrize("sizes", [LINE_SIZES, FOURS])
def test_noise_makes_no_break(sizes):
    line = curves.Segment(0, 2**20, 2e-6, 1e-10)
    breaks = [len(curves.fit_segments(sizes, times(sizes, line, noise=0.05, seed=n))) - 1 for n in range(100)]
    assert sum(map(bool, breaks)) <= 3


def test_what_fits_better_than_anybody_needs_is_no_break():
    bent = times(LINE_SIZES, curves.Segment(0, 4096, 2e-6, 1e-10), curves.Segment(8192, 2**20, 2.004e-6, 1e-10))
    assert len(curves.fit_segments(LINE_SIZES, bent)) == 1


def test_few_sizes_make_one_line():
    assert len(curves.fit_segments([8, 10_000, 1_000_000], [1e-6, 5e-6, 90e-6])) == 1
    line = curves.fit_line([8, 1_000_000], [1e-6, 101e-6])
    assert line.slope == pytest.approx(1e-10, rel=1e-3)


def test_start_and_slope_are_never_negative():
    falling = curves.fit_line([1, 2, 3], [3e-6, 2e-6, 1e-6])
    assert falling.slope == 0
    assert falling.start > 0
    steep = curves.fit_line([1, 2, 3], [1e-9, 2e-6, 4e-6])
    assert steep.start == 0


def test_a_size_between_two_segments_is_of_the_nearer_one():
    segments = (EAGER, RENDEZVOUS)
    assert curves.find_segment(segments, 20_000) == EAGER
    assert curves.find_segment(segments, 30_000) == RENDEZVOUS
    assert curves.predict_time(segments, 2**22) == RENDEZVOUS.time(2**22)


def test_the_error_is_the_mean_of_absolute_relative_ones():
    assert curves.compute_mean_error([1.1, 0.7], [1.0, 1.0]) == pytest.approx(0.2)
    with pytest.raises(ValueError, match="one at least"):
        curves.compute_mean_error([], [])


@pytest.mark.parametrize(
    ("sizes", "seconds"),
    [([1], [1.0]), ([2, 1], [1.0, 1.0]), ([1, 2], [1.0, 0.0]), ([1, 2], [1.0, float("nan")])],
)
def test_what_is_no_series_is_refused(sizes, seconds):
    with pytest.raises(ValueError, match=r"size|time"):
        curves.fit_segments(sizes, seconds)


def measure(limit: int, extra: float, noise: float, seed: int = 0) -> list[float]:
    """Times of a library that needs a handshake beyond a limit."""
    random = np.random.default_rng(seed)
    times = [1e-6 + 1e-10 * s + (extra if s > limit else 0) for s in SIZES]
    return [t * float(np.exp(random.normal(0, noise))) for t in times]


def find(times: list[float], error: float) -> list[curves.Switch]:
    return curves.find_switches(SIZES, times, curves.fit_segments(SIZES, times, curves.MOST_SEGMENTS), error)


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
    assert len(curves.fit_segments(SIZES, times, curves.MOST_SEGMENTS)) > 1 and not find(times, 0.01)


def test_a_step_that_the_noise_may_make_is_no_switch() -> None:
    times = measure(8192, 4e-6, 0.0)
    assert find(times, 0.01) and not find(times, 0.5)
