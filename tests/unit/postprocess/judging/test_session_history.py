"""The sessions of a case as the store has them."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from postprocess.base.formats import DATE_FORMAT
from postprocess.judging import suspicion as session_history
from postprocess.judging.suspicion import JudgedSession, SessionHistory, find_leaning, read_history
from postprocess.model.reference import Prior, Reference
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog, ReferenceSet
from postprocess.results.store import StoreError, StoreRow, write_session
from postprocess.stats.sequence import LONGEST_RUN
from postprocess.stats.sessions import SessionValue, number_day
from tests.support.factories.launch import PLACE, case, origin_of

ONE = case("bcast", 1000)
NOW = datetime(2026, 11, 22, 12, 0, tzinfo=timezone.utc)
REFERENCE = Reference(ONE, 1e-5, 0.02, 20, prior=Prior(0.02, 20.0), session_prior=Prior(0.03, 5.0))


def at(minutes: float) -> str:
    """A moment so many minutes before."""
    return (NOW - timedelta(minutes=minutes)).strftime(DATE_FORMAT)


def history(*minutes: float) -> SessionHistory:
    """Sessions so long before; the log of each is its number, that of its headline is negative."""
    told = [
        JudgedSession(at(each), "pass", SessionValue(n, 5), SessionValue(-n, 5) if n % 2 else None)
        for n, each in enumerate(minutes)
    ]
    return SessionHistory({ONE.key: told})


def logs(some: SessionHistory, **how) -> list[float]:
    reference = replace(REFERENCE, since=how.pop("since", ""))
    return [each.log for each in some.find_run(ONE, reference, before=at(0), **how)]


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
    write(tmp_path, 200, 5e-5)
    found = read_history(tmp_path, [ONE, case("scatter")])
    first, second = found.sessions[ONE.key]
    assert (first.verdict, second.verdict) == ("suspect", "pass") and len(found.sessions) == 1
    day = number_day(first.started_utc)
    assert first.value == SessionValue(pytest.approx(math.log(1.2)), 3, day)
    assert first.headline == SessionValue(pytest.approx(math.log(2)), 3, day)
    assert (second.value.log, second.headline) == (pytest.approx(math.log(1.1)), None)
    assert (found.find_verdict(ONE), found.find_verdict(case("scatter"))) == ("suspect", "")


def test_an_empty_or_damaged_store_tells_of_no_session(monkeypatch, tmp_path: Path):
    assert read_history(tmp_path / "none", [ONE]) == read_history(tmp_path, []) == SessionHistory({})

    def damaged(*_, **__):
        raise StoreError("x.parquet: damaged")

    monkeypatch.setattr(session_history, "read_headlines", damaged)
    assert read_history(tmp_path, [ONE]) == SessionHistory({})


@pytest.mark.parametrize(("before", "leans"), [(0.3, True), (-0.4, True), (-0.05, False)])
def test_a_case_leans_whose_sessions_lie_to_one_side_with_tonight(before: float, leans: bool):
    one = ReferenceSet(Path("x.tsv"), {ONE: REFERENCE}, origin_of())
    catalog = ReferenceCatalog({(":".join(PLACE[:2]), PLACE[2]): one})
    value = 1e-5 * math.exp(0.05)
    result = CaseResult(ONE, Verdict.PASS, value=value, reference=1e-5, launches=5)
    told = {ONE.key: [JudgedSession(at(60), "pass", SessionValue(before, 5), None)]}
    found = find_leaning([result], SessionHistory(told), catalog)
    assert found == ({ONE} if leans else set())
