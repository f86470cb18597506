"""The nights before a session, read from the store: histories, steps, and a store that cannot be read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from postprocess.model.verdict import Verdict
from postprocess.report.past import find_news
from postprocess.results.summary import parse_summary
from postprocess.session.lifecycle.past import read_past
from tests.support.factories import drift
from tests.support.factories import report as samples
from tests.support.faults import plants

NIGHTS = 30


@pytest.fixture
def summary():
    """A session of one case, slow since the tenth night before it."""
    night = samples.Night()
    samples.slow(2.0)(night, drift.CASE, samples.np.random.default_rng(1))
    more = {"session": drift.session(NIGHTS - 1), "started_utc": drift.started(NIGHTS - 1)}
    return parse_summary(replace(night, more=more).document())


@pytest.fixture
def stored(work):
    work.store.mkdir(parents=True)
    logs = drift.noise(NIGHTS + 5)
    logs[NIGHTS - 10 :] += 0.3
    drift.write_nights(work.store, {drift.CASE: logs})
    return work


def test_the_nights_up_to_the_session_and_their_steps_are_read(stored, summary):
    past = read_past(stored, summary)
    nights = past.nights[drift.CASE.key]
    assert [night.session for night in nights] == [drift.session(n) for n in range(NIGHTS)]
    (step,) = past.steps[drift.CASE.key]
    assert step.session == drift.session(NIGHTS - 10)
    assert step.text.startswith("step of +3")
    (item,) = find_news(summary, past).items
    assert (item.tone, item.what) == ("bad", "newly regressed")


@plants("lost", "a night of the store is cut off", "the report of a later session", "", 0,
        "the nights before are not known: …is damaged, its checksum is wrong")  # fmt: skip
def test_a_damaged_night_is_told_and_keeps_nobody_from_a_report(stored, summary, declared):
    path = stored.store / f"{drift.session(3)}.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    past = read_past(stored, summary)
    assert not past.nights
    declared.check((), 0, [past.problem])
    assert Verdict.REGRESSED in {each.verdict for each in summary.results}
