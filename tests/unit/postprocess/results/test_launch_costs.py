"""What the launches of sessions say of how long jobs take: as long as the last time, or roughly."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postprocess.base.workdir import WorkDirectory
from postprocess.model.case import Case, LaunchPlace
from postprocess.model.routines.benchmark import Benchmark
from postprocess.results import launch_costs
from postprocess.results.summary import SummaryLaunch
from tests.support.factories.benchmark import osu_job
from tests.support.factories.launch import CASES, case, planned
from tests.support.factories.summary import INSIDE, SECONDS, leave_timed_session

FIRST, SECOND = "20261121T090000Z-1", "20261121T100000Z-1"
MEASURED = LaunchPlace.of(CASES[0])
PLACE = LaunchPlace("local:cpu", "mpich", "osu", 4, 2)
WARM = tuple(replace(each, cache="warm") for each in CASES)


def job(**changes) -> launch_costs.Job:
    (only,) = launch_costs.list_jobs([planned(**changes)])
    return only


def edit_launches(path: Path, edit: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> Path:
    """Put other launches into the summary of a session of one; the session's folder."""
    data = json.loads(path.read_text())
    (only,) = data["launches"]
    path.write_text(json.dumps(data | {"launches": edit(only)}))
    return path.parent


# What a job of the plan will take.


def test_what_took_so_long_before_is_expected_to_again(work: WorkDirectory):
    leave_timed_session(work.sessions / FIRST, 30.0)
    leave_timed_session(work.sessions / SECOND, 12.0)
    known = launch_costs.read_job_seconds(work)
    assert known == {(MEASURED, len(CASES), "evict"): 12.0}
    assert launch_costs.estimate_job_seconds(job(), known) == 12.0


def test_kernels_are_guessed_by_their_sizes():
    """Series C takes a minute and a half of one core, and no millisecond as a call does."""
    one = replace(case(processes=1, per_node=1), program="kernels", routine="series_C", bytes=16_000_000)
    two = replace(one, routine="series_C_compute", processes=2, per_node=2)
    for each, runs in ((one, 93.0), (two, 46.5), (replace(one, routine="sor_A_compute"), 0.1)):
        found = launch_costs.estimate_job_seconds(job(program="kernels", cases=(each,), trials=6), {})
        assert found == pytest.approx(launch_costs.ROUGH_START + 6 * runs)


@pytest.mark.parametrize(
    "other",
    [
        {"cases": CASES[:2]},
        {"environment": "openmpi-5_0_11"},
        {"partition": "local:gpu"},
        {"cases": (case(processes=4, per_node=4),)},
        {"program": "imb"},
        {"cases": WARM},
    ],
    ids=lambda each: next(iter(each)),
)
def test_of_another_launch_the_time_is_guessed(work: WorkDirectory, other):
    leave_timed_session(work.sessions / FIRST)
    other_job = job(**other)
    known = launch_costs.read_job_seconds(work)
    assert other_job.key not in known
    expected = launch_costs.ROUGH_START + other_job.cases * planned().trials * launch_costs.ROUGH_TRIAL
    assert launch_costs.estimate_job_seconds(other_job, known) == pytest.approx(expected)


def test_simulated_ranks_take_time_by_their_number():
    """All of them run on one core: 256 ranks take seconds to start, and no estimate says one second."""
    few, many = (
        launch_costs.estimate_job_seconds(
            job(exact=True, trials=2, cases=(case(processes=count, per_node=1),)), {}
        )
        for count in (8, 256)
    )
    assert few < 2 < 4 < many < 8


def test_a_launch_that_failed_tells_nothing_of_the_time(work: WorkDirectory):
    edit_launches(leave_timed_session(work.sessions / FIRST), lambda only: [only | {"outcome": "timeout"}])
    assert launch_costs.read_job_seconds(work) == {}


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "{}", '{"schema": 99}'])
def test_a_summary_that_cannot_be_read_is_passed_over(work: WorkDirectory, text: str):
    leave_timed_session(work.sessions / FIRST, 30.0)
    leave_timed_session(work.sessions / SECOND, 12.0).write_text(text)
    assert list(launch_costs.read_job_seconds(work).values()) == [30.0]


def test_the_starts_of_a_job_are_one_job_and_take_its_time_once(work: WorkDirectory):
    plan = [planned(), osu_job("bw"), osu_job("latency"), osu_job("bw", number=2)]
    assert [len(each.launches) for each in launch_costs.list_jobs(plan)] == [1, 2, 1]
    together = launch_costs.list_jobs(plan)[1]
    assert together.key == (MEASURED._replace(program="osu"), 40, "warm")
    sent = 2 * 1000 * (2**20 - 1) / launch_costs.ROUGH_RATE
    rough = 2 * launch_costs.ROUGH_START + 40 * launch_costs.ROUGH_SIZE + sent
    assert launch_costs.estimate_job_seconds(together, {}) == pytest.approx(rough)
    starts = [
        {"program": "osu", "start": name, "cases": 20, "directory": "stage/osu"} for name in ("bw", "bibw")
    ]
    path = leave_timed_session(work.sessions / FIRST)
    edit_launches(path, lambda only: [only, *(only | start for start in starts)])
    assert launch_costs.read_job_seconds(work) == {job().key: SECONDS, together.key: SECONDS}


