"""What several sessions together call: limits that healthy ones are all beyond once in 100,000 times."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from postprocess.base.formats import MEGABYTES, SECONDS
from postprocess.judging.evaluate import judge_case
from postprocess.model.case import Case
from postprocess.model.measurement import Measurement
from postprocess.model.reference import Prior, Reference, SessionEvidence
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.stats import detection
from postprocess.stats.band import LARGE_FLOOR, SMALL_FLOOR
from postprocess.stats.sessions import SessionValue, predict_nights, predict_own
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
    return detection.compute_run_limit(REFERENCE, some(*[0.0] * number))


@pytest.mark.parametrize(("number", "shared", "degrees"), [(3, 0.5, 8.0), (5, 1.0, 30.0), (10, 1.5, 5.0)])
def test_so_many_are_beyond_the_factor_as_often_as_promised(monkeypatch, number, shared, degrees):
    """Drawn at 1 in 100, where a million draws tell the probability to a hundredth."""
    monkeypatch.setattr(detection, "RUN_ALPHA", 0.01)
    factor = detection.find_run_factor.__wrapped__(number, shared, degrees)
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
    here = detection.find_run_factor(n, shared, degrees)
    assert detection.find_run_factor(n + 1, shared, degrees) < here
    assert detection.find_run_factor(n, shared * times + 0.01, degrees) > here
    assert detection.find_run_factor(n, shared, degrees * times) < here


@pytest.mark.parametrize("degrees", [1.0, 2.5, 40.0])
def test_sessions_that_share_nearly_everything_have_a_limit(degrees: float):
    """Two launches whose times are printed alike have next to no spread of their own."""
    near, far = (detection.find_run_factor(3, shared, degrees) for shared in (1e6, 1e15))
    assert far / near == pytest.approx(1e9, rel=0.01)


@pytest.mark.parametrize(
    ("shared", "degrees"), [(1.0, math.nan), (math.nan, 3.0), (1.0, math.inf), (math.inf, 3.0)]
)
def test_numbers_that_yield_no_limit_do_not_yield_zero(shared: float, degrees: float):
    with pytest.raises(ValueError, match="yield no limit"), np.errstate(all="ignore"):
        detection.find_run_factor(3, shared, degrees)


def test_a_single_session_is_called_beyond_what_sessions_bring_and_30_percent_at_least():
    distance = detection.GROSS * predict_nights(REFERENCE, [SessionValue(0.0, 5)]).deviation  # of any day
    assert detection.compute_gross_distance(REFERENCE, 5) == distance > math.log1p(detection.GROSS_FLOOR)
    assert detection.compute_gross_distance(QUIET, 5) == math.log1p(detection.GROSS_FLOOR)
    assert detection.compute_gross_distance(REFERENCE, 5, floor=2.0) == 2.0


def test_limits_come_nearer_with_every_session_down_to_the_floor():
    limits = [limit(number) for number in range(detection.LEAST_SESSIONS, detection.LONGEST_RUN + 1)]
    assert limits == sorted(limits, reverse=True) and limits[0] > 1.5 * limits[-1]
    assert detection.compute_run_limit(QUIET, some(0.0, 0.0, 0.0)) == math.log1p(SMALL_FLOOR)
    unknown = Reference(case(), 1e-5, 0.0, 1)
    assert detection.compute_run_limit(unknown, some(0.0, 0.0, 0.0)) == math.inf


def test_three_sessions_call_what_is_far_and_ten_what_is_just_beyond():
    far, near = 1.01 * limit(detection.LEAST_SESSIONS), 1.01 * limit(detection.LONGEST_RUN)
    assert detection.find_slow_run(REFERENCE, some(far, far)) is None
    found = detection.find_slow_run(REFERENCE, some(far, 2 * far, far))
    assert (found.sessions, found.limit) == (3, limit(3))
    assert found.mean == pytest.approx(4 / 3 * far)
    assert detection.find_slow_run(REFERENCE, some(*[near] * (detection.LONGEST_RUN - 1))) is None
    for number in (detection.LONGEST_RUN, 30):
        assert detection.find_slow_run(REFERENCE, some(*[near] * number)).sessions == detection.LONGEST_RUN


@pytest.mark.parametrize("recovered", range(detection.LEAST_SESSIONS))
def test_one_healthy_session_ends_a_run_and_at_the_limit_is_inside(recovered: int):
    logs = [0.5] * 12
    assert detection.find_slow_run(REFERENCE, some(*logs)).sessions == detection.LEAST_SESSIONS
    logs[recovered] = 0.0
    assert detection.find_slow_run(REFERENCE, some(*logs)) is None
    at = limit(detection.LEAST_SESSIONS)
    three = [0.5] * detection.LEAST_SESSIONS
    three[recovered] = at
    assert detection.find_slow_run(REFERENCE, some(*three)) is None
    three[recovered] = math.nextafter(at, 1)
    assert detection.find_slow_run(REFERENCE, some(*three)) is not None


@pytest.mark.parametrize("sign", [1, -1])
def test_sessions_that_lie_to_one_side_are_leaning_and_one_alone_is_not(sign: int):
    two = predict_nights(REFERENCE, some(0.0, 0.0)).deviation
    assert detection.is_leaning(REFERENCE, some(sign * 2.1 * two, sign * 2.1 * two))
    assert not detection.is_leaning(REFERENCE, some(sign * 1.9 * two, sign * 1.9 * two))
    assert not detection.is_leaning(REFERENCE, some(sign * 2.1 * two, -sign * 2.1 * two))
    assert not detection.is_leaning(REFERENCE, some(sign * 1.0))
    assert not detection.is_leaning(Reference(case(), 1e-5, 0.0, 1), some(1.0, 1.0))


CASE = Case("laptop", "cpu", "mpich", "mpicost", "bcast", 0, "flush", "window", 2, 2, 8)
SETTLED = Reference(CASE, 1e-5, 0.03, 20)
found = detection.compute_detectable_slowdown


def test_the_chance_of_a_healthy_case_is_that_of_the_prediction_distribution():
    known = detection.compute_scatter(SETTLED)
    deviation = 0.03 * math.sqrt(1 + 1 / 20)
    assert (known.deviation, known.degrees) == (pytest.approx(deviation), pytest.approx(19))
    assert known.screened(student.ppf(0.99, 19) * deviation) == pytest.approx(0.01, rel=1e-6)
    assert known.screened(0.1, 0.1) == 0.5
    none = detection.Scatter(0.0, 5.0)
    assert (none.screened(0.1), none.screened(0.1, 0.2)) == (0.0, 1.0)
    assert detection.compute_scatter(replace(SETTLED, launches=1, spread=0.0)) is None


def test_one_night_calls_what_is_gross_and_three_what_is_far_less():
    """Simulated sessions that are slower by just what is said to be called: nine in ten at least are."""
    evidence = SessionEvidence(10, 0.1, 0.04**2 + 0.04**2 / 10)
    known = replace(SETTLED, spread=0.04, launches=100, evidence=evidence)
    known = replace(known, prior=Prior(0.04, 200.0), session_prior=Prior(0.04, 100.0))
    alone, soon = (found(known, 5, sessions) for sessions in (1, 3))
    one = [SessionValue(0.0, 5)]
    gross = math.exp(7 * predict_nights(known, one).deviation) - 1
    assert detection.GROSS_FLOOR < gross < alone < 1.2 * gross + 0.1
    assert soon < 0.6 * alone
    random, own = np.random.default_rng(1), predict_own(known, 5).deviation
    logs = math.log1p(soon) + own * random.normal(size=(2_000, 3))
    called = [detection.find_slow_run(known, [SessionValue(x, 5) for x in row]) is not None for row in logs]
    assert detection.DETECTION_POWER - 0.02 < np.mean(called) < 0.97


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
    assert found(quiet) == pytest.approx(detection.GROSS_FLOOR, rel=1e-3)
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
    known = detection.compute_scatter(reference)
    told = (known.deviation, known.degrees) if known else (None, None)
    assert (result.spread, result.degrees) == told
    assert not knows or result.detectable_learned <= result.detectable_soon
    unknown = judge_case(CASE, Measurement(1.01e-5, SECONDS), None)
    assert unknown.verdict is Verdict.NO_REFERENCE
    assert (unknown.detectable, unknown.spread, unknown.degrees) == (None, None, None)


MOST = sum(detection.PASSES)
COURSES = list(product([True, False], repeat=MOST))  #: whether each fresh launch is slow


def counts(course: tuple[bool, ...]) -> tuple[int, int]:
    """Slow and other launches, when nothing is measured any more."""
    slow = fine = 0
    for number in detection.PASSES:
        if not detection.is_decided(slow, fine):
            some = course[slow + fine : slow + fine + number]
            slow, fine = slow + sum(some), fine + len(some) - sum(some)
    return slow, fine


def test_six_launches_decide_whatever_they_say_and_passes_that_end_early_say_the_same():
    assert (detection.SLOW_TO_CONFIRM, detection.FINE_TO_CLEAR, detection.PASSES) == (5, 2, (2, 3, 1))
    for course in COURSES:
        slow, fine = counts(course)
        assert detection.is_decided(slow, fine)
        assert detection.is_cleared(fine) != (slow >= detection.SLOW_TO_CONFIRM)
        assert detection.is_cleared(fine) == (sum(course) < detection.SLOW_TO_CONFIRM)
    # no launch is made in vain: two that are fine end it, and nothing condemns before five are slow
    assert (counts((False,) * MOST), counts((True,) * MOST)) == ((0, 2), (5, 0))
    assert not detection.is_decided(detection.SLOW_TO_CONFIRM - 1, detection.FINE_TO_CLEAR - 1)


@pytest.mark.parametrize("chance", [0.0, 0.03, 0.5, 0.9, 1.0])
def test_the_probability_is_that_of_all_courses_that_condemn(chance: float):
    each = np.array([1 - chance, chance])
    condemning = (course for course in COURSES if not detection.is_cleared(counts(course)[1]))
    wanted = sum(np.prod([each[int(slow)] for slow in course]) for course in condemning)
    assert detection.compute_confirmation_probability(chance) == pytest.approx(wanted, abs=1e-12)


def test_arrays_are_decided_one_by_one():
    assert detection.is_decided(np.array([5, 4, 0]), np.array([0, 1, 2])).tolist() == [True, False, True]
    assert detection.is_cleared(np.array([1, 2])).tolist() == [False, True]


def judged(times: float, size: int = 8, unit: str = SECONDS, **more) -> CaseResult:
    """A case that is so many times as slow as its reference."""
    case = replace(CASE, bytes=size)
    reference = Reference(case, **({"center": 1e-5, "spread": 0.03, "launches": 20} | more), unit=unit)
    value = reference.center * times if unit == SECONDS else reference.center / times
    return judge_case(case, Measurement(value, unit, value), reference)


@pytest.mark.parametrize("unit", [SECONDS, MEGABYTES])
def test_the_probability_is_that_of_the_prediction_limit(unit):
    result = judged(1.08, unit=unit)
    standard = math.log(1.08) / (0.03 * math.sqrt(1 + 1 / 20))
    assert detection.compute_slow_probability(result) == pytest.approx(student.sf(standard, 19))
    assert detection.compute_slow_probability(judged(1.0, unit=unit)) == pytest.approx(0.5)
    assert detection.compute_slow_probability(judged(0.5, unit=unit)) > 0.99


@pytest.mark.parametrize(
    "result",
    [
        CaseResult(CASE, Verdict.SKIPPED, "no Spack"),
        judged(1.5, launches=1, spread=0.0),
        judged(1.5, launches=1, spread=0.0, exact=True),
        judged(1.5, spread=0.0),  # printed numbers that never differed
    ],
)
def test_what_nobody_knows_the_scatter_of_has_none(result):
    assert detection.compute_slow_probability(result) is None
    assert detection.add_q_values([result]) == [result]


def test_q_is_that_of_benjamini_and_hochberg_in_any_order():
    times = [1.0, 1.2, 0.9, 1.05, 1.1]
    results = [judged(each, size) for size, each in zip((8, 16, 24, 32, 40), times, strict=True)]
    results.insert(2, CaseResult(replace(CASE, bytes=48), Verdict.CRASHED, "signal 11"))
    told = detection.add_q_values(results)
    assert [replace(result, q=None) for result in told] == results
    known = sorted(
        (p, result.q)
        for result in told
        if (p := detection.compute_slow_probability(result)) is not None and result.q is not None
    )
    assert len(known) == 5
    smallest = math.inf
    for rank, (p, q) in reversed(list(enumerate(known, 1))):
        smallest = min(smallest, p * 5 / rank)
        assert q == pytest.approx(smallest)


def test_one_slow_case_among_many_stands_out_and_chance_does_not():
    random = np.random.default_rng(1)
    healthy = [judged(math.exp(random.normal(0, 0.03)), 8 * n) for n in range(1, 300)]
    *others, slow = detection.add_q_values([*healthy, judged(1.5, 0)])
    assert slow.q < 0.001
    assert min(result.q for result in others) > 0.05


def test_a_case_without_a_probability_is_incorrect_and_spoils_no_other():
    odd = replace(judged(1.2, 16), spread=math.nan)
    told = detection.add_q_values([judged(1.1), odd, replace(judged(1.0, 24), value=-1.0)])
    assert [result.verdict for result in told[1:]] == [Verdict.INCORRECT] * 2
    found = told[1].reason
    assert found == "cannot be judged: ValueError: nan is not a probability; its trials are kept"
    assert told[0].q is not None
