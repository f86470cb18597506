"""One value, one reference, one word."""

import json
import math
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.base.formats import MEGABYTES, SECONDS
from postprocess.judging.evaluate import judge_case
from postprocess.model.case import Case
from postprocess.model.measurement import Measurement, TrialSummary
from postprocess.model.reference import Prior, Reference, SessionEvidence
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.stats.band import compute_band
from postprocess.stats.detection import BLIND
from tests.support.faults import Declared, plants

CASE = Case("laptop", "cpu", "mpich", "mpicost", "bcast", 0, "flush", "window", 2, 2, 8)
SUMMARY = TrialSummary(1e-6, 1e-6, 1e-6, 1e-6, 2e-6, 3e-6, 45, 7, 5, True, False)
SETTLED = Reference(CASE, 1e-5, 0.03, 20)
FEW = Reference(CASE, 1e-5, 0.03, 5)
WILD = Reference(CASE, 1e-5, 0.5, 20)  #: one night sees nothing below a factor of many
RATE = Reference(CASE, 1e3, 0.03, 20, MEGABYTES)


def ruling(value, known=SETTLED, resolution=0.0, best=None, unit=SECONDS):
    """The verdict on a headline; every trial took as long unless one is said to be the best."""
    measured = Measurement(value, unit, value if best is None else best, {"x": 1.0}, SUMMARY)
    result = judge_case(CASE, measured, known, resolution)
    assert result.case == CASE
    assert (result.summary, result.figures) == (SUMMARY, {"x": 1.0})
    assert result.unit == unit
    assert "\n" not in result.reason
    assert bool(result.reason) == (result.verdict is not Verdict.PASS)
    return result


def test_inside_the_band_is_pass():
    result = ruling(1.02e-5)
    assert (result.verdict, result.reason) == (Verdict.PASS, "")
    limits = compute_band(SETTLED)
    assert result.band == (limits.lower, limits.upper)
    assert (result.value, result.reference) == (1.02e-5, 1e-5)
    assert (result.launches, result.reference_launches) == (1, 20)
    assert not result.beyond


ABOVE = f"above the limit {compute_band(SETTLED).upper * 1e6:.1f} us"
BELOW = f"below the limit {compute_band(RATE).lower:.1f} MB/s"


@pytest.mark.parametrize(
    ("value", "known", "verdict", "times", "limit"),
    [
        (1.5e-5, SETTLED, Verdict.REGRESSED, "15.0 us is 1.5 times as slow as", ABOVE),
        (0.5e-5, SETTLED, Verdict.FAST, "5.00 us is 2 times as fast as", "below "),
        (500.0, RATE, Verdict.REGRESSED, "500.0 MB/s is 2 times as slow as", BELOW),
    ],
)
def test_beyond_the_band_is_regressed_or_fast(value, known: Reference, verdict: Verdict, times, limit):
    result = ruling(value, known, unit=known.unit)
    assert (result.verdict, result.beyond) == (verdict, True)
    center = "10.0 us" if known is SETTLED else "1000 MB/s"
    assert result.reason.startswith(f"{times} its reference {center} of 20 launches, {limit}")
    assert (result.value, result.reference, result.reference_launches) == (value, known.center, 20)
    assert ruling(value, known, unit=known.unit, best=known.center / 10).verdict is verdict


@pytest.mark.parametrize("sessions", [1, 2, 3])
def test_a_reference_of_few_sessions_passes_and_fails_a_strict_session(sessions: int):
    told = SessionEvidence(sessions, 0.05 * sessions, 0.02**2)
    known = replace(SETTLED, evidence=told, session_prior=Prior(0.02, 50.0))
    result = ruling(1.02e-5, known)
    assert (result.verdict, result.provisional) == (Verdict.PASS, sessions < 3)
    healthy = result.counts_as_healthy(strict=False), result.counts_as_healthy(strict=True)
    assert healthy == (True, sessions >= 3)
    assert ruling(3e-5, known).verdict is Verdict.REGRESSED


@pytest.mark.parametrize("known", [SETTLED, FEW, WILD])
def test_a_limit_is_inside(known):
    limits = compute_band(known)
    inside = Verdict.PROVISIONAL if known is WILD else Verdict.PASS
    assert ruling(limits.upper, known).verdict is inside
    assert ruling(limits.lower, known).verdict is inside
    assert ruling(math.nextafter(limits.upper, 1), known).verdict is Verdict.REGRESSED
    assert ruling(math.nextafter(limits.lower, 0), known).verdict is Verdict.FAST


