"""Steps are told where they were planted, creep since it began, and noise is told of nothing."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postprocess.analyses import drift
from postprocess.base.formats import MEGABYTES, SECONDS
from tests.statistical.simulated_drift import NOISES, run_length, shares
from tests.support.factories.drift import CASE, REFERENCE, nights, noise, stepped


def told(logs, **more) -> list[drift.DriftFinding]:
    (trend,) = drift.detect_trends([nights(logs, **more)])
    return list(trend.findings)


# ---------------------------------------------------------------- nothing to tell


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_told_nothing_of(seed):
    assert told(noise(seed=seed, spread=0.02)) == []


def test_nothing_is_said_of_few_nights():
    """A spread from a handful of nights is none."""
    logs = stepped(3, 0.5, nights=drift.ENOUGH_NIGHTS)
    assert told(logs[:-1]) == []
    assert told(logs) != []


def test_a_change_that_is_small_is_not_told_however_clear_it_is():
    assert told(stepped(30, 0.025, spread=0.001)) == []
    assert told(stepped(30, 0.035, spread=0.001)) != []


def test_bad_single_nights_and_four_in_a_row_are_too_few():
    logs = noise()
    logs[[10, 20, 30, 40, 50, 59]] += 2.0
    assert told(logs) == told(stepped(56, 0.2)) == []
    assert [finding.begin for finding in told(stepped(55, 0.2))] == [55]


# ---------------------------------------------------------------- steps


@pytest.mark.parametrize("at", [5, 20, 40, 55])
@pytest.mark.parametrize("by", [0.05, 0.3, 5.0])
def test_a_step_is_told_where_it_was_planted(at, by):
    (found,) = told(stepped(at, by, spread=0.005))
    assert (found.kind, found.begin, found.end, found.slow) == (drift.STEP, at, None, True)
    assert abs(found.size - math.log1p(by)) < 2 * found.margin < 0.03
    assert found.p < 0.001


def test_a_step_to_the_fast_side_is_told_as_fast_and_more_bandwidth_is_faster():
    (found,) = told(-stepped(30, 0.1))
    assert (found.kind, found.begin, found.slow, found.lasts) == (drift.STEP, 30, False, True)
    slower = stepped(30, 0.1)
    for unit in (SECONDS, MEGABYTES):
        assert [finding.slow for finding in told(slower, unit=unit)] == [True]
    bandwidth = nights(slower, unit=MEGABYTES)
    assert bandwidth.values[-1] < bandwidth.references[-1]


@given(st.floats(-2, 2), st.integers(6, 40))
def test_unit_and_height_of_the_reference_move_no_step(height, at):
    logs = stepped(at, 0.2, nights=50)
    series = nights(logs)
    factor = math.exp(height)
    scaled = replace(series, values=series.values * factor, references=series.references * factor)
    (one,), (other,) = (trend.findings for trend in drift.detect_trends([series, scaled]))
    assert (one.kind, one.begin, one.end) == (other.kind, other.begin, other.end) == (drift.STEP, at, None)
    assert one.size == pytest.approx(other.size)


def test_an_excursion_that_is_over_is_told_with_both_its_ends_and_once():
    (found,) = told(stepped(20, 0.1, until=35))
    assert (found.kind, found.begin, found.end, found.slow) == (drift.STEP, 20, 35, True)
    (fast,) = told(-stepped(20, 0.1, until=35))
    assert (fast.begin, fast.end, fast.slow) == (20, 35, False)


def test_what_ends_a_fast_spell_and_goes_beyond_is_a_slowdown():
    logs = stepped(20, -0.1, until=40)
    logs[40:] += math.log1p(0.08)
    spell, slow = told(logs)
    assert (spell.slow, spell.begin, spell.end) == (False, 20, 40)
    assert (slow.slow, slow.begin, slow.lasts) == (True, 40, True)
    # against the level before the spell
    assert slow.size == pytest.approx(math.log1p(0.08), abs=0.01)


@pytest.mark.parametrize(
    ("first", "spread", "second", "begins"),
    [(0.06, {}, 0.08, [20, 40]), (0.1, {"spread": 0.002}, 0.02, [20])],
    ids=["two large ones", "a small one hides none"],
)
def test_of_two_steps_the_large_ones_are_told(first, spread, second, begins):
    logs = stepped(20, first, **spread)
    logs[40:] += math.log1p(second)
    found = [(finding.begin, finding.lasts) for finding in told(logs)]
    assert found == [(begin, True) for begin in begins]


def test_small_steps_that_add_up_are_told():
    """Here each is below the least size, and the sum is not."""
    logs = noise(spread=0.002) - 0.02
    for at in (20, 40):
        logs[at:] += math.log1p(0.02)
    found = told(logs)
    assert [(finding.kind, finding.begin, finding.lasts) for finding in found] == [(drift.STEP, 40, True)]


def test_a_small_gain_does_not_hide_a_step_of_the_least_size():
    logs = noise(spread=0.002)
    logs[15:35] -= 0.02
    logs[35:] += 0.02
    assert [(finding.begin, finding.slow) for finding in told(logs)] == [(35, True)]


# ---------------------------------------------------------------- creep


def test_a_creep_is_told_with_its_beginning_and_size():
    logs = noise(nights=90)
    logs[40:] += np.linspace(0, math.log1p(0.12), 50)
    slow = [finding for finding in told(logs) if finding.slow and finding.lasts]
    assert slow
    assert all(finding.begin >= 40 for finding in slow)


def test_a_creep_too_flat_for_a_step_is_told_as_creep():
    """Two spreads over 60 nights: often no level is clear enough, and the sum is."""
    ramp = np.linspace(0, 0.06, 60)
    found = [told(noise(spread=0.03, seed=seed) + ramp) for seed in range(40)]
    lasting = [finding for some in found for finding in some if finding.lasts]
    assert all(finding.slow for finding in lasting)
    assert sum(map(bool, found)) > 20
    assert sum(finding.kind == drift.CREEP for finding in lasting) > 5


@pytest.mark.parametrize("side", [1, -1])
def test_another_level_than_the_references_from_the_first_night_on_is_a_creep(side):
    (found,) = told(noise() + side * math.log1p(0.06))
    assert (found.kind, found.begin, found.slow) == (drift.CREEP, 0, side > 0)
    assert found.size == pytest.approx(side * math.log1p(0.06), abs=0.01)


def test_a_creep_below_the_least_size_is_not_told():
    assert told(noise(spread=0.002) + 0.02) == []


def test_a_creep_is_over_when_most_of_the_last_nights_are_fine():
    logs = np.full(60, math.log1p(0.08))
    assert drift.find_creep(logs, drift.Creep(16.0, 0), 0.02, math.log1p(0.03)) is not None
    logs[-3:] = 0.0
    assert drift.find_creep(logs, drift.Creep(16.0, 0), 0.02, math.log1p(0.03)) is None


# ---------------------------------------------------------------- epochs and programs


def test_what_was_before_the_reference_changed_does_not_count():
    logs = stepped(30, 0.2)
    assert told(logs) != []
    assert told(logs - np.where(np.arange(60) >= 30, math.log1p(0.2), 0), epoch=30) == []


def test_nights_are_counted_from_the_first_of_all_epochs():
    logs = np.concatenate([noise(30, seed=5) + 9.0, stepped(20, 0.2, nights=40)])
    (trend,) = drift.detect_trends([nights(logs, epoch=30)])
    assert [finding.begin for finding in trend.findings] == [50]
    assert list(trend.changes) == [50]


def test_a_new_epoch_is_silent_until_it_has_enough_nights():
    logs = stepped(50, 0.5)
    assert told(logs, epoch=51) == []


def test_a_printed_digit_that_turns_over_is_no_step():
    """0.22 and 0.23 us are 4.5% apart, and may be half a hundredth of it."""
    digits = np.log(np.where(np.arange(60) < 30, 0.22, 0.23) / 0.22)
    printed = nights(digits, case=replace(CASE, program="osu"))
    small = 0.22e-6 / REFERENCE
    printed = replace(printed, values=printed.values * small, references=printed.references * small)
    assert printed.values[0] == pytest.approx(0.22e-6)
    assert not [finding for finding in drift.detect_trends([printed])[0].findings if finding.kind == drift.STEP]
    exact = replace(printed, case=CASE)
    assert [finding.begin for finding in drift.detect_trends([exact])[0].findings] == [30]


def test_several_cases_are_examined_as_if_each_were_alone():
    some = [nights(stepped(at, 0.1, nights=length)) for at, length in ((9, 30), (20, 60), (6, 12))]
    some.insert(1, nights(noise(5)))
    together = [list(trend.findings) for trend in drift.detect_trends(some)]
    assert together == [list(drift.detect_trends([each])[0].findings) for each in some]
    assert [bool(each) for each in together] == [True, False, True, True]


def test_now_is_the_level_of_the_last_nights():
    (trend,) = drift.detect_trends([nights(stepped(45, 0.1))])
    assert trend.now == pytest.approx(math.log1p(0.1), abs=0.01)


# ---------------------------------------------------------------- what is promised


@pytest.mark.parametrize("noise_name", ["normal", "t4"])
def test_false_alarms_and_power_are_those_that_are_stated(noise_name):
    """As the method has them; ``python -m tests.statistical.simulated_drift`` prints the whole table."""
    source = NOISES[noise_name]
    assert shares(source, 500).either <= 0.002
    assert shares(source, 300, 0.05, 10).either > 0.95
    assert shares(source, 300, 0.05, 20).step > 0.95
    assert shares(source, 300, 0.10, 5).step > 0.9


def test_noise_that_comes_and_goes_over_days_costs_false_alarms_and_how_many():
    assert shares(NOISES["lasting"], 500).either < 0.05


def test_run_length_of_the_cumulative_sum():
    """Siegmund's figures: 19,000 nights to a false alarm, 16 at one spread and 6 at two."""
    assert run_length(NOISES["normal"], 300) > 10_000
    assert run_length(NOISES["normal"], 100, 1.0) == pytest.approx(16, abs=3)
    assert run_length(NOISES["normal"], 100, 2.0) == pytest.approx(6, abs=1)


