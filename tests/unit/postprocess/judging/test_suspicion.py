"""What is slow again, but not beyond what one session may bring."""

import math
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from postprocess.base.formats import DATE_FORMAT, MEGABYTES
from postprocess.judging import suspicion
from postprocess.judging.suspicion import NO_HISTORY, decide_suspicion
from postprocess.model.measurement import TrialSummary
from postprocess.model.reference import Prior, Reference
from postprocess.model.verdict import CaseResult, Verdict, compute_exit_status
from postprocess.results.store import StoreError, StoreRow, write_session
from postprocess.stats.band import compute_band
from postprocess.stats.detection import LONGEST_RUN, compute_gross_distance
from postprocess.stats.sessions import SessionValue, number_day
from tests.support.factories.launch import case, catalog_of

ONE = case("bcast", 1000)
HEADLINE = Reference(ONE, 2e-5, 0.04, 20, prior=Prior(0.04, 20.0), session_prior=Prior(0.06, 50.0))
REFERENCE = Reference(
    ONE, 1e-5, 0.02, 20, prior=Prior(0.02, 20.0), session_prior=Prior(0.03, 20.0), headline=HEADLINE
)
GROSS = 1e-5 * math.exp(compute_gross_distance(REFERENCE, 5))
BETWEEN = math.sqrt(compute_band(REFERENCE).upper * GROSS)


def slow(value: float, verdict: Verdict = Verdict.REGRESSED, **more) -> CaseResult:
    return CaseResult(ONE, verdict, "slow", value=value, reference=1e-5, launches=1, **more)


def before(*logs: float, headlines: float = 0.0) -> suspicion.SessionHistory:
    """Sessions of further days before, the newest first."""
    told = [
        suspicion.JudgedSession(
            f"2026-11-{20 - n}T01:00:00Z", "suspect", SessionValue(log, 5, n), SessionValue(headlines, 5, n)
        )
        for n, log in enumerate(logs)
    ]
    return suspicion.SessionHistory({ONE.key: told})


def test_what_one_session_may_bring_is_suspect_and_fails_a_strict_session_alone():
    result = decide_suspicion(slow(BETWEEN), 5 * [BETWEEN], REFERENCE, NO_HISTORY)
    assert result.verdict == Verdict.SUSPECT and suspicion.list_suspects([result]) == [ONE]
    assert result.reason.startswith("all trials ") and "; slow; 2 more sessions decide" in result.reason
    early = decide_suspicion(slow(BETWEEN), [BETWEEN], REFERENCE, NO_HISTORY, confirmed=False)
    assert early.reason.startswith("slow; 2 more sessions decide")  # no fresh launch has said anything
    assert compute_exit_status([result], strict=False) == 0
    assert compute_exit_status([result], strict=True) == 1


@pytest.mark.parametrize(("factor", "verdict"), [(0.999, Verdict.SUSPECT), (1.001, Verdict.REGRESSED)])
def test_what_is_gross_is_called_on_the_first_day(factor: float, verdict: Verdict):
    value = factor * GROSS
    result = decide_suspicion(slow(value), 5 * [value], REFERENCE, NO_HISTORY)
    assert result.verdict == verdict
    assert ("more than sessions bring" in result.reason) == (verdict == Verdict.REGRESSED)
    rate = replace(REFERENCE, center=1000.0, unit=MEGABYTES)  # slow where it is low
    low = replace(slow(1e8 * 1e-5 / value / 1e5), unit=MEGABYTES, reference=1000.0)
    value = 1000.0 * 1e-5 / value
    assert decide_suspicion(low, 5 * [value], rate, NO_HISTORY).verdict == verdict


FEW = replace(REFERENCE, launches=5, headline=None)


@pytest.mark.parametrize(("fastest", "verdict"), [(1.01, Verdict.REGRESSED), (0.99, Verdict.SUSPECT)])
def test_against_few_launches_even_the_fastest_trial_must_be_gross(fastest: float, verdict: Verdict):
    gross = 1e-5 * math.exp(compute_gross_distance(FEW, 5))
    times = (gross, gross, gross, fastest * gross, gross, gross)
    result = replace(slow(2 * gross), summary=TrialSummary(*times, 50, 0, 0, False, False))
    assert decide_suspicion(result, 5 * [2 * gross], FEW, NO_HISTORY).verdict == verdict