def test_where_a_night_sees_no_doubling_inside_the_band_is_provisional():
    result = ruling(1e-5, WILD)
    assert (result.verdict, result.provisional) == (Verdict.PROVISIONAL, True)
    said = f"one night sees only what is {1 + result.detectable:.1f} times as slow"
    assert result.reason == said and result.detectable > BLIND


@pytest.mark.parametrize(("by", "slow"), [(0.99, False), (1.01, True)])
def test_a_headline_beyond_its_own_limit_is_slow_where_the_value_is_not(by: float, slow: bool):
    """Few trials are slow. The headline scatters more, and its limit lies farther out."""
    headlines = Reference(CASE, 2e-5, 0.1, 20)
    known = replace(SETTLED, headline=headlines)
    limit = compute_band(headlines).upper

    def judged(value: float) -> CaseResult:
        told = Measurement(value, headline=by * limit, summary=SUMMARY)
        return judge_case(CASE, told, known)

    result = judged(1e-5)
    assert (result.verdict is Verdict.REGRESSED, result.by_headline) == (slow, slow)
    assert (result.headline_reference, result.headline_limit) == (2e-5, limit)
    assert result.published == by * limit and not result.beyond
    said = "7 of 50 trials are above 1.8 medians: "
    assert (said in result.reason and result.reason.endswith("are unchanged")) is slow
    by_value = judged(1.5e-5)
    assert (by_value.verdict, by_value.by_headline) == (Verdict.REGRESSED, False)
    blind = replace(headlines, launches=1, spread=0.0)
    told = Measurement(1e-5, headline=1.0)
    assert not judge_case(CASE, told, replace(SETTLED, headline=blind)).by_headline


@pytest.mark.parametrize(("rate", "slow"), [(5e3, True), (2e4, False)])
def test_the_mean_of_rates_is_slow_where_it_is_low(rate: float, slow: bool):
    """A quarter of the windows is as fast as ever, and the others hang: the mean tells."""
    of_rates = Reference(CASE, 1e4, 0.01, 20, unit=MEGABYTES)
    known = replace(of_rates, headline=replace(of_rates, spread=0.05))
    result = judge_case(CASE, Measurement(1e4, MEGABYTES, headline=rate), known)
    assert (result.verdict is Verdict.REGRESSED, result.by_headline) == (slow, slow)


@pytest.mark.parametrize("value", [1e-3, 1e-5, 1e-8])
def test_of_a_reference_of_one_launch_nothing_follows(value):
    result = ruling(value, Reference(CASE, 1e-5, 0.0, 1), best=value)
    assert result.verdict is Verdict.PROVISIONAL
    assert result.reason == "a single launch does not show how launches differ"


def test_nothing_to_hold_it_against():
    result = ruling(1e-5, None)
    assert result.verdict is Verdict.NO_REFERENCE
    assert "calibrate" in result.reason
    assert (result.value, result.reference, result.band) == (1e-5, None, None)
    assert (result.launches, result.reference_launches) == (1, 0)


@plants("references", "the reference of another case", "judging", "not-comparable", 1,
        " and the reference is of ")  # fmt: skip
@pytest.mark.parametrize("name", [field.name for field in fields(Case)])
def test_the_reference_of_another_case_is_not_comparable(name, declared: Declared):
    value = getattr(CASE, name)
    other = replace(CASE, **{name: value + 1 if isinstance(value, int) else value + "x"})
    result = ruling(1e-5, replace(SETTLED, case=other))
    assert result.reason.startswith(f"{name} is {value} and the reference is of ")
    assert (result.value, result.reference, result.band) == (1e-5, None, None)
    assert (result.launches, result.reference_launches) == (1, 0)
    declared.check_case(result.verdict, result.reason)


@plants("references", "a reference in MB/s for a time", "judging", "not-comparable", 1,
        "the unit of the reference is 'MB/s', not s")  # fmt: skip
def test_the_reference_in_another_unit_is_not_comparable(declared: Declared):
    result = ruling(1e-5, replace(SETTLED, unit=MEGABYTES))
    assert ruling(1e-5, SETTLED, unit=MEGABYTES).verdict is Verdict.NOT_COMPARABLE
    declared.check_case(result.verdict, result.reason)