def test_windows_of_large_messages_take_minutes():
    """OSU's bibw at 4 MiB took 28 to 43 s on two cores: 200 iterations with their data checked."""
    line = Benchmark("osu_bibw", "bibw", "title", "Bandwidth (MB/s)", "MB/s", window=True)
    cases = (case("bibw", 2**26, program="osu", cache="warm"),)
    (largest,) = launch_costs.list_jobs([osu_job("bibw", trials=200, cases=cases, benchmarks=(line,))])
    assert 240 < launch_costs.estimate_job_seconds(largest, {}) < 960


def seconds_of(work: WorkDirectory, cases: tuple[Case, ...], **changes: object) -> float | None:
    return launch_costs.read_seconds_of_cases(
        work, launch_costs.list_jobs([planned(cases=cases, **changes)])
    ).get(MEASURED)


def test_what_launches_cost_is_that_of_the_same_cases_the_last_time(work: WorkDirectory):
    assert seconds_of(work, CASES) is None
    leave_timed_session(work.sessions / FIRST, 90.0)
    leave_timed_session(work.sessions / SECOND, 2.0)
    assert seconds_of(work, CASES) == 2.0
    assert seconds_of(work, CASES[:1]) == 2.0  # as long as all of them, at most
    assert seconds_of(work, WARM) is None  # a launch that flushes is no measure of one that does not
    assert seconds_of(work, CASES, trials=11) is None


# What the launches of a session took.


def launch(start: str = "", **changes) -> SummaryLaunch:
    told = {
        **PLACE._asdict(),
        **{"start": start, "cases": 3, "launch": 1, "seconds": 10.0},
        **{"outcome": "ok", "reason": "", "directory": "stage/a"},
    }
    return SummaryLaunch(**told | changes)


def test_the_starts_of_a_job_are_one_timed_job_without_what_was_skipped():
    assert launch_costs.list_timed_jobs([launch("bw"), launch("latency")]) == [
        launch_costs.TimedJob(PLACE, 1, 6, 10.0, True)
    ]
    failed = launch("bcast", outcome="crashed")
    assert launch_costs.list_timed_jobs([launch("bw"), failed]) == [
        launch_costs.TimedJob(PLACE, 1, 6, 10.0, False)
    ]
    skipped = launch("bcast", cases=0, outcome="skipped", seconds=0.0)
    assert launch_costs.list_timed_jobs([launch("bw"), skipped]) == [
        launch_costs.TimedJob(PLACE, 1, 3, 10.0, True)
    ]
    assert launch_costs.list_timed_jobs([skipped]) == []


def test_another_directory_or_layout_or_number_is_another_job():
    others = [{"directory": "stage/b"}, {"processes": 2}, {"launch": 2}]
    jobs = launch_costs.list_timed_jobs([launch(), *(launch(**other) for other in others)])
    assert [(job.place.processes, job.number) for job in jobs] == [(4, 1), (4, 1), (2, 1), (4, 2)]


def whole(folder: Path) -> list[launch_costs.WholeLaunch]:
    return list(launch_costs.list_whole_launches(folder))


def test_only_launches_that_ended_well_are_whole(tmp_path: Path):
    usual = leave_timed_session(tmp_path / "a")
    assert whole(usual.parent) == [launch_costs.WholeLaunch(MEASURED, 4, SECONDS, INSIDE, 51)]
    failed = leave_timed_session(tmp_path / "b")
    assert whole(edit_launches(failed, lambda only: [only | {"outcome": "crashed"}])) == []
    assert whole(tmp_path / "c") == []


def test_the_starts_of_a_job_of_osu_share_its_time_and_have_no_trials(tmp_path: Path):
    starts = [{"program": "osu", "start": f"osu-{n}", "cases": 7, "seconds": 40.0} for n in range(3)]
    others = [*starts, {"program": "imb", "directory": "other", "seconds": 9.0}]
    path = leave_timed_session(tmp_path / "a")
    osu, imb = (MEASURED._replace(program=program) for program in ("osu", "imb"))
    found = whole(edit_launches(path, lambda only: [only | each for each in others]))
    assert found == [launch_costs.WholeLaunch(osu, 21, 40.0), launch_costs.WholeLaunch(imb, 4, 9.0)]


def test_a_launch_whose_records_are_gone_costs_nobody_knows_what(tmp_path: Path):
    session = leave_timed_session(tmp_path / "a").parent
    records = planned().records(session)
    for text in ('{"record": "case"}\n', "no JSON\n", '["end"]\n', ""):
        records.write_text(text)
        assert launch_costs.read_elapsed_seconds(records) is None
    records.unlink()
    assert whole(session) == []


def test_a_launch_of_a_choice_of_cases_says_nothing_of_a_whole_one():
    part = launch_costs.WholeLaunch(PLACE, 1, 9.0, 2.0, 51)
    some = [launch_costs.WholeLaunch(PLACE, 4, 30.0, 10.2, 51), part, part, part]
    assert launch_costs.measure_cost(some) == launch_costs.LaunchCost(pytest.approx(19.8), pytest.approx(0.2))


def test_a_start_is_never_shorter_than_nothing():
    assert launch_costs.measure_cost([launch_costs.WholeLaunch(PLACE, 4, 10.0, 10.2, 51)]).start == 0.0
