"""A clock that contradicts the sessions before is told before a session begins."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from postprocess.base.workdir import WorkDirectory
from postprocess.session.lifecycle.context import describe_clock

THEN = datetime(2026, 11, 21, 2, 15, tzinfo=timezone.utc)


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    work = WorkDirectory(tmp_path, tmp_path)
    work.store.mkdir()
    for name in ("20261120T021500Z-9", "20261121T021500Z-7", "by-hand"):
        (work.store / f"{name}.parquet").touch()
    return work


@pytest.mark.parametrize("later", [-timedelta(minutes=1), timedelta(0), timedelta(days=300)])
def test_nothing_is_said_of_a_clock_that_goes_on(work: WorkDirectory, later: timedelta):
    assert list(describe_clock(work, THEN + later)) == []


def test_time_that_went_backwards_is_told_with_the_session(work: WorkDirectory):
    (line,) = describe_clock(work, THEN - timedelta(days=900))
    assert line.startswith("time went backwards: it is 2024-06-04 02:15 UTC, and a stored session")
    assert line.endswith(f"remove {work.store}/20261121T021500Z-7.parquet")


def test_a_clock_years_ahead_of_the_last_session_is_told(work: WorkDirectory):
    (line,) = describe_clock(work, THEN + timedelta(days=3000))
    assert line.startswith("it is 2035-02-07 02:15 UTC, and the last stored session began on 2026-")


def test_a_new_machine_has_nothing_to_be_held_against(tmp_path: Path):
    assert list(describe_clock(WorkDirectory(tmp_path, tmp_path), THEN)) == []
