"""Tests of sessions as a level of the noise: what they say of the next one."""

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

from postprocess.model.reference import Prior, Reference, SessionEvidence
from postprocess.stats.band import SLOW_ALPHA, compute_band, estimate_references
from postprocess.stats.priors import add_session_priors, measure_spreads
from postprocess.stats.sessions import (
    DAY_SHARE,
    SessionValue,
    add_evidence,
    assume_sessions,
    compute_median_efficiency,
    estimate_session_spread,
    number_day,
    number_sessions,
    predict_nights,
    predict_own,
    summarize_sessions,
)
from tests.support.factories.launch import case

TABLE = {("evict", least): Prior(0.03, 5.0) for least in (0, 1_000, 10_000)}


def at(minutes: float) -> str:
    """A moment of a day."""
    return f"2026-11-22T{int(minutes // 60):02}:{int(minutes % 60):02}:00Z"


def known(sessions: int = 1, between: float = 0.0, launches: int = 20, days: tuple[int, ...] = ()) -> Reference:
    """A reference whose sessions have the same number of launches each."""
    evidence = SessionEvidence(sessions, sessions / launches, between, days)
    prior, session_prior = Prior(0.01, 1_000.0), Prior(0.03, 5.0)
    return Reference(case(), 1e-6, 0.01, launches, prior=prior, evidence=evidence, session_prior=session_prior)


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
    predicted = predict_nights(known(), [SessionValue(0.0, 1)])
    assert predicted.deviation == pytest.approx(deviation, rel=1e-9)
    upper = 1e-6 * math.exp(student.ppf(1 - SLOW_ALPHA, predicted.degrees) * deviation)
    assert compute_band(known()).upper == pytest.approx(upper, rel=1e-9)
    assert 5 < predicted.degrees < 7  # few, as those of what was measured elsewhere


def test_launches_of_a_night_take_their_own_noise_out_and_not_that_of_the_session():
    many = predict_nights(known(), [SessionValue(0.0, 15)]).deviation
    own = (compute_median_efficiency(15) ** 2 + 1 / 20) * 0.01**2
    assert many == pytest.approx(math.sqrt(0.03**2 * 2 + own), rel=1e-9)


def test_the_day_of_each_session_is_that_of_its_first_launch():
    days = [number_day(each) for each in ("2026-11-22T23:59:00Z", "2026-11-23T00:01:00Z")]
    assert days[1] == days[0] + 1
    assert summarize_sessions([1.0] * 4, [0, 0, 1, 1], [7, 8, 9, 9]).evidence.days == (7, 9)
    assert summarize_sessions([1.0] * 4, [0, 0, 1, 1]).evidence.days == ()


@pytest.mark.parametrize(
    ("home", "there", "apart"),
    [
        ((0, 0), (0,), 0.0),  # what the day brings is in both
        ((0, 0), (1,), 1 + 1),
        ((0, 0), (None,), 1 + 1),
        ((0, 1), (1,), 0.5**2 + 0.5**2),
        ((0, 1), (2,), 1 + 0.5**2 + 0.5**2),
        ((0, 1), (0, 1), 0.0),
        ((0, 1), (2, 3), 4 * 0.5**2),
        ((), (1,), 0.0),  # of no day is told
    ],
)
def test_a_day_is_in_the_difference_by_what_of_each_side_is_of_it(home, there, apart: float):
    """The days of the reference are in its spread too: twice that of one day where all differ."""
    between, within = 0.03**2 + 0.01**2 / 10, 0.01**2
    reference = replace(known(2, between, 20, home), session_prior=None)
    alike = 1.0 if len(set(home)) < 2 else 1.0 + DAY_SHARE
    tau = (between - within / 10) / alike
    number = len(there)
    own = (1 / number + 1 / 2 + DAY_SHARE * apart) * tau + within * (1 / number + 1 / 20)
    some = [SessionValue(0.0, 1, day) for day in there]
    assert predict_nights(reference, some).deviation == pytest.approx(math.sqrt(own), rel=1e-9)
    assert estimate_session_spread(reference) == pytest.approx(math.sqrt(tau), rel=1e-9)
    alone = math.hypot(math.sqrt(tau), 0.01)
    assert predict_own(reference, 1).deviation == pytest.approx(alone, rel=1e-9)


def test_sessions_to_come_narrow_the_limit_as_such_sessions_would():
    one = [SessionValue(0.0, 5)]
    then = assume_sessions(known(2, 0.001), 3)
    assert (then.sessions, then.launches) == (5, 50)
    assert predict_nights(then, one).deviation < predict_nights(known(2, 0.001), one).deviation
    assert compute_band(then).upper < compute_band(known(2, 0.001)).upper


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
            reference.case: reference
            for reference in estimate_references(samples, dict.fromkeys(cases, numbers))
        }
        told = add_evidence(found, {each: (samples[each], numbers, ()) for each in cases})
        told = {each: replace(one, prior=Prior(0.015, 100.0)) for each, one in told.items()}
        known_now = add_session_priors(told, TABLE)
        tonight = np.exp(0.03 * random.normal(size=50) + 0.015 * random.normal(size=50))
        limits = [compute_band(known_now[each]).upper for each in cases]
        beyond.append(np.mean(tonight > limits))
    # of one session the prior alone speaks, with a heavy tail: fewer
    assert SLOW_ALPHA / 6 < np.mean(beyond) < SLOW_ALPHA + 0.012


def test_a_class_of_few_cases_learns_from_all_of_its_program():
    many = [case("bcast", 8 + number) for number in range(12)]
    few = [case("bcast", 4_000 + number) for number in range(3)]
    told = {each: replace(known(sessions=10, between=0.0004), case=each) for each in many + few}
    found = add_session_priors(told, TABLE)
    assert found[few[0]].session_prior.spread == pytest.approx(found[many[0]].session_prior.spread)
    assert found[few[0]].session_prior.degrees > TABLE["evict", 1_000].degrees


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


@pytest.mark.parametrize("median_of", range(1, 21))
def test_medians_are_as_steady_as_said(median_of: int):
    drawn = np.median(np.random.default_rng(1).normal(size=(40_000, median_of)), axis=1)
    assert compute_median_efficiency(median_of) == pytest.approx(drawn.std(), rel=0.015)


def test_known_medians():
    """Of one value, of the mean of two, and of three: 1 - sqrt(3) / pi (David and Nagaraja, section 3.2)."""
    found = [compute_median_efficiency(median_of) ** 2 for median_of in (1, 2, 3)]
    assert found == pytest.approx([1, 0.5, 1 - math.sqrt(3) / math.pi], rel=1e-6)
