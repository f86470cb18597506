"""The band holds a healthy launch with the probability that it states."""

import math
import statistics
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reframe.utility import sanity
from scipy import stats

from postprocess.base.formats import MEGABYTES, compute_slowdown
from postprocess.judging.evaluate import judge_case
from postprocess.model.measurement import Measurement
from postprocess.model.reference import Prior, Reference
from postprocess.model.verdict import Verdict
from postprocess.references import reference_file
from postprocess.stats import band
from tests.support.factories.launch import PLACE, case, origin_of

CENTERS = st.floats(min_value=1e-9, max_value=1e3)
SPREADS = st.floats(min_value=0.0, max_value=3.0)
LAUNCHES = st.integers(min_value=2, max_value=100)
NARROW, WIDE = 0.001, 0.6  #: a spread below every floor, and one above


def reference(center=1e-6, spread=WIDE, launches=20, size=8) -> Reference:
    return Reference(case(size=size), center, spread, launches)


def factor_above(known: Reference, limits: band.Band) -> float:
    """Distance of the upper limit from the center in spreads."""
    return math.log(limits.upper / known.center) / known.spread


def factor_below(known: Reference, limits: band.Band) -> float:
    return math.log(known.center / limits.lower) / known.spread


# Table of the prediction factors t(1 - alpha; n - 1) sqrt(1 + 1/n), to the two places given
PERCENT = {10: 2.96, 20: 2.60, 30: 2.50}
PER_MILLE = {5: 7.86, 10: 4.51, 20: 3.67, 30: 3.45}


def test_limits_at_one_percent_and_one_per_mille_are_the_tabulated_ones(monkeypatch):
    monkeypatch.setattr("postprocess.stats.band.SLOW_ALPHA", 0.01)
    for table, factor in ((PERCENT, factor_above), (PER_MILLE, factor_below)):
        some = {launches: reference(launches=launches) for launches in table}
        found = {launches: factor(known, band.compute_band(known)) for launches, known in some.items()}
        assert found == pytest.approx(table, abs=0.0051)


@given(st.integers(min_value=10, max_value=200))
def test_limits_agree_with_the_formula(launches):
    known = reference(launches=launches)
    root = math.sqrt(1 + 1 / launches)
    slow = stats.t.ppf(1 - band.SLOW_ALPHA, launches - 1) * root
    fast = stats.t.ppf(0.999, launches - 1) * root
    assert factor_above(known, band.compute_band(known)) == pytest.approx(slow, rel=1e-9)
    assert factor_below(known, band.compute_band(known)) == pytest.approx(fast, rel=1e-9)


@given(CENTERS, SPREADS, st.integers(min_value=1, max_value=100))
def test_the_center_lies_inside_finite_limits(center, spread, launches):
    limits = band.compute_band(reference(center, spread, launches))
    assert 0 < limits.lower < center < limits.upper < math.inf
    assert limits.blind == (launches < 2)


# ---------------------------------------------------------------- floors


@pytest.mark.parametrize(
    ("size", "floor"), [(0, 0.05), (8, 0.05), (9_999, 0.05), (10_000, 0.045), (1_000_000, 0.045)]
)
@pytest.mark.parametrize("spread", [0.0, NARROW])
def test_no_band_is_narrower_than_is_practical(size, floor, spread):
    limits = band.compute_band(reference(1e-6, spread, size=size))
    assert limits.upper == pytest.approx(1e-6 * (1 + floor), rel=1e-9)
    assert limits.lower == pytest.approx(1e-6 / (1 + floor), rel=1e-9)


def test_no_band_is_narrower_than_two_ticks_of_the_timer():
    limits = band.compute_band(reference(1e-6, NARROW), resolution=1e-7)
    assert limits.upper == pytest.approx(1.2e-6, rel=1e-9)
    assert limits.lower == pytest.approx(1e-6 / 1.2, rel=1e-9)
    found = band.compute_band(reference(1e-6, NARROW), resolution=1e-9)
    assert found == band.compute_band(reference(1e-6, NARROW))
    found = band.compute_band(reference(1e-6, WIDE), resolution=1e-7)
    assert found == band.compute_band(reference(1e-6, WIDE))
    coarsest = band.compute_band(reference(1e-6, NARROW), resolution=1.0).upper
    assert coarsest == pytest.approx(1e-6 + 2 * band.COARSEST_CLOCK)


# ---------------------------------------------------------------- few launches


