"""How many launches a night takes: from what they cost the last time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.base.files import write_summary
from postprocess.base.workdir import WorkDirectory
from postprocess.judging.evaluate import evaluate_launches
from postprocess.model.case import Case, LaunchPlace
from postprocess.model.plan import PlannedLaunch
from postprocess.model.session import Session
from postprocess.references.catalog import ReferenceCatalog
from postprocess.results.launch_costs import list_jobs, read_seconds_of_cases
from postprocess.results.summary import summarise_session
from postprocess.session.nightly.estimate import choose_launch_counts, describe_launch_counts, repeat_launches
from tests.support.factories.launch import CASES, finished, planned

PLACE = LaunchPlace.of(CASES[0])
WARM = tuple(replace(each, cache="warm") for each in CASES)


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    return WorkDirectory(tmp_path / "home", tmp_path)


def leave(work: WorkDirectory, name: str, seconds: float) -> None:
    """A session of one launch of all cases that took so long."""
    directory = work.sessions / name
    done = replace(finished(directory), seconds=seconds)
    results = evaluate_launches([done], ReferenceCatalog(), "local")
    opened = Session(directory, "nightly", "local", [], False)
    summary = summarise_session(opened, "CMake (no Spack)", (), [done], results, 0, [], {})
    write_summary(directory / "summary.json", summary.to_dict())


def seconds_of(work: WorkDirectory, cases: tuple[Case, ...], **changes: object) -> float | None:
    return read_seconds_of_cases(work, list_jobs([planned(cases=cases, **changes)])).get(PLACE)


def test_what_launches_cost_is_that_of_the_same_cases_the_last_time(work: WorkDirectory):
    assert seconds_of(work, CASES) is None
    leave(work, "20261121T090000Z-1", 90.0)
    leave(work, "20261121T100000Z-1", 2.0)
    assert seconds_of(work, CASES) == 2.0
    assert seconds_of(work, CASES[:1]) == 2.0  # as long as all of them, at most
    assert seconds_of(work, WARM) is None  # a launch that flushes is no measure of one that does not
    assert seconds_of(work, CASES, trials=11) is None


def counts_of(work: WorkDirectory, **changes: object) -> int:
    plan: list[PlannedLaunch] = [planned(**{"budget": 30.0, **changes})]
    return choose_launch_counts(work, plan)[PLACE]


def test_a_night_takes_what_is_paid_and_five_at_most(work: WorkDirectory):
    leave(work, "20261121T090000Z-1", 1.0)
    assert [counts_of(work, budget=each) for each in (600.0, 5.0, 3.5, 0.5)] == [5, 5, 3, 1]
    assert counts_of(work, budget=0.0) == 1  # OSU and IMB have none
    assert counts_of(work, exact=True) == 1


def test_a_launch_that_takes_longer_is_made_less_often(work: WorkDirectory):
    leave(work, "20261121T090000Z-1", 94.0)
    assert counts_of(work) == 1


def test_counts_are_told_and_planned():
    counts = {PLACE: 5, PLACE._replace(program="osu"): 1}
    (line,) = describe_launch_counts(counts)
    assert line == "5 launches, whose median is judged: mpicost on mpich-5_0_2 2x2"
    repeated = repeat_launches([planned(), planned(program="osu")], {PLACE: 5})
    assert [each.number for each in repeated] == [1, 2, 3, 4, 5, 1]
