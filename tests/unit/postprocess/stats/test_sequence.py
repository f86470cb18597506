"""What several sessions together call: limits that healthy ones are all beyond once in 100,000 times."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postprocess.model.reference import Prior, Reference, SessionEvidence
from postprocess.stats import sequence
from postprocess.stats.band import SMALL_FLOOR
from postprocess.stats.sequence import (
    GROSS,
    GROSS_FLOOR,
    LEAST_SESSIONS,
    LONGEST_RUN,
    compute_gross_distance,
    compute_run_limit,
    find_run_factor,
    find_slow_run,
    is_leaning,
)
from postprocess.stats.sessions import SessionValue, predict_nights
from tests.support.factories.launch import case

EVIDENCE = SessionEvidence(5, 0.1, 0.045**2 + 0.03**2 / 10, (0,) * 5)
REFERENCE = Reference(
    case(), 1e-5, 0.03, 50, prior=Prior(0.03, 50.0), evidence=EVIDENCE, session_prior=Prior(0.045, 20.0)
)  # fmt: skip
QUIET = Reference(case(), 1e-5, 0.001, 50, prior=Prior(0.001, 50.0), evidence=replace(EVIDENCE, between=1e-6))


def some(*logs: float) -> list[SessionValue]:
    """Sessions on the day of the reference, the newest first."""
    return [SessionValue(log, 5, 0) for log in logs]


def limit(number: int) -> float:
    """The limit of each of so many sessions."""
    return compute_run_limit(REFERENCE, some(*[0.0] * number))


@pytest.mark.parametrize(("number", "shared", "degrees"), [(3, 0.5, 8.0), (5, 1.0, 30.0), (10, 1.5, 5.0)])
def test_so_many_are_beyond_the_factor_as_often_as_promised(monkeypatch, number, shared, degrees):
    """Drawn at 1 in 100, where a million draws tell the probability to a hundredth."""
    monkeypatch.setattr(sequence, "RUN_ALPHA", 0.01)
    factor = find_run_factor.__wrapped__(number, shared, degrees)
    random, draws = np.random.default_rng(1), 1_000_000
    together = shared * random.normal(size=draws)
    estimated = np.sqrt(random.chisquare(degrees, draws) / degrees)
    beyond = np.ones(draws, dtype=bool)
    for _ in range(number):
        beyond &= random.normal(size=draws) + together > factor * estimated
    assert beyond.mean() == pytest.approx(0.01, rel=0.04)


@given(st.integers(3, 9), st.floats(0, 2), st.floats(3, 200), st.floats(1.1, 3))
@settings(max_examples=25, deadline=None)
def test_more_sessions_and_less_in_common_bring_the_limit_nearer(n, shared, degrees, times):
    here = find_run_factor(n, shared, degrees)
    assert find_run_factor(n + 1, shared, degrees) < here
    assert find_run_factor(n, shared * times + 0.01, degrees) > here
    assert find_run_factor(n, shared, degrees * times) < here


def test_a_single_session_is_called_beyond_what_sessions_bring_and_30_percent_at_least():
    distance = GROSS * predict_nights(REFERENCE, [SessionValue(0.0, 5)]).deviation  # of any day
    assert compute_gross_distance(REFERENCE, 5) == distance > math.log1p(GROSS_FLOOR)
    assert compute_gross_distance(QUIET, 5) == math.log1p(GROSS_FLOOR)
    assert compute_gross_distance(REFERENCE, 5, floor=2.0) == 2.0


def test_limits_come_nearer_with_every_session_down_to_the_floor():
    limits = [limit(number) for number in range(LEAST_SESSIONS, LONGEST_RUN + 1)]
    assert limits == sorted(limits, reverse=True) and limits[0] > 1.5 * limits[-1]
    assert compute_run_limit(QUIET, some(0.0, 0.0, 0.0)) == math.log1p(SMALL_FLOOR)
    unknown = Reference(case(), 1e-5, 0.0, 1)
    assert compute_run_limit(unknown, some(0.0, 0.0, 0.0)) == math.inf


def test_three_sessions_call_what_is_far_and_ten_what_is_just_beyond():
    far, near = 1.01 * limit(LEAST_SESSIONS), 1.01 * limit(LONGEST_RUN)
    assert find_slow_run(REFERENCE, some(far, far)) is None
    found = find_slow_run(REFERENCE, some(far, 2 * far, far))
    assert (found.sessions, found.limit) == (3, limit(3))
    assert found.mean == pytest.approx(4 / 3 * far)
    assert find_slow_run(REFERENCE, some(*[near] * (LONGEST_RUN - 1))) is None
    assert find_slow_run(REFERENCE, some(*[near] * LONGEST_RUN)).sessions == LONGEST_RUN
    assert find_slow_run(REFERENCE, some(*[near] * 30)).sessions == LONGEST_RUN


@pytest.mark.parametrize("recovered", range(LEAST_SESSIONS))
def test_one_healthy_session_ends_a_run_and_at_the_limit_is_inside(recovered: int):
    logs = [0.5] * 12
    assert find_slow_run(REFERENCE, some(*logs)).sessions == LEAST_SESSIONS
    logs[recovered] = 0.0
    assert find_slow_run(REFERENCE, some(*logs)) is None
    at = limit(LEAST_SESSIONS)
    three = [0.5] * LEAST_SESSIONS
    three[recovered] = at
    assert find_slow_run(REFERENCE, some(*three)) is None
    three[recovered] = math.nextafter(at, 1)
    assert find_slow_run(REFERENCE, some(*three)) is not None


@pytest.mark.parametrize("sign", [1, -1])
def test_sessions_that_lie_to_one_side_are_leaning_and_one_alone_is_not(sign: int):
    two = predict_nights(REFERENCE, some(0.0, 0.0)).deviation
    assert is_leaning(REFERENCE, some(sign * 2.1 * two, sign * 2.1 * two))
    assert not is_leaning(REFERENCE, some(sign * 1.9 * two, sign * 1.9 * two))
    assert not is_leaning(REFERENCE, some(sign * 2.1 * two, -sign * 2.1 * two))
    assert not is_leaning(REFERENCE, some(sign * 1.0))
    assert not is_leaning(Reference(case(), 1e-5, 0.0, 1), some(1.0, 1.0))