@pytest.mark.parametrize(("fastest", "verdict"), [(1.01, Verdict.REGRESSED), (0.99, Verdict.SUSPECT)])
def test_against_few_launches_each_fresh_launch_of_a_program_of_means_must_be_gross(
    fastest: float, verdict: Verdict
):
    gross = 1e-5 * math.exp(compute_gross_distance(FEW, 1))
    result = replace(slow(4 * gross), summary=None, launches=1)
    fresh = [*(4 * [4 * gross]), fastest * gross]
    assert decide_suspicion(result, fresh, FEW, NO_HISTORY).verdict == verdict


@pytest.mark.parametrize(
    ("logs", "verdict"),
    [
        ((0.2, 0.2), Verdict.REGRESSED),
        ((0.2,), Verdict.SUSPECT),
        ((0.2, 0.0), Verdict.SUSPECT),
        ((0.0, 0.2, 0.2, 0.2), Verdict.SUSPECT),
    ],
)
def test_three_sessions_one_after_the_other_call_what_one_could_not(logs, verdict: Verdict):
    value = 1e-5 * math.exp(0.2)
    result = decide_suspicion(slow(value), 5 * [value], REFERENCE, before(*logs))
    assert result.verdict == verdict
    said = "22% slower in the mean of 3 sessions; slow"
    assert (result.reason == said) == (verdict == Verdict.REGRESSED)


def test_a_case_slow_by_its_headline_is_held_against_that_of_headlines():
    """0.4 is gross for the value, and not for the headline, which scatters twice as much."""
    result = slow(1e-5, by_headline=True)
    fresh = 5 * [2e-5 * math.exp(0.4)]
    assert compute_gross_distance(REFERENCE, 5) < 0.4
    found = decide_suspicion(result, fresh, REFERENCE, NO_HISTORY)
    assert found.verdict == Verdict.SUSPECT and found.reason.startswith("the mean of the trials 49%")
    called = decide_suspicion(result, fresh, REFERENCE, before(0.0, 0.0, headlines=0.4))
    assert called.verdict == Verdict.REGRESSED
    values = decide_suspicion(result, fresh, REFERENCE, before(0.4, 0.4))
    assert values.verdict == Verdict.SUSPECT
    alone = replace(REFERENCE, headline=None)
    assert decide_suspicion(result, fresh, alone, NO_HISTORY) == result


@pytest.mark.parametrize(("factor", "verdict"), [(1.9, Verdict.SUSPECT), (2.1, Verdict.REGRESSED)])
def test_few_slow_trials_are_called_in_one_session_only_if_they_double_the_mean(factor, verdict: Verdict):
    steady = replace(REFERENCE.headline, spread=REFERENCE.spread / 2)
    assert math.log(1.9) > compute_gross_distance(steady, 5)
    found = decide_suspicion(
        slow(1e-5, by_headline=True),
        5 * [factor * steady.center],
        replace(REFERENCE, headline=steady),
        NO_HISTORY,
    )
    assert found.verdict == verdict


def test_what_could_not_be_measured_again_or_repeats_exactly_stays_regressed():
    exact = replace(REFERENCE, spread=0.0, exact=True)
    for fresh, known in (((), REFERENCE), ((BETWEEN,), exact), ((BETWEEN,), None)):
        assert decide_suspicion(slow(BETWEEN), fresh, known, NO_HISTORY) == slow(BETWEEN)
    crashed = slow(BETWEEN, Verdict.CRASHED)
    assert decide_suspicion(crashed, 5 * [BETWEEN], REFERENCE, NO_HISTORY) == crashed


@pytest.mark.parametrize(
    ("verdict", "log", "called"),
    [
        (Verdict.PASS, 0.15, True),
        (Verdict.PROVISIONAL, 0.15, True),
        (Verdict.CLEARED, 0.15, False),
        (Verdict.PASS, -0.15, False),
    ],
)
def test_a_case_inside_its_band_is_called_by_many_sessions(verdict, log: float, called: bool):
    catalog = catalog_of([REFERENCE])
    tonight = slow(1e-5 * math.exp(0.15), verdict)
    (found,) = suspicion.call_slow_sums([tonight], catalog, before(*9 * [log]))
    assert (found.verdict == Verdict.REGRESSED) is called
    assert ("slower in the mean of " in found.reason) is called
    assert suspicion.call_slow_sums([tonight], catalog, NO_HISTORY) == [tonight]


# ---------------------------------------------------------------- the sessions of a case as the store has them

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=timezone.utc)


