"""The budget of a site: noise from ledger and store, costs from the sessions, and what is said of them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration import ledger
from postprocess.calibration.budget_text import format_budget, format_commands, is_better_spending
from postprocess.calibration.noise_sources import estimate_case_references, read_counted_trials
from postprocess.calibration.samples import collect_samples
from postprocess.commands.references.budget import advise_budget, report_budget
from postprocess.main import build_parser
from postprocess.model.reference import Prior
from postprocess.model.verdict import Verdict
from postprocess.results import launch_costs
from postprocess.results.launch_costs import WholeLaunch, measure_cost, measure_costs
from postprocess.results.store import StoreRow, write_session
from postprocess.stats.headline import summarise_trials
from postprocess.stats.planning.trial_allocation import (
    CalibrationSpending,
    KnownCase,
    LaunchCost,
    NoiseVariance,
)
from postprocess.stats.sessions import estimate_session_spread
from tests.support.factories.budget import ELAPSED, PLACE, SECONDS, entry, write_session_directory
from tests.support.factories.launch import CASES, leave, planned
from tests.support.factories.ledger import METHOD, launch
from tests.support.factories.record import end_record
from tests.support.faults import Declared, plants

SESSIONS = 12
BETWEEN, TRIAL = 0.02, 0.15  #: standard deviations


@pytest.fixture
def work(calibrated: Path, tmp_path: Path) -> WorkDirectory:
    """Calibrations of a noise that is known, for one test to vary."""
    shutil.copytree(calibrated, tmp_path / "home")
    return WorkDirectory(tmp_path / "home", tmp_path)


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work directory with such calibrations."""
    made = WorkDirectory(tmp_path_factory.mktemp("calibrated"), Path())
    random = np.random.default_rng(3)
    for day in range(1, SESSIONS + 1):
        name = f"202611{day:02d}T010000Z-1"
        rows = []
        for each in CASES:
            level = random.normal(0, BETWEEN)
            times = 1e-6 * np.exp(level + random.normal(0, TRIAL, 51))
            times[0] *= 30  # the one that is dropped
            summary = summarise_trials(times)
            rows.append(
                StoreRow(name, "2026-11-01T01:00:00Z", 1, each, Verdict.PASS, value=summary.steady,
                    summary=summary, t_max=times, late=[False] * 51, mode="calibrate")
            )  # fmt: skip
        write_session(made.store / f"{name}.parquet", rows)
        values = {row.case: float(row.value or 0) for row in rows}
        ledger.append_launches(made.root, name, [launch(values, day, name)])
        write_session_directory(made.sessions / name, [entry()])
    return made.root


def said(capsys) -> str:
    return " ".join(capsys.readouterr().out.split())


def run(work: WorkDirectory, report: Path | None = None, **wanted) -> int:
    known = {"system": None, "seconds": None, "see": None} | wanted
    return report_budget(work, *known.values(), report, Progress())


def advised(work: WorkDirectory, **wanted) -> dict:
    """The one advice of a budget, as it is written for programs."""
    report = work.root / "budget.json"
    run(work, report, **wanted)
    (advice,) = json.loads(report.read_text())["advice"]
    return advice


def test_the_noise_and_the_cost_that_the_calibrations_were_made_with(work, tmp_path, capsys):
    report = tmp_path / "budget.json"
    assert run(work, report) == 0
    told = json.loads(report.read_text())
    row = told["rows"][0]
    assert (row["program"], row["environment"], row["what"], row["cases"]) == (
        "mpicost", "mpich-5_0_2", "all", 4,
    )  # fmt: skip
    assert row["between"] == pytest.approx(BETWEEN, rel=0.4)
    assert TRIAL < row["trial"] < 2 * TRIAL  # the fastest quarter scatters more than all trials
    assert row["cost"]["start"] == pytest.approx(SECONDS - ELAPSED)
    assert row["cost"]["trial"] == pytest.approx(0.2)
    assert row["best"] == pytest.approx(np.sqrt(103) * row["trial"] / row["between"], rel=0.3)
    (advice,) = told["advice"]
    ways = advice["chosen"], advice["other"]
    assert {way["trials"] for way in ways} == {51, row["best"]}
    text = said(capsys)
    assert all(f"{way['launches']} launches of {way['trials']} trials" in text for way in ways)
    assert f"mpicost: {'; then '.join(advice['commands'])}" in text


def test_the_same_seconds_are_spent_both_ways_and_the_commands_are_the_better_ones(work):
    advice = advised(work, seconds=1500)
    chosen, other = advice["chosen"], advice["other"]
    for way in (chosen, other):
        assert 1500 - way["pass_seconds"] < way["launches"] * way["pass_seconds"] <= 1500
    assert chosen["sees"] <= other["sees"]
    assert advice["commands"] == [
        f"./plumbline calibrate --site mycluster --program mpicost --trials {chosen['trials']} "
        f"--launches {chosen['launches']}",
        f"./plumbline nightly --site mycluster --trials {chosen['trials']}",
    ]


