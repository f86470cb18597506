"""Tests of what the nights of a case tell of its noise."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from postprocess.judging.night_history import (
    JudgedNight,
    collect_night_spreads,
    select_well_nights,
)

from postprocess.model.case import Case
from postprocess.model.verdict import Verdict
from postprocess.results.store import StoreRow, write_session
from tests.support.factories.launch import case


def write_nights(store: Path, of: Case, values: dict[datetime, float]) -> None:
    """Store a night with one value of a case at each of these moments."""
    for moment, value in values.items():
        name, started = moment.strftime("%Y%m%dT%H%M%SZ-1"), moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        told = {"reference": 1.0, "value": value, "mode": "nightly"}
        row = StoreRow(name, started, 1, of, Verdict.PASS, **told)
        write_session(store / f"{name}.parquet", [row])


def night(verdict: str) -> JudgedNight:
    return JudgedNight(verdict, 1.1, "s", 1.0, 1)


@pytest.mark.parametrize(
    ("newest_first", "well"),
    [
        ("pass cleared fast provisional", 4),
        ("suspect pass", 1),  # perhaps a slowdown that has just begun
        ("suspect suspect pass pass", 2),
        ("pass suspect suspect pass", 4),  # a slow hour that has passed
        ("pass suspect regressed suspect pass", 2),  # it was called
        ("regressed pass", 1),
    ],
)
def test_a_slowdown_that_lasts_does_not_widen_its_own_band(newest_first: str, well: int):
    nights = [night(word) for word in newest_first.split()]
    assert len(list(select_well_nights(nights))) == well


def test_the_spread_follows_from_the_stored_nights_of_the_last_months(tmp_path: Path):
    one, now = case("bcast", 1000), datetime.now(timezone.utc)
    assert collect_night_spreads(tmp_path, [one]) == {}
    values = [1.0, 1.1, 0.9, 1.05, 0.95]
    write_nights(tmp_path, one, {now - timedelta(days=n): value for n, value in enumerate(values)})
    write_nights(tmp_path, one, {now - timedelta(days=200): 50.0})
    (told,) = collect_night_spreads(tmp_path, [one, case("scatter")]).values()
    assert told.nights == 5
    assert told.variance**0.5 == pytest.approx(0.08, rel=0.2)
