"""What of a comparison fits into its time, and the command that measures it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from postprocess.features.compare.data import CaseValue, ComparisonPass, LaunchValues, SharedCase
from postprocess.features.compare.measure.fitting import (
    KnownLaunch,
    Part,
    SideCost,
    describe_misfit,
    drop_options,
    find_fitting,
    foresee_cost,
    list_parts,
    read_pass_cost,
    replace_options,
)
from postprocess.model.case import LaunchPlace
from postprocess.results.launch_costs import Job, MeasuredJob, list_jobs
from tests.support.factories.comparison import failing
from tests.support.factories.launch import planned


def cases_of(program: str, layout: str, *routines: str) -> frozenset[SharedCase]:
    return frozenset(SharedCase("cpu", program, name, "warm-barrier", layout, 8) for name in routines)


SMALL = cases_of("mpicost", "2x2", "control_timer", "pingpong", "bcast", "gather", "scan_sum")
LARGE = cases_of("mpicost", "4x4", "control_timer", "bcast", "gather", "scan_sum")
OSU, IMB = cases_of("osu", "2x2", "bcast"), cases_of("imb", "2x2", "bcast")
SIDE = SideCost(tuple(KnownLaunch(cases, 6.0) for cases in (IMB, LARGE, OSU, SMALL)), beside=0.0)


@pytest.mark.parametrize(
    ("seconds", "part"),
    [
        (10 * 18.0, Part(("mpicost", "osu"))),
        (10 * 17.9, Part(("mpicost",))),
        (10 * 11.9, Part(("mpicost",), (2,))),
        (10 * 5.9, Part(("mpicost",), (2,), ("pingpong", "bcast", "gather"))),
        (10 * 3.0, Part(("mpicost",), (2,), ("pingpong",))),
        (10 * 2.9, None),
    ],
)
def test_programs_are_left_out_first_then_process_counts_then_routines(seconds: float, part: Part | None):
    """Of a launch of 6 s with five cases, the first second starts it; the control stays."""
    assert find_fitting([SIDE], 1.25 * seconds, 10) == part


def test_a_part_is_chosen_by_options_and_keeps_the_controls():
    part = Part(("mpicost",), (2,), ("pingpong",))
    assert part.options == {"--program": "mpicost", "--processes": "2", "--routine": "pingpong"}
    assert {case.label for case in SMALL if part.takes(case)} == {"control_timer", "pingpong"}
    assert not any(map(part.takes, (*OSU, *LARGE)))


def test_there_is_nothing_to_leave_out_of_one_routine():
    assert not list(list_parts(cases_of("osu", "2x2", "bcast")))


COMMAND = (
    "./plumbline",
    "compare",
    "a",
    "b",
    "--seconds",
    "60",
    "--set-env",
    "a:X=1 2",
    "--program=mpicost,osu",
)


def test_the_command_that_fits_keeps_all_else_that_the_user_said():
    about = "a pair takes about 10 s"
    side = SideCost((KnownLaunch(OSU, 22.0), KnownLaunch(SMALL, 4.0)))
    said = describe_misfit(COMMAND, 60, about, 24.0, 7, [side])
    assert said == (
        "--seconds 60: a pair takes about 10 s; everything fits into --seconds 210; this fits: ./plumbline "
        "compare a b --seconds 60 --set-env 'a:X=1 2' --program mpicost"
    )
    said = describe_misfit(COMMAND, 50, about, 60.0, 7, [SIDE, SIDE])
    assert said.endswith(
        "; the shortest: ./plumbline compare a b --set-env 'a:X=1 2' --program mpicost --processes 2 "
        "--routine pingpong --seconds 60"
    )
    assert describe_misfit(COMMAND, 60, about, 60.0, 7, []).endswith("everything fits into --seconds 530")


def test_options_are_replaced_however_they_were_given():
    command = ["compare", "--program", "osu", "--bytes=8", "a"]
    assert drop_options(command, ["--program", "--bytes"]) == ["compare", "a"]
    assert replace_options(command, {"--bytes": "9"}) == ["compare", "--program", "osu", "a", "--bytes", "9"]


def test_a_pass_tells_what_its_launches_took_and_what_is_beside_them():
    said = {each.key: CaseValue(1e-6, "s") for each in SMALL}
    skipped = {each.key: failing("skipped") for each in OSU}
    done = ComparisonPass(0, 0, "old", "s", 9.0, (LaunchValues("l", {}, {**said, **skipped}, 4.0),))
    cost = read_pass_cost(done)
    assert cost and (cost.cases, cost.beside) == (SMALL, 5.0)
    assert cost.estimate(SMALL) == pytest.approx(9.0)
    assert read_pass_cost(replace(done, launches=(LaunchValues("l", {}, said),))) is None


def list_one_job() -> Job:
    return list_jobs([planned()])[0]


def test_a_cost_is_foreseen_by_earlier_sessions_else_by_another_side():
    job = list_one_job()
    cases = frozenset(SharedCase.of(case) for case in job.launches[0].cases)
    place = LaunchPlace.of_launch(job.launches[0])
    told = foresee_cost([job], {place: MeasuredJob(job, 7.0)}, [])
    assert told and told.launches == (KnownLaunch(cases, 7.0),)
    more = [replace(case, bytes=case.bytes + 8) for case in job.launches[0].cases]
    twice = Job((replace(job.launches[0], cases=(*job.launches[0].cases, *more)),))
    told = foresee_cost([job], {place: MeasuredJob(twice, 7.0)}, [])
    assert told and told.launches == (KnownLaunch(cases, 4.0),)  # a second starts it
    other = SideCost((KnownLaunch(cases, 3.0), KnownLaunch(IMB, 5.0)), beside=4.0)
    seen = foresee_cost([job], {}, [other])
    assert seen and (seen.launches, seen.beside) == ((KnownLaunch(cases, 3.0),), 4.0)
    assert foresee_cost([job], {}, [SideCost((KnownLaunch(IMB, 5.0),))]) is None