@given(SPREADS, st.integers(2, 30), st.floats(0.01, 0.5), st.floats(1, 100))
def test_a_band_is_as_wide_as_its_launches_and_similar_cases_say(spread, launches, typical, worth):
    """However few there are: no factor stands in for what is not known."""
    known = replace(reference(spread=spread, launches=launches), prior=Prior(typical, worth))
    own, degrees = known.moderated
    width = stats.t.ppf(1 - band.SLOW_ALPHA, degrees) * own * math.sqrt(1 + 1 / launches)
    expected = max(math.log1p(band.SMALL_FLOOR), width)
    found = math.log(band.compute_band(known).upper / known.center)
    assert found == pytest.approx(min(expected, band.LARGEST_LOG - math.log(known.center)), rel=1e-6)


def test_the_band_of_a_median_lies_within_that_of_a_launch():
    one, three, nine = (band.compute_band(reference(), median_of=each) for each in (1, 3, 9))
    assert one.upper > three.upper > nine.upper > 1e-6
    assert one.lower < three.lower < nine.lower < 1e-6


def test_two_launches_that_differ_assert_next_to_nothing_but_stay_finite():
    limits = band.compute_band(reference(1e-6, 100.0, 2))
    assert 1e100 < limits.upper < math.inf
    assert 0 < limits.lower < 1e-100
    assert compute_slowdown(limits.lower, 100.0, MEGABYTES) < math.inf  # how slow a rate at its limit is


# ---------------------------------------------------------------- coverage

CALIBRATIONS = 20_000


def share_outside(launches: int) -> tuple[float, float]:
    """Share of fresh log-normal launches below and above bands calibrated from ``launches``."""
    random = np.random.default_rng(20261121 + launches)
    logs = random.normal(math.log(1e-5), WIDE, size=(CALIBRATIONS, launches + 1))
    times = np.exp(logs)
    below = above = 0
    for *sample, fresh in times:
        (known,) = band.estimate_references({case(): sample})
        limits = band.compute_band(known)
        below += fresh < limits.lower
        above += fresh > limits.upper
    return below / CALIBRATIONS, above / CALIBRATIONS


def tolerance(probability: float) -> float:
    """Four standard errors of a simulated share; the seed is fixed, so the test never wavers."""
    return 4 * math.sqrt(probability * (1 - probability) / CALIBRATIONS)


@pytest.mark.parametrize("launches", [10, 20])
def test_a_healthy_launch_is_slow_three_times_in_a_hundred_and_fast_once_in_a_thousand(launches):
    below, above = share_outside(launches)
    assert above == pytest.approx(band.SLOW_ALPHA, abs=tolerance(band.SLOW_ALPHA))
    assert below == pytest.approx(0.001, abs=tolerance(0.001))


@pytest.mark.parametrize(
    ("launches", "prior", "blind"), [(1, None, True), (2, None, False), (1, Prior(0.05, 9.0), False)]
)
def test_a_single_launch_condemns_nothing_but_by_what_similar_cases_say(launches, prior, blind):
    """It says nothing of how launches differ: ReFrame is given no limit."""
    for known in (reference(1e-6, 0.0, launches), rate(1e3, 0.0, launches)):
        told = replace(known, prior=prior)
        limits = band.compute_band(told)
        assert limits.blind is blind
        _, lower, upper, _ = band.convert_to_reframe(told, limits)
        assert ((lower, upper) == (None, None)) is blind
    exact = replace(reference(1e-6, 0.0, 1), exact=True)
    assert not band.compute_band(exact).blind


# ---------------------------------------------------------------- ReFrame's form


RATIOS = st.floats(min_value=1e-4, max_value=1e4)


@given(CENTERS, SPREADS, LAUNCHES, RATIOS, st.booleans())
def test_reframe_draws_the_same_line(center, spread, launches, ratio, is_rate):
    known = (rate if is_rate else reference)(center, spread, launches)
    limits = band.compute_band(known)
    wanted, lower, upper, unit = band.convert_to_reframe(known, limits)
    assert (wanted, unit) == (center, known.unit)
    assert (upper if is_rate else lower) is None
    assert -1 <= lower < 0 if is_rate else 0 < upper < math.inf  # ReFrame refuses what is not
    value = center * ratio
    if not math.isclose(value, limits.slow_limit, rel_tol=1e-12):
        assert reframe_passes(value, wanted, lower, upper) != limits.too_slow(value)


def reframe_passes(value: float, wanted: float, lower: float | None, upper: float | None) -> bool:
    """What ReFrame's own assertion says."""
    try:
        return bool(sanity.assert_reference(value, wanted, lower, upper).evaluate())
    except sanity.SanityError:
        return False


# ---------------------------------------------------------------- where higher is better


