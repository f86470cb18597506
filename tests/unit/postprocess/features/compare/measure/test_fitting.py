"""What of a comparison fits into its time, and the command that measures it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from postprocess.base.workdir import WorkDirectory
from postprocess.features.compare import data
from postprocess.features.compare.data import (
    NEW,
    OLD,
    CaseValue,
    ComparisonHeader,
    ComparisonPass,
    LaunchValues,
    SharedCase,
)
from postprocess.features.compare.measure.bench import ComparisonBench, TooFewSecondsError
from postprocess.features.compare.measure.fitting import (
    KeptTrial,
    KnownLaunch,
    Part,
    SideCost,
    describe_misfit,
    drop_options,
    find_fitting,
    find_trial,
    foresee_cost,
    keep_trials,
    list_parts,
    price_pass,
    read_pass_cost,
    remove_trials,
    replace_options,
)
from postprocess.features.compare.measure.passes import describe_failures
from postprocess.model.case import Case, LaunchPlace
from postprocess.results.launch_costs import Job, MeasuredJob, list_jobs
from tests.support.factories import comparison
from tests.support.factories.comparison import failing
from tests.support.factories.launch import planned


def cases_of(program: str, layout: str, *routines: str) -> frozenset[SharedCase]:
    return frozenset(SharedCase("cpu", program, name, "warm-barrier", layout, 8) for name in routines)


SMALL = cases_of("mpicost", "2x2", "control_timer", "pingpong", "bcast", "gather", "scan_sum")
LARGE = cases_of("mpicost", "4x4", "control_timer", "bcast", "gather", "scan_sum")
OSU, IMB = cases_of("osu", "2x2", "bcast"), cases_of("imb", "2x2", "bcast")
SIDE = SideCost(tuple(KnownLaunch(cases, 6.0) for cases in (IMB, LARGE, OSU, SMALL)), beside=0.0)


@pytest.mark.parametrize(("seconds", "building", "later"), [(40.0, 35.0, 6.0), (6.0, 0.7, 6.0)])
def test_each_pass_looks_at_what_is_built(seconds: float, building: float, later: float):
    """Blocks took up to 30% longer than was foreseen, as if they built nothing at all."""
    assert price_pass(seconds, building) == later


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
    said = {case.key: CaseValue(1e-6, "s") for case in SMALL}
    skipped = {case.key: failing("skipped") for case in OSU}
    done = ComparisonPass(0, 0, "old", "s", 9.0, (LaunchValues("l", {}, {**said, **skipped}, 4.0),))
    cost = read_pass_cost(done)
    assert cost and (cost.cases, cost.beside) == (SMALL, 5.0)
    assert cost.estimate(SMALL) == pytest.approx(9.0)
    assert read_pass_cost(replace(done, launches=(LaunchValues("l", {}, said),))) is None


def test_a_cost_is_foreseen_by_earlier_sessions_else_by_another_side():
    job = list_jobs([planned()])[0]
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


BCAST, GATHER, BARRIER = (f"cpu/mpicost/{each}/warm-barrier/2x2/8" for each in ("bcast", "gather", "barrier"))
WORDS = ("./plumbline", "compare", "a", "b", "--seconds", "60")
HEADER = replace(comparison.HEADER, seconds=60, command=WORDS)


def make_trial(side: str, keys: Sequence[str], verdict: str = "", seconds: float = 8.0) -> data.ComparisonPass:
    said = failing(verdict, "signal 11") if verdict else CaseValue(1e-6, "s")
    launch = LaunchValues("l", {}, dict.fromkeys(keys, said), seconds)
    return data.ComparisonPass(0, 0, side, "s", seconds + 2.0, (launch,))


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The folder of a comparison of two routines that was refused after both trial runs."""
    path = tmp_path / "kept" / data.FILE
    effects = data.ReferenceEffects("mpich-4_3_2", holding=2)
    for record in (HEADER, make_trial(OLD, [BCAST, GATHER]), effects, make_trial(NEW, [BCAST, GATHER])):
        data.append_record(path, record)
    assert keep_trials(path) == path.with_name(data.TRIAL) and not path.exists()
    return path.parent


def find(folder: Path, name: str, *keys: str, header: ComparisonHeader = HEADER) -> KeptTrial | None:
    return find_trial([folder], header, name, keys)