def test_the_commands_are_commands(work):
    for command in advised(work)["commands"]:
        build_parser().parse_args(command.split()[1:])


def test_how_many_seconds_it_takes_to_see_something(work, tmp_path, capsys):
    report = tmp_path / "stdout"
    report.symlink_to(tmp_path / "budget.json")
    run(work, report, see=0.2)
    assert report.is_symlink()  # as /dev/stdout, which is not ours to replace
    chosen = json.loads(report.read_text())["advice"][0]["chosen"]
    assert chosen["sees"] <= 0.2 and chosen["launches"] >= 10
    capsys.readouterr()
    run(work, see=0.01)
    assert "no number of launches shows 1.0% in half of the cases" in said(capsys)


def test_what_is_too_few_to_assert_anything_is_not_advised(work, capsys):
    assert advised(work, seconds=100)["commands"] == []
    assert "mpicost: spend more, 10 launches take 5 min 06 s" in said(capsys)


def test_only_trials_of_launches_of_the_ledger_count(work):
    """One that is in the store alone failed, or was of another build."""
    name = "20261112T010000Z-1"
    keys = sorted(each.key for each in CASES)
    values = {(name, key, value) for each in ledger.read_ledger(work.root) if each.session == name
              for key, value in each.values.items()}  # fmt: skip
    path = work.store / f"{name}.parquet"
    found = list(read_counted_trials(path, values))
    assert [key for key, _ in found] == keys and {times.size for _, times in found} == {50}
    assert all(times.max() < 1e-5 for _, times in found)  # without the first trial
    assert list(read_counted_trials(path, {(name, keys[0], 1.0)})) == []
    assert list(read_counted_trials(path.with_name("gone.parquet"), values)) == []


@plants("use", "fewer launches than tell a spread", "`references budget`", "", 2,
        "no case has 5 launches whose ")  # fmt: skip
def test_too_few_launches_are_refused_in_one_line(work, declared: Declared):
    for each in ledger.read_ledger(work.root)[:-4]:
        ledger.append_launches(work.root, each.session, [])
    with declared.raises(UsageError, match=r"\./plumbline calibrate"):
        run(work)


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        ("store/*.parquet", "the store has none of their trials"),
        ("sessions/*/summary.json", "no session tells what their launches took"),
    ],
)
def test_without_their_trials_or_times_cases_are_left_out_and_told(work, capsys, gone, told):
    for path in work.root.glob(gone):
        path.unlink()
    with pytest.raises(UsageError, match="no case has 5 launches"):
        run(work)
    assert f"4 cases left out: {told}" in said(capsys)


@plants("files", "a damaged session", "the store, in `references budget`", "", 2, "is damaged")
def test_a_damaged_store_is_no_noise(work, declared: Declared):
    path = max(work.store.glob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-9])
    with declared.raises(UsageError):
        run(work)


@plants("use", "two sites in one ledger", "`references budget`", "", 2,
        "has cluster, local; choose by --site")  # fmt: skip
def test_of_two_sites_one_is_to_be_chosen(work, declared: Declared):
    other = ("cluster", *CASES[0].key.split(":")[1:3])
    cases = {type(CASES[0]).from_key("cluster:" + CASES[0].key.partition(":")[2]): 1e-6}
    ledger.append_launches(work.root, "z", [launch(cases, 20, "z", place=other)])
    with declared.raises(UsageError):
        run(work)
    assert run(work, system="local") == 0
    with pytest.raises(UsageError, match="no launch of site elsewhere"):
        run(work, system="elsewhere")


def test_simulated_time_has_no_noise(work):
    for each in ledger.read_ledger(work.root):
        ledger.append_launches(work.root, each.session, [])
    ledger.append_launches(
        work.root, "z", [launch(1e-6, 20, "z", exact=True, facts={"method": METHOD})]
    )
    with pytest.raises(UsageError, match="no launch; "):
        run(work)


def test_costs_are_of_whole_launches_that_ended_well(tmp_path: Path):
    part = write_session_directory(tmp_path / "a", [entry(9.0, cases=1)])
    failed = write_session_directory(tmp_path / "b", [entry(9.0, outcome="crashed")])
    usual = [write_session_directory(tmp_path / name, [entry()]) for name in "cde"]
    nothing = tmp_path / "nothing"
    found = measure_costs([part, failed, *usual, nothing])
    assert found[PLACE] == LaunchCost(pytest.approx(SECONDS - ELAPSED), pytest.approx(ELAPSED / 51))
    assert measure_costs([failed, nothing]) == {}


def test_the_starts_of_a_job_of_osu_share_its_time_and_have_no_trials(tmp_path: Path):
    starts = [entry(40.0, "a job", program="osu", start=f"osu-{n}", cases=7) for n in range(3)]
    session = write_session_directory(tmp_path / "a", [*starts, entry(9.0, "other", program="imb")])
    osu, imb = ((*PLACE[:2], program, *PLACE[3:]) for program in ("osu", "imb"))
    assert measure_costs([session]) == {osu: LaunchCost(40.0), imb: LaunchCost(9.0)}