def rate(center=1e3, spread=WIDE, launches=20, size=8) -> Reference:
    known = reference(center, spread, launches, size)
    return Reference(known.case, center, spread, launches, MEGABYTES)


@given(CENTERS, SPREADS, st.integers(1, 100), st.sampled_from([0, 8, 10_000]))
def test_the_band_of_a_rate_is_the_mirror_image_of_that_of_a_time(center, spread, launches, size):
    """On the logarithm, value -> 1 / value: what was too slow above is too slow below."""
    time = band.compute_band(reference(center, spread, launches, size))
    mirrored = band.compute_band(rate(1 / center, spread, launches, size))
    assert mirrored.lower == pytest.approx(1 / time.upper, rel=1e-9)
    if time.lower > 1e-100:  # beyond, limits are cut where numbers end
        assert mirrored.upper == pytest.approx(1 / time.lower, rel=1e-9)
    assert (mirrored.blind, mirrored.better) == (time.blind, "higher")
    assert time.better == "lower"


@pytest.mark.parametrize("known", [reference(), rate(), reference(launches=3), rate(launches=3)])
def test_a_limit_is_inside_in_both_directions(known):
    limits = band.compute_band(known)
    for value in (limits.lower, limits.upper, known.center):
        assert not limits.too_slow(value) and not limits.too_fast(value)
    distance = abs(math.log(limits.slow_limit / known.center))
    assert band.compute_slow_distance(known, limits) == pytest.approx(distance)


TIMES = st.floats(min_value=1e-9, max_value=1e3)


@given(st.lists(TIMES, min_size=2, max_size=40))
def test_center_and_spread_are_those_of_the_logarithm(times):
    (reference,) = band.estimate_references({case(): times})
    logs = [math.log(time) for time in times]
    assert reference.center == pytest.approx(statistics.geometric_mean(times), rel=1e-9)
    assert reference.spread == pytest.approx(statistics.stdev(logs), rel=1e-9, abs=1e-12)
    assert (reference.launches, reference.unit) == (len(times), "s")


@pytest.mark.parametrize(("launches", "few"), [(1, True), (9, True), (10, False)])
def test_ten_launches_are_enough_and_one_has_no_spread(launches, few):
    (reference,) = band.estimate_references({case(): [2e-6] * launches})
    assert (reference.center, reference.launches) == (pytest.approx(2e-6), launches)
    assert reference.few_launches is few and reference.spread == pytest.approx(0.0, abs=1e-12)


def test_cases_come_sorted():
    made = band.estimate_references({case(size=size): np.array([1e-6]) for size in (1_000_000, 8, 10_000)})
    assert [reference.case.bytes for reference in made] == [8, 10_000, 1_000_000]
    assert band.estimate_references({}) == []


@pytest.mark.parametrize("times", [[], [0.0], [1e-6, -1e-6], [math.nan], [1e-6, math.inf]])
def test_what_is_no_time_is_refused_by_case(times):
    with pytest.raises(ValueError, match=f"^{case().key}: "):
        band.estimate_references({case(): times})


# Simulated time, which repeats.


def test_simulated_launches_give_an_exact_reference(tmp_path):
    (reference,) = band.estimate_exact_references({case(): [3.5e-6, 3.5e-6]})
    assert reference == Reference(case(), 3.5e-6, 0.0, 2, exact=True)
    assert not reference.few_launches
    path = reference_file.locate_references(tmp_path, *PLACE)
    reference_file.write_references(path, [reference], origin_of())
    assert path.read_text().splitlines()[1].split("\t")[-3:] == ["3.5e-06", "exact", "2"]
    assert reference_file.load_references(path, *PLACE) == {case(): reference}


def test_time_that_does_not_repeat_is_not_exact():
    with pytest.raises(ValueError, match="simulated time does not repeat"):
        band.estimate_exact_references({case(): [3.5e-6, 3.6e-6]})


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (1e-3, Verdict.PASS),
        (1.000001e-3, Verdict.PASS),  # one nanosecond of a clock
        (1.00001e-3, Verdict.REGRESSED),
        (0.99999e-3, Verdict.FAST),
    ],
)
def test_any_difference_from_an_exact_reference_is_seen(value, verdict):
    (reference,) = band.estimate_exact_references({case(): [1e-3]})
    assert judge_case(case(), Measurement(value), reference, resolution=1e-6).verdict == verdict
    limits = band.compute_band(reference)
    _, _, upper, _ = band.convert_to_reframe(reference, limits)
    assert (value <= reference.center * (1 + upper)) == (verdict != Verdict.REGRESSED)
