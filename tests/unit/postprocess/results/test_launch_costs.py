"""What the launches of a session say of its jobs."""

from __future__ import annotations

from postprocess.model.case import LaunchPlace
from postprocess.results.launch_costs import TimedJob, list_timed_jobs
from postprocess.results.summary import SummaryLaunch

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