def test_a_part_of_the_old_side_is_taken_with_its_part_of_the_time(kept: Path):
    longer = replace(HEADER, seconds=90, command=(*WORDS[:-1], "90", "--routine", "bcast"))
    found = find(kept, OLD, BCAST, header=longer)
    assert found and found.effects is None
    assert [list(launch.cases) for launch in found.done.launches] == [[BCAST]]
    assert found.done.seconds == 2.0 + 1.0 + 7.0 / 2


def test_the_new_side_is_taken_whole_for_what_it_says_of_references(kept: Path):
    found = find(kept, NEW, BCAST, GATHER)
    assert found and found.effects and found.effects.holding == 2
    assert find(kept, NEW, BCAST) is None


@pytest.mark.parametrize(
    "other",
    [
        replace(HEADER, site="another"),
        replace(HEADER, command=(*WORDS, "--set-env", "a:X=1")),
        replace(HEADER, command=(*WORDS, "--trials", "5")),
        replace(HEADER, old=replace(HEADER.old, environment="mpich-4_3_1")),
        replace(HEADER, old=replace(HEADER.old, set_env={"X": "1"})),
    ],
)
def test_what_would_be_launched_otherwise_is_not_taken(kept: Path, other: ComparisonHeader):
    assert find(kept, OLD, BCAST, header=other) is None


def test_what_lacks_a_case_or_failed_is_not_taken(kept: Path, tmp_path: Path):
    assert find(kept, OLD, BCAST, BARRIER) is None
    path = tmp_path / "failed" / data.FILE
    for record in (HEADER, make_trial(OLD, [BCAST], "crashed")):
        data.append_record(path, record)
    keep_trials(path)
    assert find(path.parent, OLD, BCAST) is None


def test_a_comparison_that_fits_has_nothing_in_its_folder_but_its_own(kept: Path):
    remove_trials(kept / data.FILE)
    remove_trials(kept / data.FILE)
    assert not any(kept.iterdir())


def test_a_damaged_one_costs_no_comparison(kept: Path):
    (kept / data.TRIAL).write_text("{")
    assert find(kept, OLD, BCAST) is None


CASE = Case("s", "cpu", "mpich-4_3_2", "mpicost", "bcast", 0, "warm", "barrier", 2, 2, 8)


@pytest.fixture
def bench(work: WorkDirectory, progress) -> ComparisonBench:
    context = SimpleNamespace(work=work, progress=progress)
    path = work.root / "compare" / "now" / data.FILE
    data.append_record(path, HEADER)
    return ComparisonBench(context, HEADER, path)  # type: ignore[arg-type]


def plan(environment: str, seconds: float | None = None):
    return [replace(planned(), environment=environment, cases=(replace(CASE, environment=environment),))]


def test_a_comparison_is_refused_after_its_first_trial_run_if_the_other_side_takes_as_long(bench):
    """7 rounds of 2 x 10 s are far more than 60 s; of 2 x 4 s they are not clearly more."""
    plans = {NEW: plan("mpich-5_0_2")}
    key = SharedCase.of(CASE).key
    bench.require_time(plans)  # nothing is known
    data.append_record(bench.path, make_trial(OLD, [key], seconds=2.0))
    bench.require_time(plans)
    data.append_record(bench.path, make_trial(OLD, [key], seconds=8.0))
    with pytest.raises(TooFewSecondsError, match="takes about 20 s, and the least is 6 and a trial run"):
        bench.require_time(plans)


def test_a_trial_run_by_which_the_time_would_not_suffice_is_made_anew(bench, work: WorkDirectory):
    key = SharedCase.of(CASE).key
    path = work.root / "compare" / "before" / data.FILE
    for record in (HEADER, make_trial(OLD, [key])):
        data.append_record(path, record)
    keep_trials(path)
    plans = {OLD: plan("mpich-4_3_2"), NEW: plan("mpich-5_0_2")}
    assert not bench.take_trial(0, OLD, plans[OLD], plans)
    bench.header = replace(HEADER, seconds=600)
    assert bench.take_trial(0, OLD, plans[OLD], plans)
    assert [each.side for each in bench.stored.passes] == [OLD]


def test_what_failed_in_a_trial_run_is_told_once_with_the_command_that_runs_it_again():
    crashed = replace(failing("crashed", "signal 11"), rerun="./plumbline run")
    said = {BCAST: crashed, GATHER: crashed, BARRIER: failing("skipped", "no program")}
    (line,) = describe_failures([LaunchValues("l", {}, said)])
    assert line == (
        "bcast 8 B (2x2 mpicost warm-barrier) and 1 more case: crashed: signal 11; again: ./plumbline run"
    )