def at(minutes: float) -> str:
    """A moment so many minutes before."""
    return (NOW - timedelta(minutes=minutes)).strftime(DATE_FORMAT)


def history(*minutes: float) -> suspicion.SessionHistory:
    """Sessions so long before; the log of each is its number, that of its headline is negative."""
    told = [
        suspicion.JudgedSession(at(each), "pass", SessionValue(n, 5), SessionValue(-n, 5) if n % 2 else None)
        for n, each in enumerate(minutes)
    ]
    return suspicion.SessionHistory({ONE.key: told})


def logs(some: suspicion.SessionHistory, **how) -> list[float]:
    reference = replace(REFERENCE, since=how.pop("since", ""))
    return [value.log for value in some.find_run(ONE, reference, before=at(0), **how)]


def test_sessions_count_that_lie_twenty_minutes_apart_the_newest_first():
    assert logs(history(19, 21, 40, 42, 100)) == [1, 3, 4]  # 40 is 19 minutes before 21
    assert logs(history(20, 40)) == [0, 1]
    assert logs(history(*range(30, 3000, 30))) == list(range(LONGEST_RUN))
    assert history(30).find_run(case("scatter"), REFERENCE) == []


def test_sessions_count_since_the_reference_was_calibrated_and_by_headline_where_there_is_one():
    some = history(30, 60, 90, 120)
    assert logs(some, since=at(90)) == [0, 1]
    assert logs(some, by_headline=True) == [-1, -3]


def write(store: Path, days: float, value: float | None, verdict="pass", mode="nightly") -> None:
    """Store a session so many days ago with one value of the case, held against 1e-5."""
    moment = datetime.now(timezone.utc) - timedelta(days=days)
    name, started = moment.strftime("%Y%m%dT%H%M%SZ-1"), moment.strftime(DATE_FORMAT)
    told = {"reference": 1e-5, "value": value, "judged": value, "judged_launches": 3, "mode": mode}
    told |= {"headline_judged": 2e-5, "headline_reference": 1e-5} if days < 2 else {}
    row = StoreRow(name, started, 1, ONE, Verdict(verdict), **told)
    write_session(store / f"{name}.parquet", [row])


def test_judged_sessions_of_the_last_months_are_read(tmp_path: Path):
    write(tmp_path, 1, 1.2e-5, "suspect")
    write(tmp_path, 2, 1.1e-5, mode="confirm")
    write(tmp_path, 3, None, "crashed")
    write(tmp_path, 4, 3e-5, mode="run")  # somebody tried something
    write(tmp_path, 4.1, 3e-5, mode="run-fresh")
    write(tmp_path, 5, 1.3e-5, mode="nightly-fresh")
    write(tmp_path, 200, 5e-5)
    found = suspicion.read_history(tmp_path, [ONE, case("scatter")])
    first, second, third = found.sessions[ONE.key]
    assert (first.verdict, second.verdict) == ("suspect", "pass") and len(found.sessions) == 1
    day = number_day(first.started_utc)
    assert first.value == SessionValue(pytest.approx(math.log(1.2)), 3, day)
    assert first.headline == SessionValue(pytest.approx(math.log(2)), 3, day)
    assert (second.value.log, second.headline) == (pytest.approx(math.log(1.1)), None)
    assert third.value.log == pytest.approx(math.log(1.3))


def test_an_empty_or_damaged_store_tells_of_no_session(monkeypatch, tmp_path: Path):
    empty = suspicion.SessionHistory({})
    assert suspicion.read_history(tmp_path / "none", [ONE]) == suspicion.read_history(tmp_path, []) == empty

    def damaged(*_, **__):
        raise StoreError("x.parquet: damaged")

    monkeypatch.setattr(suspicion, "read_headlines", damaged)
    assert suspicion.read_history(tmp_path, [ONE]) == empty


@pytest.mark.parametrize(("before", "leans"), [(0.3, True), (-0.4, True), (-0.05, False)])
def test_a_case_leans_whose_sessions_lie_to_one_side_with_tonight(before: float, leans: bool):
    catalog = catalog_of([REFERENCE])
    value = 1e-5 * math.exp(0.05)
    result = CaseResult(ONE, Verdict.PASS, value=value, reference=1e-5, launches=5)
    told = {ONE.key: [suspicion.JudgedSession(at(60), "pass", SessionValue(before, 5), None)]}
    found = suspicion.find_leaning([result], suspicion.SessionHistory(told), catalog)
    assert found == ({ONE} if leans else set())
