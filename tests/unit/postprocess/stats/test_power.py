"""What a night would catch: by the model, and in every kind of reference."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from postprocess.base.units import MEGABYTES, SECONDS
from postprocess.judging.rules import judge_case
from postprocess.model.case import Case
from postprocess.model.measurement import Measurement
from postprocess.model.reference import Prior, Reference, SessionEvidence
from postprocess.model.verdict import Verdict
from postprocess.stats.band import LARGE_FLOOR, SMALL_FLOOR
from postprocess.stats.power import DETECTION_POWER, Scatter, compute_detectable_slowdown, compute_scatter
from postprocess.stats.sequence import GROSS_FLOOR, find_slow_run
from postprocess.stats.sessions import SessionValue, predict_nights, predict_own

CASE = Case("laptop", "cpu", "mpich", "mpicost", "bcast", 0, "flush", "window", 2, 2, 8)
SETTLED = Reference(CASE, 1e-5, 0.03, 20)
found = compute_detectable_slowdown


def test_the_chance_of_a_healthy_case_is_that_of_the_prediction_distribution():
    known = compute_scatter(SETTLED)
    deviation = 0.03 * math.sqrt(1 + 1 / 20)
    assert (known.deviation, known.degrees) == (pytest.approx(deviation), pytest.approx(19))
    assert known.screened(student.ppf(0.99, 19) * deviation) == pytest.approx(0.01, rel=1e-6)
    assert known.screened(0.1, 0.1) == 0.5
    assert (Scatter(0.0, 5.0).screened(0.1), Scatter(0.0, 5.0).screened(0.1, 0.2)) == (0.0, 1.0)
    assert compute_scatter(replace(SETTLED, launches=1, spread=0.0)) is None


def test_one_night_calls_what_is_gross_and_three_what_is_far_less():
    """Simulated sessions that are slower by just what is said to be called: nine in ten at least are."""
    evidence = SessionEvidence(10, 0.1, 0.04**2 + 0.04**2 / 10)
    known = replace(SETTLED, spread=0.04, launches=100, evidence=evidence)
    known = replace(known, prior=Prior(0.04, 200.0), session_prior=Prior(0.04, 100.0))
    alone, soon = (found(known, 5, sessions) for sessions in (1, 3))
    one = [SessionValue(0.0, 5)]
    gross = math.exp(7 * predict_nights(known, one).deviation) - 1
    assert GROSS_FLOOR < gross < alone < 1.2 * gross + 0.1
    assert soon < 0.6 * alone
    random, own = np.random.default_rng(1), predict_own(known, 5).deviation
    logs = math.log1p(soon) + own * random.normal(size=(2_000, 3))
    called = [find_slow_run(known, [SessionValue(x, 5) for x in row]) is not None for row in logs]
    assert DETECTION_POWER - 0.02 < np.mean(called) < 0.97


@given(st.integers(2, 60), st.floats(0.001, 0.3), st.floats(1.01, 3.0))
def test_more_scatter_hides_more_and_more_launches_show_more(launches, spread, times):
    reference = Reference(CASE, 1e-5, spread, launches)
    here = found(reference)
    assert found(replace(reference, spread=spread * times)) >= here
    assert found(replace(reference, launches=launches + 1)) <= here
    assert found(reference, median_of=5) <= here
    assert found(reference, sessions=3) <= here


@pytest.mark.parametrize(("size", "floor"), [(8, SMALL_FLOOR), (1_000_000, LARGE_FLOOR)])
def test_a_case_of_hardly_any_scatter_sees_its_floors(size: int, floor: float):
    quiet = replace(SETTLED, spread=1e-6, case=replace(CASE, bytes=size))
    assert found(quiet) == pytest.approx(GROSS_FLOOR, rel=1e-3)
    assert found(quiet, sessions=3) == pytest.approx(floor, rel=1e-3)


def test_a_coarse_timer_hides_more():
    short = replace(SETTLED, center=SETTLED.center / 10)
    assert found(short, sessions=3, resolution=2e-7) > 0.4 > found(short, sessions=3)


def test_a_rate_is_told_as_a_slowdown_of_the_time():
    """Half the bandwidth is twice the time: the same scatter, the same answer."""
    rate = replace(SETTLED, center=1000.0, unit=MEGABYTES)
    assert found(rate) == pytest.approx(found(SETTLED))


def test_no_number_is_too_large_to_be_written_and_simulated_time_shows_the_smallest_change():
    assert math.isfinite(found(Reference(CASE, 1e-5, 3000.0, 2)))
    exact = replace(SETTLED, center=1e-3, spread=0.0, launches=1, exact=True)
    assert found(exact) == 0.0
    assert 0 < found(exact, resolution=1e-9) <= SMALL_FLOOR + 1e-9


@pytest.mark.parametrize(("launches", "knows"), [(20, True), (5, True), (1, False)])
def test_a_verdict_carries_what_it_could_have_caught(launches: int, knows: bool):
    reference = replace(SETTLED, launches=launches, spread=0.03 if launches > 1 else 0.0)
    result = judge_case(CASE, Measurement(1.01e-5, SECONDS), reference)
    expected = (found(reference), found(reference, sessions=3)) if knows else (None, None)
    assert (result.detectable, result.detectable_soon) == expected
    known = compute_scatter(reference)
    told = (known.deviation, known.degrees) if known else (None, None)
    assert (result.spread, result.degrees) == told
    assert not knows or result.detectable_learned <= result.detectable_soon
    unknown = judge_case(CASE, Measurement(1.01e-5, SECONDS), None)
    assert unknown.verdict is Verdict.NO_REFERENCE
    assert (unknown.detectable, unknown.spread, unknown.degrees) == (None, None, None)