def test_a_launch_whose_records_are_gone_costs_nobody_knows_what(tmp_path: Path):
    session = write_session_directory(tmp_path / "a", [entry()])
    records = planned(trials=51).records(session)
    for text in ('{"record": "case"}\n', "no JSON\n", '["end"]\n', ""):
        records.write_text(text)
        assert launch_costs.read_elapsed_seconds(records) is None
    records.unlink()
    assert measure_costs([session]) == {}


def test_a_launch_of_a_choice_of_cases_says_nothing_of_a_whole_one():
    part = WholeLaunch(PLACE, 1, 9.0, 2.0, 51)
    some = [WholeLaunch(PLACE, 4, 30.0, 10.2, 51), part, part, part]
    assert measure_cost(some) == LaunchCost(pytest.approx(19.8), pytest.approx(0.2))


def test_a_start_is_never_shorter_than_nothing():
    assert measure_cost([WholeLaunch(PLACE, 4, 10.0, 10.2, 51)]).start == 0.0


def spending(trials: int, launches: int, seconds: float, sees: float | None) -> CalibrationSpending:
    """A calibration whose nights take one launch."""
    return CalibrationSpending(trials, launches, seconds, sees, (1, 1), seconds)


def test_the_better_way_sees_more_and_with_the_same_sight_is_cheaper_each_night():
    way = spending(51, 20, 30.0, 0.10)
    assert is_better_spending(spending(31, 30, 20.0, 0.09), way)
    assert is_better_spending(spending(31, 30, 20.0, 0.1001), way)  # the same, as it is shown
    assert not is_better_spending(spending(31, 30, 20.0, 0.11), way)
    assert not is_better_spending(spending(101, 10, 60.0, 0.10), way)
    assert not is_better_spending(spending(11, 9, 5.0, None), way)
    assert not is_better_spending(spending(11, 9, 5.0, None), spending(51, 2, 30.0, None))
    assert is_better_spending(way, spending(11, 9, 5.0, None))


def test_the_launches_of_a_night_follow_the_budget_of_the_plan(work, capsys):
    name = f"202611{SESSIONS:02d}T010000Z-1"
    several = planned(trials=51, budget=8 * SECONDS)
    leave(work.sessions / name, several, [{"record": "run"}, {**end_record(1), "elapsed": ELAPSED}])
    assert measure_costs([work.sessions / name])[PLACE].budget == 8 * SECONDS
    advice = advised(work, seconds=20 * SECONDS)
    (least, most), night = advice["chosen"]["night_launches"], advice["chosen"]["night_seconds"]
    assert 1 < least == most
    assert night == pytest.approx(most * advice["chosen"]["pass_seconds"])
    assert f"{most} launches of each layout a night" in said(capsys)


def test_the_command_line():
    made = build_parser().parse_args(["references", "budget", "--seconds", "60", "--site", "x"])
    assert (made.seconds, made.see, made.site) == (60, None, "x")
    with pytest.raises(UsageError, match="not allowed with"):
        build_parser().parse_args(["references", "budget", "--seconds", "60", "--see", "10"])


@pytest.mark.parametrize(("restless", "told"), [(0.0, False), (0.03, True)])
def test_a_budget_says_where_other_days_help_and_more_launches_do_not(restless: float, told: bool):
    known = KnownCase(CASES[0], NoiseVariance(0.0004, 0.01), 20)
    if restless:
        known = replace(known, session=Prior(restless, 9.0))
    costs = {known.place: LaunchCost(1.0, 0.1)}
    advice = advise_budget([known], costs, None, None)
    lines = format_budget(advice, "local")
    assert (advice.days is not None) == told
    found = any("more launches do not help here, more nights and other days do" in e for e in lines)
    assert found == told
    if told:
        spread = advise_budget([known], costs, None, advice.days.sees + 0.01)
        assert spread.chosen.sessions == 5
        assert "--at-most" in format_commands(spread, "local")[0]


@pytest.mark.parametrize(("each", "apart"), [(1, False), (4, True)])
def test_sessions_are_told_from_launches_where_they_have_several(each: int, apart: bool):
    random = np.random.default_rng(1)
    launches = [
        launch(
            {CASES[0]: 1e-6 * float(np.exp(state + 0.01 * random.normal()))},
            ended_utc=f"2026-11-{day:02d}T01:{number:02d}:00Z",
        )
        for day in range(1, 7)
        for state in [0.1 * random.normal()]
        for number in range(each)
    ]
    (reference,) = estimate_case_references(collect_samples(launches)).values()
    assert (reference.sessions, reference.launches) == (6, 6 * each)
    assert (reference.launches > reference.sessions) == apart
    assert (
        0.02 < estimate_session_spread(reference) < 0.3
    )  # of one day; half of the variance is the days'