heights = st.integers(-6, 6).map(float) | st.floats(-6, 6)
series = st.lists(heights, min_size=3, max_size=11).map(np.array)
scales = st.floats(0.01, 10)


def all_segmentations(nights: int) -> Iterator[tuple[int, ...]]:
    """Each way to cut so many nights into segments of ``LEAST_SEGMENT`` or more."""
    yield ()
    for last in range(drift.LEAST_SEGMENT, nights - drift.LEAST_SEGMENT + 1):
        yield from ((*earlier, last) for earlier in all_segmentations(last))


def cost(values: np.ndarray, changes: tuple[int, ...], scale: float) -> float:
    """What the fit makes least."""
    bounds = [0, *changes, len(values)]
    parts = [values[a:b] / scale for a, b in pairwise(bounds)]
    penalty = drift.PENALTY * math.log(len(values)) * len(changes)
    return penalty + sum(float(np.abs(part - np.median(part)).sum()) for part in parts)


def one(values: np.ndarray, scale: float) -> tuple[int, ...]:
    return tuple(drift.find_change_points([values], [scale])[0])


# ---------------------------------------------------------------- levels


@settings(max_examples=200)
@given(series, scales)
def test_no_segmentation_is_better(values, scale):
    found = one(values, scale)
    assert all(end - begin >= drift.LEAST_SEGMENT for begin, end in pairwise([0, *found, len(values)]))
    best = min(cost(values, each, scale) for each in all_segmentations(len(values)))
    assert cost(values, found, scale) == pytest.approx(best, abs=1e-6)