@plants("output", "NaN, an infinity, 0 or a negative time",
        "the headline of a case", "incorrect", 1, "is not a result of a measurement")  # fmt: skip
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0, -1e-6])
@pytest.mark.parametrize("known", [SETTLED, FEW, None])
@pytest.mark.parametrize("unit", [SECONDS, MEGABYTES])
def test_what_is_no_value_is_incorrect_whatever_the_reference(value, known, unit, declared):
    result = ruling(value, known, unit=unit)
    assert result.value is None, "nothing that a summary file cannot hold"
    declared.check_case(result.verdict, result.reason)


def test_two_ticks_of_a_coarse_timer_are_inside():
    short = replace(SETTLED, center=1e-6)
    assert ruling(1.15e-6, short).verdict is Verdict.REGRESSED
    assert ruling(1.15e-6, short, resolution=1e-7).verdict is Verdict.PASS
    assert ruling(1.25e-6, short, resolution=1e-7).verdict is Verdict.REGRESSED


@pytest.mark.parametrize("resolution", [0.0, 1e-9, 2.8e-7, 1e-6, 1e-3, 1.0])
def test_no_clock_of_a_night_is_so_coarse_that_anything_passes(resolution):
    """The references were measured by another one, for all that is known."""
    short = replace(SETTLED, center=1.5e-6)
    assert ruling(3.5e-6, short, resolution=resolution).verdict is Verdict.REGRESSED
    assert ruling(1.15e-5, resolution=resolution).verdict is Verdict.REGRESSED


def test_what_a_program_prints_coarsely_is_as_coarse_in_its_references():
    slow = replace(RATE, center=0.1)
    assert ruling(0.09, slow, unit=MEGABYTES).verdict is Verdict.REGRESSED
    assert ruling(0.09, slow, resolution=0.01, unit=MEGABYTES).verdict is Verdict.PASS


def test_a_case_without_trials_has_no_summary():
    result = judge_case(CASE, Measurement(1e-5), SETTLED, 0.0)
    assert result.summary is None
    assert result.entry()["statistics"] is None


POSITIVE = st.floats(min_value=1e-9, max_value=1.0)


@given(POSITIVE, POSITIVE, POSITIVE, st.floats(0, 1), st.integers(2, 40))
def test_slower_is_never_judged_better(one, other, center, spread, launches):
    known = Reference(CASE, center, spread, launches)
    ranks = {Verdict.FAST: 0, Verdict.PASS: 1, Verdict.PROVISIONAL: 1, Verdict.REGRESSED: 2}
    faster, slower = (
        ranks[judge_case(CASE, Measurement(value), known).verdict] for value in sorted([one, other])
    )
    assert faster <= slower


@pytest.mark.parametrize("known", [None, SETTLED, FEW])
@pytest.mark.parametrize("value", [1e-5, 1e-3, 1e-7, math.nan])
def test_every_ruling_is_an_entry_of_the_summary_file(value, known):
    entry = ruling(value, known).entry()
    assert json.loads(json.dumps(entry, allow_nan=False)) == entry


@given(POSITIVE, POSITIVE, st.floats(0, 1), st.integers(1, 40), st.sampled_from([0, 8, 10_000]))
def test_a_rate_is_judged_as_the_time_that_it_is_the_inverse_of(value, center, spread, launches, size):
    """Everything of MB/s is the mirror image of seconds, value -> 1 / value."""
    sized = replace(CASE, bytes=size)
    known = Reference(sized, center, spread if launches > 1 else 0.0, launches)
    mirrored = replace(known, center=1 / center, unit=MEGABYTES)
    limits = compute_band(known)
    if any(math.isclose(value, each, rel_tol=1e-9) for each in (limits.lower, limits.upper)):
        return  # 1 / x rounds: the other limit may lie on its other side
    time = judge_case(sized, Measurement(value), known)
    rate = judge_case(sized, Measurement(1 / value, MEGABYTES), mirrored)
    assert (time.verdict, time.beyond) == (rate.verdict, rate.beyond)
    assert time.slowdown == pytest.approx(rate.slowdown, rel=1e-9)
    assert (" as slow as " in time.reason) == (" as slow as " in rate.reason)
    assert ("above the limit" in time.reason) == ("below the limit" in rate.reason)
