"""The trials behind a value: read from the store and sorted by what became of them."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from postprocess.base.errors import UsageError
from postprocess.judging.evaluate import evaluate_launches
from postprocess.model.launch import LaunchOutcome
from postprocess.model.verdict import Verdict
from postprocess.report import trial_selection
from postprocess.report.trial_selection import LaunchTrials
from postprocess.results.store import StoreRow, build_rows, read_sessions, write_session
from postprocess.results.summary import parse_summary
from postprocess.stats.launches import mark_removed_trials
from tests.support.factories import report as samples
from tests.support.factories import size as sizes
from tests.support.factories.benchmark import measured
from tests.support.factories.launch import book_of, finished


@pytest.fixture(scope="module")
def night():
    return samples.bad_night(samples.few_cases())


@pytest.fixture(scope="module")
def summary(night):
    return parse_summary(night.document())


def made(times, late=(), dropped=1):
    flags = np.array(late or [False] * len(times))
    return LaunchTrials(1, np.array(times, dtype=float), flags, dropped, 1.0)


def test_trials_come_back_for_every_case_that_has_them(night):
    known = trial_selection.read_trials(night.frame(), samples.SESSION)
    assert set(known) == {r.case.key for r in night.results if r.value is not None}
    row = next(row for row in night.rows if row.summary)
    (launch,) = known[row.case.key]
    assert launch.times.tolist() == list(row.t_max)
    assert launch.headline == row.summary.headline


def test_trials_of_launches_are_those_that_the_store_gives_back(tmp_path):
    """A session draws its own before anybody reads its store; ``report`` draws the same from there."""
    done = [finished(tmp_path / str(n), scale=n, number=n) for n in range(9, 0, -1)]
    failed = finished(tmp_path / "bad", outcome=LaunchOutcome(None, Verdict.CRASHED, "SIGSEGV"), number=4)
    benchmark = measured(tmp_path / "osu")
    launches = [*done, failed, benchmark]
    results = evaluate_launches(launches, book_of(done[0]), "local")
    write_session(tmp_path / "s.parquet", build_rows("s", "2026-11-21T09:00:00Z", launches, results))
    stored = trial_selection.read_trials(read_sessions(tmp_path, ["s"]), "s")
    own = trial_selection.select_launch_trials(launches)
    assert own.keys() == stored.keys() == {case.key for case in done[0].launch.cases}
    for key, trials in own.items():
        assert [trial.launch for trial in trials] == [4, 5, 6, 7, 8, 9]
        for one, other in zip(trials, stored[key], strict=True):
            assert_array_equal(one.times, other.times)
            assert_array_equal(one.late, other.late)
            facts = ("launch", "dropped", "headline", "steady")
            assert [getattr(one, f) for f in facts] == [getattr(other, f) for f in facts]


def test_other_sessions_are_left_out(night):
    assert trial_selection.read_trials(night.frame(), "another") == {}


@pytest.mark.parametrize(
    "damage",
    [
        {"t_max": ()},
        {"t_max": (1.0, float("nan"), 1.0)},
        {"t_max": (1.0, 0.0, 1.0)},
        {"t_max": (1.0, float("inf"), 1.0)},
        {"t_max": (1.0, 2.0), "late": (False,)},
        {"t_max": (1.0, 2.0), "late": (False, True)},
        {"summary": None},
    ],
)
def test_broken_trials_yield_no_picture_and_no_error(damage, night):
    row = replace(next(row for row in night.rows if row.summary), **{"late": (), **damage})
    assert trial_selection.read_trials(samples.Night(rows=[row]).frame(), samples.SESSION) == {}


def test_a_missing_column_is_named(night):
    with pytest.raises(UsageError, match="late"):
        trial_selection.read_trials(night.frame().drop("late"), samples.SESSION)


def test_masks_tell_first_late_spike_and_kept_apart():
    times = [9.0] + 18 * [1.0] + [7.0, 8.0, 5.0]
    late = [False] + [True] + 20 * [False]
    masks = made(times, late).masks()
    found = {name: np.flatnonzero(mask).tolist() for name, mask in masks.items() if name != "kept"}
    assert found == {"first": [0], "late": [1], "spike": [19, 20]}
    assert sum(mask.astype(int) for mask in masks.values()).tolist() == [1] * len(times)


def test_kept_are_exactly_those_in_the_headline(night):
    for row in night.rows:
        if row.summary:
            launch = LaunchTrials(1, row.t_max, np.array(row.late), 1, 1.0)
            kept = row.t_max[launch.masks()["kept"]]
            assert np.mean(kept) == pytest.approx(row.summary.headline, rel=1e-12)
            assert (~mark_removed_trials(row.t_max)).sum() == kept.size


def test_every_failed_case_with_trials_is_chosen_the_worst_first(night, summary):
    known = trial_selection.read_trials(night.frame(), samples.SESSION)
    chosen, left_out = trial_selection.select_failed(summary, known)
    assert left_out == 0
    assert {c.result for c in chosen} == {r for r in summary.failed if r.value is not None}
    ratios = [c.result.value / c.result.reference for c in chosen]
    assert ratios == sorted(ratios, reverse=True)


def test_more_failed_cases_than_the_page_bears_are_counted(monkeypatch, night, summary):
    monkeypatch.setattr(trial_selection, "MOST_FAILED", 1)
    known = trial_selection.read_trials(night.frame(), samples.SESSION)
    chosen, left_out = trial_selection.select_failed(summary, known)
    assert (len(chosen), left_out) == (1, sum(r.value is not None for r in summary.failed) - 1)


def test_representatives_are_healthy_different_and_explained(night, summary):
    known = trial_selection.read_trials(night.frame(), samples.SESSION)
    chosen = trial_selection.select_representative(summary, known)
    assert 3 <= len(chosen) <= 6
    assert not {c.result for c in chosen} & set(summary.failed)
    assert len({c.result.case for c in chosen}) == len({c.why for c in chosen}) == len(chosen)
    assert all(c.result.summary.bimodal for c in chosen if c.why == "two modes")


@pytest.mark.parametrize("unit", ["s", "MB/s"])
def test_a_case_above_its_reference_is_not_the_fastest_against_it(night, summary, unit):
    known = trial_selection.read_trials(night.frame(), samples.SESSION)
    reference = 1 / 1.06 if unit == "s" else 1.06  # each case is 6% slower
    slower = [replace(r, unit=unit, reference=r.value and r.value * reference) for r in summary.results]
    chosen = trial_selection.select_representative(replace(summary, results=tuple(slower)), known)
    assert chosen and "fastest against its reference" not in {c.why for c in chosen}


def test_programs_without_trials_are_left_out_by_that(night, summary):
    """Their rows have a value and no trials; no picture, and no place among what is worth a look."""
    three = sizes.three_programs()
    others = [r for r in three.results if r.case.program != "mpicost" and r.value is not None]
    rows = [
        StoreRow(samples.SESSION, "", 1, r.case, r.verdict, r.reason, unit=r.unit, value=r.value)
        for r in others[::20]
    ]
    frame = replace(three, rows=[*night.rows, *rows]).frame()
    known = trial_selection.read_trials(frame, samples.SESSION)
    assert set(known) == set(trial_selection.read_trials(night.frame(), samples.SESSION))
    whole = parse_summary(three.document())
    found = [c.result for c in trial_selection.select_representative(whole, known)]
    assert found == [c.result for c in trial_selection.select_representative(summary, known)]
    found = {c.result.case.program for c in trial_selection.select_failed(whole, known)[0]}
    assert found == {"mpicost"}
    stray = {r.case.key: next(iter(known.values())) for r in others}
    assert trial_selection.select_failed(whole, stray) == ([], 0)
    assert trial_selection.select_representative(summary, stray) == []