@settings(max_examples=50)
@given(st.lists(st.tuples(series, scales), min_size=1, max_size=6))
def test_others_beside_it_change_nothing(several):
    """Series of different lengths share the arrays of one computation."""
    together = drift.find_change_points([values for values, _ in several], [scale for _, scale in several])
    assert [tuple(each) for each in together] == [one(values, scale) for values, scale in several]


def test_more_series_than_are_fitted_together(monkeypatch):
    monkeypatch.setattr(drift, "CHUNK", 2)
    several = [np.array([0.0] * n + [9.0] * 6) for n in (7, 3, 5, 9, 4)]
    assert drift.find_change_points(several, [0.1] * 5) == [[7], [3], [5], [9], [4]]


def test_one_night_out_of_line_is_no_level():
    """Of any height, also as the first or the last one: fewer than LEAST_SEGMENT nights never are."""
    for night in (0, 11, 29):
        values = np.zeros(30)
        values[night] = 1e6
        assert one(values, 0.01) == ()


def test_nothing_to_fit():
    assert drift.find_change_points([], []) == []
    assert drift.compute_cusums([], []) == []


# ---------------------------------------------------------------- spread


@given(st.lists(st.integers(-6, 6), min_size=3, max_size=20), st.integers(-9, 9), scales)
def test_spread_follows_scale_and_not_level(values, shift, scale):
    values = np.array(values, dtype=float)
    own = drift.estimate_robust_spread(values)
    assert drift.estimate_robust_spread(values + shift) == pytest.approx(own)
    if own > drift.LEAST_SPREAD:
        assert drift.estimate_robust_spread(scale * values) == pytest.approx(scale * own)


