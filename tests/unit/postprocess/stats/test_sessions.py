"""Tests of sessions as a level of the noise: what they say of the next one."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from postprocess.stats.detection import compute_median_efficiency
from postprocess.stats.night_spread import (
    NightSpread,
    add_night_spread,
    assume_nights,
    estimate_night_spread,
)
from scipy.stats import t as student

from postprocess.model.reference import Prior, Reference, SessionEvidence
from postprocess.stats.band import SLOW_ALPHA, compute_band, compute_call_limit
from postprocess.stats.estimate import estimate_references
from postprocess.stats.session_prior import add_session_priors, measure_spreads
from postprocess.stats.sessions import (
    add_evidence,
    estimate_session_spread,
    number_sessions,
    predict_nights,
    summarize_sessions,
)
from tests.support.factories.launch import case

TABLE = {("evict", least): Prior(0.03, 5.0) for least in (0, 1_000, 10_000)}


def at(minutes: float) -> str:
    """A moment of a day."""
    return f"2026-11-22T{int(minutes // 60):02}:{int(minutes % 60):02}:00Z"


def known(sessions: int = 1, between: float = 0.0, launches: int = 20) -> Reference:
    """A reference whose sessions have the same number of launches each."""
    evidence = SessionEvidence(sessions, sessions / launches, between)
    prior, session_prior = Prior(0.01, 1_000.0), Prior(0.03, 5.0)
    return Reference(
        case(), 1e-6, 0.01, launches, prior=prior, evidence=evidence, session_prior=session_prior
    )


def test_launches_more_than_twenty_minutes_apart_are_of_two_sessions():
    assert number_sessions([at(0), at(20), at(41), at(1), at(100)]) == [0, 0, 1, 0, 2]


def test_the_center_is_the_mean_of_the_sessions_and_the_spread_that_within_them():
    values = [1.0, 1.0, 1.0, math.exp(0.3), math.exp(0.5)]
    told = summarize_sessions(values, [0, 0, 0, 1, 1])
    assert told.center == pytest.approx(0.2)
    assert told.spread == pytest.approx(math.sqrt(0.02 / 3))
    assert told.evidence == SessionEvidence(2, pytest.approx(5 / 12), pytest.approx(0.08))


def test_the_limit_of_one_burst_contains_the_spread_between_sessions_whole():
    deviation = math.sqrt(0.03**2 * 2 + 0.01**2 * (1 + 1 / 20))
    predicted = predict_nights(known(), [1])
    assert predicted.deviation == pytest.approx(deviation, rel=1e-9)
    upper = 1e-6 * math.exp(student.ppf(1 - SLOW_ALPHA, predicted.degrees) * deviation)
    assert compute_band(known()).upper == pytest.approx(upper, rel=1e-9)
    assert 5 < predicted.degrees < 7  # few, as those of what was measured elsewhere


def test_launches_of_a_night_take_their_own_noise_out_and_not_that_of_the_session():
    many = predict_nights(known(), [15]).deviation
    own = (compute_median_efficiency(15) ** 2 + 1 / 20) * 0.01**2
    assert many == pytest.approx(math.sqrt(0.03**2 * 2 + own), rel=1e-9)


def test_the_call_limit_lies_beyond_screening_and_that_of_two_nights_nearer():
    one, two = (compute_call_limit(known(5, 9e-4), values=nights) for nights in ([3], [3, 3]))
    assert compute_band(known(5, 9e-4), median_of=3).upper < two < one


@pytest.mark.parametrize("sessions", [1, 3, 10])
def test_healthy_nights_leave_the_band_as_often_as_promised(sessions: int):
    random = np.random.default_rng(1)
    beyond = []
    for _ in range(40):
        cases = [case(size=8 + number) for number in range(50)]
        numbers = [session for session in range(sessions) for _ in range(10)]
        states = 0.03 * random.normal(size=(50, sessions))
        logs = np.repeat(states, 10, axis=1) + 0.015 * random.normal(size=(50, 10 * sessions))
        samples = {each: np.exp(row).tolist() for each, row in zip(cases, logs, strict=True)}
        found = {
            each.case: each for each in estimate_references(samples, dict.fromkeys(cases, numbers))
        }
        told = add_evidence(found, {each: (samples[each], numbers) for each in cases})
        told = {each: replace(one, prior=Prior(0.015, 100.0)) for each, one in told.items()}
        known_now = add_session_priors(told, TABLE)
        tonight = np.exp(0.03 * random.normal(size=50) + 0.015 * random.normal(size=50))
        limits = [compute_band(known_now[each]).upper for each in cases]
        beyond.append(np.mean(tonight > limits))
    # of one session the prior alone speaks, with a heavy tail: fewer
    assert SLOW_ALPHA / 6 < np.mean(beyond) < SLOW_ALPHA + 0.012


def test_nights_tell_of_the_variance_robustly_and_never_move_the_center():
    random = np.random.default_rng(2)
    nights = 0.06 * random.normal(size=40)
    told = estimate_night_spread([*nights, 3.0, 4.0], [1] * 42)
    assert math.sqrt(told.variance) == pytest.approx(0.06, rel=0.25)
    before, after = known(), add_night_spread(known(), told)
    assert (after.center, after.told_by) == (before.center, 43)
    assert estimate_session_spread(after) > 1.5 * estimate_session_spread(before)
    slower = estimate_night_spread([0.5 + each for each in nights], [1] * 40)  # for good
    moved = add_night_spread(known(), slower)
    assert estimate_session_spread(moved) == pytest.approx(estimate_session_spread(after), rel=0.2)
    assert estimate_night_spread([0.1, 0.2], [1, 1]) is None


@pytest.mark.parametrize("more", [2, 3, 20])
def test_nights_to_come_tell_as_much_as_nights_that_were(more: int):
    spread = estimate_session_spread(known())
    then = assume_nights(known(), more)
    assert then.told_by == (1 + more if more > 2 else 1)
    assert estimate_session_spread(then) == pytest.approx(spread, rel=1e-9)
    were = add_night_spread(known(), NightSpread(more, spread**2 + 1e-4, 0.75 * (more - 1), 1.0))
    if more > 2:
        assert compute_call_limit(then) == pytest.approx(compute_call_limit(were), rel=1e-9)
        assert compute_call_limit(then) < compute_call_limit(known())


def test_a_table_of_spreads_follows_from_launches():
    random = np.random.default_rng(3)
    rows = [
        {
            "utc": at(60 * session),
            "state": "evict",
            "environment": "mpich",
            "routine": f"r{number}",
            "bytes": "8",
            "headline_us": str(math.exp(state + 0.01 * random.normal())),
        }
        for number in range(40)
        for session in range(8)
        for state in [0.04 * random.normal()]
        for _ in range(5)
    ]
    (found,) = measure_spreads(rows).values()
    assert found.prior.spread == pytest.approx(0.04, rel=0.15)
    assert (found.sessions, found.cases) == (8, 40)


def test_the_clock_of_a_time_zone_is_not_asked(monkeypatch):
    """Where summer time ends in between, 15 minutes would be 75."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    try:
        assert number_sessions(["2026-10-25T02:50:00Z", "2026-10-25T03:05:00Z"]) == [0, 0]
    finally:
        monkeypatch.undo()
        time.tzset()
