"""What the launches of a session say of its jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from postprocess.model.case import LaunchPlace
from postprocess.results.launch_costs import (
    LaunchCost,
    TimedJob,
    WholeLaunch,
    list_timed_jobs,
    list_whole_launches,
    measure_cost,
    read_elapsed_seconds,
)
from postprocess.results.summary import SummaryLaunch
from tests.support.factories.launch import planned
from tests.support.factories.launch_costs import ELAPSED, SECONDS, entry, write_session_directory
from tests.support.factories.launch_costs import PLACE as MEASURED

PLACE = LaunchPlace("local:cpu", "mpich", "osu", 4, 2)


def launch(start: str = "", **changes) -> SummaryLaunch:
    told = {
        **PLACE._asdict(),
        "start": start,
        "cases": 3,
        "launch": 1,
        "seconds": 10.0,
        "outcome": "ok",
        "reason": "",
        "directory": "stage/a",
    }
    return SummaryLaunch(**told | changes)


def test_the_starts_of_a_job_are_one_job():
    assert list_timed_jobs([launch("bw"), launch("latency")]) == [TimedJob(PLACE, 1, 6, 10.0, True)]
    failed = launch("bcast", outcome="crashed")
    assert list_timed_jobs([launch("bw"), failed]) == [TimedJob(PLACE, 1, 6, 10.0, False)]


def test_what_was_skipped_is_no_part_of_a_job():
    skipped = launch("bcast", cases=0, outcome="skipped", seconds=0.0)
    assert list_timed_jobs([launch("bw"), skipped]) == [TimedJob(PLACE, 1, 3, 10.0, True)]
    assert list_timed_jobs([skipped]) == []


def test_another_directory_or_layout_or_number_is_another_job():
    others = [{"directory": "stage/b"}, {"processes": 2}, {"launch": 2}]
    jobs = list_timed_jobs([launch(), *(launch(**other) for other in others)])
    assert len(jobs) == 4
    assert [(job.place.processes, job.number) for job in jobs] == [(4, 1), (4, 1), (2, 1), (4, 2)]


def test_only_launches_that_ended_well_are_whole(tmp_path: Path):
    usual = write_session_directory(tmp_path / "a", [entry()])
    assert list(list_whole_launches(usual)) == [WholeLaunch(MEASURED, 4, SECONDS, ELAPSED, 51)]
    failed = write_session_directory(tmp_path / "b", [entry(9.0, outcome="crashed")])
    assert not list(list_whole_launches(failed)) and not list(list_whole_launches(tmp_path / "c"))


def test_the_starts_of_a_job_of_osu_share_its_time_and_have_no_trials(tmp_path: Path):
    starts = [entry(40.0, "a job", program="osu", start=f"osu-{n}", cases=7) for n in range(3)]
    session = write_session_directory(tmp_path / "a", [*starts, entry(9.0, "other", program="imb")])
    osu, imb = (MEASURED._replace(program=program) for program in ("osu", "imb"))
    assert list(list_whole_launches(session)) == [WholeLaunch(osu, 21, 40.0), WholeLaunch(imb, 4, 9.0)]


def test_a_launch_whose_records_are_gone_costs_nobody_knows_what(tmp_path: Path):
    session = write_session_directory(tmp_path / "a", [entry()])
    records = planned(trials=51).records(session)
    for text in ('{"record": "case"}\n', "no JSON\n", '["end"]\n', ""):
        records.write_text(text)
        assert read_elapsed_seconds(records) is None
    records.unlink()
    assert not list(list_whole_launches(session))


def test_a_launch_of_a_choice_of_cases_says_nothing_of_a_whole_one():
    part = WholeLaunch(PLACE, 1, 9.0, 2.0, 51)
    some = [WholeLaunch(PLACE, 4, 30.0, 10.2, 51), part, part, part]
    assert measure_cost(some) == LaunchCost(pytest.approx(19.8), pytest.approx(0.2))


def test_a_start_is_never_shorter_than_nothing():
    assert measure_cost([WholeLaunch(PLACE, 4, 10.0, 10.2, 51)]).start == 0.0
