"""What a night would catch: by the model, by simulation, and in every kind of reference."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from postprocess.stats.detection import compute_detection_probability
from scipy.stats import t as student

from postprocess.base.units import MEGABYTES, SECONDS
from postprocess.judging.rules import judge_case
from postprocess.model.case import Case
from postprocess.model.measurement import Measurement
from postprocess.model.reference import Prior, Reference
from postprocess.model.verdict import Verdict
from postprocess.stats import detection
from postprocess.stats.band import SLOW_ALPHA, SMALL_FLOOR, compute_band
from postprocess.stats.confirmation_rule import (
    FINE_TO_CLEAR,
    SLOW_TO_CONFIRM,
    compute_confirmation_probability,
)
from postprocess.stats.power import (
    DETECTION_POWER,
    Scatter,
    compute_detectable_slowdown,
    compute_detection_margin,
)

CASE = Case("laptop", "cpu", "mpich", "mpicost", "bcast", 0, "flush", "window", 2, 2, 8)
SETTLED = Reference(CASE, 1e-5, 0.03, 20)
LAUNCHES = st.integers(2, 100)
SPREADS = st.floats(0.001, 0.3)


def found(reference: Reference, best: float | None = None, resolution: float = 0.0) -> float | None:
    """Detectability after a night as usual; ``best`` as a share of the headline."""
    value = reference.center
    measured = Measurement(value, reference.unit, None if best is None else best * value)
    return compute_detectable_slowdown(reference, compute_band(reference, resolution), measured)


@pytest.mark.parametrize(("launches", "degrees"), [(3, 2.0), (5, 4.0), (10, 25.0), (30, 1029.0)])
def test_the_mean_over_what_is_not_known_is_the_prediction_distribution(launches, degrees):
    """The same integral has a closed form where only one launch is asked for: Student's t."""
    known = Scatter(0.02, degrees, launches)
    width = student.ppf(0.99, degrees) * 0.02 * math.sqrt(1 + 1 / launches)
    assert known.screened(width) == pytest.approx(0.01, rel=1e-6)
    offsets, precisions, weights = detection.integrate_parameters(launches, degrees)
    first = np.sum(weights * detection.ndtr(-width / 0.02 * precisions + offsets))
    assert first == pytest.approx(0.01, rel=1e-5)


@pytest.mark.parametrize("chance", [0.0, 0.01, 0.3, 0.5, 0.9, 1.0])
def test_fresh_launches_are_counted_as_a_night_counts_them(chance):
    """Every course of votes up to the decision, each with its probability."""

    def confirmed(slow: int, fine: int) -> float:
        if slow == SLOW_TO_CONFIRM or fine == FINE_TO_CLEAR:
            return float(slow == SLOW_TO_CONFIRM)
        return chance * confirmed(slow + 1, fine) + (1 - chance) * confirmed(slow, fine + 1)

    found = compute_confirmation_probability(np.array(chance))
    assert found == pytest.approx(confirmed(0, 0), abs=1e-12)


@pytest.mark.parametrize(("launches", "prior_degrees"), [(5, 6.0), (10, 0.0), (20, 12.0)])
@pytest.mark.parametrize("spread", [0.01, 0.05])
def test_simulated_nights_catch_nine_in_ten(launches: int, prior_degrees: float, spread: float):
    """Calibrations, and nights that are slower by just what each calibration says it would catch."""
    random, many = np.random.default_rng(1), 20_000
    degrees = launches - 1 + prior_degrees
    logs = random.normal(0, spread, (many, launches))
    own = logs.var(axis=1, ddof=1)
    # what kin say is as if there were more launches of the same spread
    more = spread**2 * random.chisquare(prior_degrees, many) if prior_degrees else 0.0
    shared = np.sqrt(((launches - 1) * own + more) / degrees)
    width = student.ppf(1 - SLOW_ALPHA, degrees) * shared * math.sqrt(1 + 1 / launches)
    width = np.maximum(width, math.log1p(SMALL_FLOOR))
    shift = width + shared * compute_detection_margin(launches, degrees)
    nights = random.normal(shift, spread, (SLOW_TO_CONFIRM + FINE_TO_CLEAR, many))
    first, *fresh = nights > logs.mean(axis=1) + width
    share = np.mean(first & (np.sum(fresh, axis=0) >= SLOW_TO_CONFIRM))
    assert share == pytest.approx(DETECTION_POWER, abs=0.008)


