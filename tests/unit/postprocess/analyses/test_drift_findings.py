"""From stored nights to series: what counts as a night, and since when a reference holds."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from postprocess.analyses import drift_findings
from postprocess.analyses.drift import NightSeries, detect_trends
from postprocess.analyses.drift_findings import read_nights
from postprocess.base.formats import MEGABYTES
from postprocess.model.verdict import Verdict
from postprocess.results.store import StoreRow, write_session
from tests.support.factories.drift import CASE, REFERENCE, noise, row, session, started, write_nights

SINCE = "2026-01-01"
FAST = 0.5 * REFERENCE


def store(folder: Path, rows: Sequence[StoreRow]) -> Path:
    """Rows by session, each written to its file."""
    for name in {each.session for each in rows}:
        write_session(folder / f"{name}.parquet", [each for each in rows if each.session == name])
    return folder


def only(folder: Path, rows: Sequence[StoreRow]) -> NightSeries:
    (found,) = read_nights(store(folder, rows), SINCE)
    return found


def nights_of(count: int, **more) -> list[StoreRow]:
    return [row(CASE, night, REFERENCE * (1 + night / 100), **more) for night in range(count)]


def test_a_series_is_what_was_stored(tmp_path):
    found = only(tmp_path, nights_of(12))
    assert found.case == CASE
    assert found.unit == "s"
    assert found.sessions == [session(night) for night in range(12)]
    assert found.started == [started(night) for night in range(12)]
    assert found.values == pytest.approx(REFERENCE * (1 + np.arange(12) / 100))
    assert (found.references == REFERENCE).all()
    assert (found.lower < REFERENCE).all() and (found.upper > REFERENCE).all()
    assert found.epoch == 0


def test_a_night_is_its_median_launch(tmp_path):
    values = [1.0, 1.1, 9.0]
    rows = [row(CASE, 0, REFERENCE * value, launch=n) for n, value in enumerate(values, 1)]
    assert only(tmp_path, rows).values == pytest.approx([1.1 * REFERENCE])


MODES = [{"mode": mode} for mode in ("run", "calibrate", "confirm", "selftest", "")]
NOT_JUDGED = [{"verdict": each} for each in sorted(set(Verdict) - set(drift_findings.JUDGED), key=str)]


@pytest.mark.parametrize("told", [*MODES, *NOT_JUDGED], ids=str)
def test_a_session_that_is_no_night_and_a_value_that_was_not_judged_do_not_count(tmp_path, told):
    """Before modes were stored, it may be a calibration; data that were wrong say nothing of speed."""
    rows = [*nights_of(11), row(CASE, 11, FAST, **told)]
    assert len(only(tmp_path, rows).values) == 11


@pytest.mark.parametrize("verdict", sorted(drift_findings.JUDGED))
def test_slow_nights_count(tmp_path, verdict):
    rows = [*nights_of(11), row(CASE, 11, FAST, verdict=verdict)]
    assert only(tmp_path, rows).values[-1] == pytest.approx(FAST)


@pytest.mark.parametrize(
    "by_hand",
    [
        [row(CASE, 40, 1.1 * REFERENCE, mode="run", reference=1.001 * REFERENCE)],
        [row(CASE, night, REFERENCE, mode="run") for night in range(40, 50)],
    ],
    ids=["one with other references", "many on a fine node"],
)
def test_a_step_that_lasts_is_not_over_because_of_runs_by_hand(tmp_path, by_hand):
    nights = [row(CASE, n, REFERENCE * (1 if n < 30 else 1.1)) for n in range(40)]
    (trend,) = detect_trends([only(tmp_path, [*nights, *by_hand])])
    assert [(finding.begin, finding.lasts) for finding in trend.findings] == [(30, True)]


def test_nights_without_a_value_or_reference_are_gaps(tmp_path):
    rows = [*nights_of(10), row(CASE, 10, None), row(CASE, 11, REFERENCE)]
    rows[3] = replace(rows[3], reference=None)
    rows[4] = replace(rows[4], value=0.0)
    found = only(tmp_path, rows)
    assert found.sessions == [session(night) for night in (0, 1, 2, 5, 6, 7, 8, 9, 11)]


def test_a_case_that_was_never_judged_has_no_series(tmp_path):
    assert read_nights(store(tmp_path, [row(CASE, 0, None)]), SINCE) == []


def test_a_missing_band_is_no_reason_to_lose_a_night(tmp_path):
    found = only(tmp_path, nights_of(10, lower=None, upper=None))
    assert len(found.values) == 10
    assert np.isnan(found.lower).all() and np.isnan(found.upper).all()


@pytest.mark.parametrize("other", [{"reference": 2 * REFERENCE}, {"mpi_library": "MPICH 6"}])
def test_another_reference_or_library_begins_an_epoch(tmp_path, other):
    rows = nights_of(20)
    rows[:5] = [replace(each, **other) for each in rows[:5]]
    assert only(tmp_path, rows).epoch == 5


def test_a_reference_that_comes_back_begins_an_epoch_of_its_own(tmp_path):
    rows = nights_of(20)
    rows[9] = replace(rows[9], reference=2 * REFERENCE)
    found = only(tmp_path, rows)
    assert found.epoch == 10
    assert found.references[9] == 2 * REFERENCE


def test_nights_in_another_unit_are_none(tmp_path):
    rows = nights_of(20)
    rows[:5] = [replace(each, unit=MEGABYTES) for each in rows[:5]]
    found = only(tmp_path, rows)
    assert (found.unit, len(found.values), found.epoch) == ("s", 15, 0)


def test_the_last_nights_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(drift_findings, "MOST_NIGHTS", 4)
    rows = nights_of(12)
    rows[0] = replace(rows[0], reference=2 * REFERENCE)
    found = only(tmp_path, rows)
    assert found.sessions == [session(night) for night in range(8, 12)]
    assert found.epoch == 0


def test_nights_before_a_day_are_left_out(tmp_path):
    store(tmp_path, nights_of(12))
    (found,) = read_nights(tmp_path, started(7)[:10])
    assert found.started == [started(night) for night in range(7, 12)]


def test_cases_are_kept_apart_whatever_nights_they_have(tmp_path):
    other = replace(CASE, routine="gather")
    gaps = noise(seed=2)
    gaps[10:40] = np.nan
    write_nights(tmp_path, {CASE: noise(), other: gaps})
    first, second = read_nights(tmp_path, SINCE)
    assert (first.case, len(first.values)) == (CASE, 60)
    assert (second.case, len(second.values)) == (other, 30)
    assert np.allclose(second.logs, gaps[~np.isnan(gaps)])
    assert not any(trend.findings for trend in detect_trends([first, second]))
