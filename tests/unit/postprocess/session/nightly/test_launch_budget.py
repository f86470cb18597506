"""How many launches a night takes: from what they cost the last time."""

from __future__ import annotations

from postprocess.base.workdir import WorkDirectory
from postprocess.model.case import LaunchPlace
from postprocess.model.plan import PlannedLaunch
from postprocess.session.nightly.estimate import choose_launch_counts, describe_launch_counts, repeat_launches
from tests.support.factories.launch import CASES, planned
from tests.support.factories.summary import leave_timed_session

PLACE = LaunchPlace.of(CASES[0])


def counts_of(work: WorkDirectory, **changes: object) -> int:
    plan: list[PlannedLaunch] = [planned(**{"budget": 30.0, **changes})]
    return choose_launch_counts(work, plan)[PLACE]


def test_a_night_takes_what_is_paid_and_five_at_most(work: WorkDirectory):
    leave_timed_session(work.sessions / "20261121T090000Z-1", 1.0)
    assert [counts_of(work, budget=each) for each in (600.0, 5.0, 3.5, 0.5)] == [5, 5, 3, 1]
    assert counts_of(work, budget=0.0) == 1  # OSU and IMB have none
    assert counts_of(work, exact=True) == 1


def test_a_launch_that_takes_longer_is_made_less_often(work: WorkDirectory):
    leave_timed_session(work.sessions / "20261121T090000Z-1", 94.0)
    assert counts_of(work) == 1


def test_counts_are_told_and_planned():
    counts = {PLACE: 5, PLACE._replace(program="osu"): 1}
    (line,) = describe_launch_counts(counts)
    assert line == "5 launches, whose median is judged: mpicost on mpich-5_0_2 2x2"
    repeated = repeat_launches([planned(), planned(program="osu")], {PLACE: 5})
    assert [each.number for each in repeated] == [1, 2, 3, 4, 5, 1]