@given(LAUNCHES, SPREADS)
def test_what_is_said_to_be_caught_is_caught(launches: int, spread: float):
    known = Scatter(spread, launches - 1.0, launches)
    shift = known.smallest(0.1)
    assert known.confirmed(0.1, shift) == pytest.approx(DETECTION_POWER, abs=1e-4)
    assert known.confirmed(0.1) <= known.screened(0.1) <= 0.5


@given(LAUNCHES, SPREADS, st.floats(1.01, 3.0))
def test_more_scatter_hides_more_and_more_launches_show_more(launches, spread, times):
    reference = Reference(CASE, 1e-5, spread, launches)
    here = found(reference, 1.0)
    assert found(replace(reference, spread=spread * times), 1.0) >= here
    assert found(replace(reference, launches=launches + 1), 1.0) <= here
    assert compute_detection_margin(launches + 1, 50.0) <= compute_detection_margin(launches, 50.0)
    assert compute_detection_margin(launches, 50.0) <= compute_detection_margin(launches, 20.0)


@given(st.floats(-5, 5), st.floats(0.01, 2))
def test_the_chance_grows_with_the_slowdown(beyond: float, more: float):
    assert compute_detection_probability(beyond, 10, 9.0) < compute_detection_probability(
        beyond + more, 10, 9.0
    )


def test_a_case_of_hardly_any_scatter_sees_little_more_than_its_floor():
    assert found(replace(SETTLED, spread=1e-6)) == pytest.approx(SMALL_FLOOR, rel=1e-3)
    assert found(replace(SETTLED, spread=0.0)) == pytest.approx(SMALL_FLOOR)
    large = replace(SETTLED, spread=0.0, case=replace(CASE, bytes=1_000_000))
    assert found(large) < SMALL_FLOOR


def test_a_coarse_timer_hides_more():
    short = replace(SETTLED, center=SETTLED.center / 10)
    assert found(short, resolution=2e-7) > 0.4 > found(short)


def test_a_rate_is_told_as_a_slowdown_of_the_time():
    """Half the bandwidth is twice the time: the same scatter, the same answer."""
    rate = replace(SETTLED, center=1000.0, unit=MEGABYTES)
    assert found(rate) == pytest.approx(found(SETTLED))


def test_a_provisional_reference_catches_what_even_the_best_of_a_launch_shows():
    few = replace(SETTLED, launches=5)
    assert found(few) is None  # a program that tells nothing but a mean
    even = found(few, 1.0)
    assert even > 3.0
    assert found(few, 0.5) == pytest.approx(2 * (1 + even) - 1)
    assert found(few, 2.0) == even  # nothing is better than a headline and worse
    rate = replace(few, center=1000.0, unit=MEGABYTES)
    assert found(rate, 2.0) == pytest.approx(2 * (1 + even) - 1)
    assert found(SETTLED, 0.5) == found(SETTLED)


def test_simulated_time_shows_the_smallest_change():
    exact = replace(SETTLED, center=1e-3, spread=0.0, launches=1, exact=True)
    assert 0 < found(exact) < 1e-5


def test_no_number_is_too_large_to_be_written():
    wild = Reference(CASE, 1e-5, 3000.0, 2)
    assert math.isfinite(found(wild, 1.0))


@pytest.mark.parametrize(("launches", "knows"), [(20, True), (5, True), (1, False)])
def test_a_verdict_carries_what_it_could_have_caught(launches: int, knows: bool):
    prior = Prior(0.02, 6.0)
    reference = replace(
        SETTLED, launches=launches, spread=0.03 if launches > 1 else 0.0, prior=prior
    )
    measured = Measurement(1.01e-5, SECONDS, 1e-5)
    result = judge_case(CASE, measured, reference)
    assert (result.detectable is not None) is knows
    assert (result.spread, result.degrees) == (reference.moderated if knows else (None, None))
    unknown = judge_case(CASE, measured, None)
    assert unknown.verdict is Verdict.NO_REFERENCE
    assert (unknown.detectable, unknown.spread, unknown.degrees) == (None, None, None)