def test_spread_is_the_standard_deviation_of_normal_noise_whatever_the_level_does():
    random = np.random.default_rng(2)
    noise = random.normal(0, 0.02, 5000)
    stairs = np.repeat([0.0, 0.5, 0.1, 0.3, -1.0], 1000)
    for level in (np.zeros(5000), stairs, np.linspace(0, 3, 5000)):
        assert drift.estimate_robust_spread(noise + level) == pytest.approx(0.02, rel=0.06)


def test_spread_of_a_series_that_does_not_move_is_not_zero():
    assert drift.estimate_robust_spread(np.zeros(20)) == drift.LEAST_SPREAD
    assert drift.estimate_robust_spread(np.repeat([0.0, 1e-9], 10)) == drift.LEAST_SPREAD


def test_spread_of_a_rounded_series_is_that_of_its_digits():
    """Most nights print the same digits: the median difference is 0, and the noise is not."""
    rounded = np.zeros(60)
    rounded[::7] = 0.05
    assert drift.estimate_robust_spread(rounded) > 0.01


# ---------------------------------------------------------------- creep


def plain_sum(values: np.ndarray, scale: float) -> tuple[float, int]:
    height, start = 0.0, 0
    for night, value in enumerate(values):
        height += min(value / scale, drift.MOST_OF_A_NIGHT) - drift.ALLOWANCE
        height = min(max(height, 0.0), drift.MOST_IN_ALL)
        start = night + 1 if height == 0.0 else start
    return height, start


@given(st.lists(st.tuples(series, scales), min_size=1, max_size=5))
def test_the_cumulative_sum_is_that_of_each_series_alone(several):
    found = drift.compute_cusums([values for values, _ in several], [scale for _, scale in several])
    for (values, scale), total in zip(several, found, strict=True):
        height, start = plain_sum(values, scale)
        assert total.height == pytest.approx(height, abs=1e-9)
        assert total.start == start


def test_one_night_however_bad_is_no_creep():
    (total,) = drift.compute_cusums([np.array([0.0] * 20 + [1e9])], [0.02])
    assert total.height < drift.LIMIT


def test_a_creep_that_is_over_is_forgotten_in_weeks():
    slow_for_a_year = np.array([0.1] * 365 + [0.0] * 20)
    (total,) = drift.compute_cusums([slow_for_a_year], [0.02])
    assert total.height < drift.LIMIT


def test_change_points_do_not_hang_on_the_rounding_of_a_processor():
    """Both middle values of an even number of nights fit a level equally well."""
    series = [noise(seed=seed) + 0.002 * np.arange(60) for seed in (4, 259)]
    errors = [0.0, *np.random.default_rng(1).normal(0, 1e-16, (20, 60))]
    found = [drift.find_change_points([logs + error for logs in series], [0.01] * 2) for error in errors]
    assert all(each == found[0] for each in found)
