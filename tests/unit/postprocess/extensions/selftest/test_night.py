"""The self-test without a machine: what is planted when, what is kept, and how it is scored."""

import json
import math
import re
from collections import Counter
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from scipy.special import stdtr

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.calibration import ledger, update
from postprocess.extensions.selftest import command
from postprocess.extensions.selftest import command as selftest_session
from postprocess.extensions.selftest import data as selftest_rows
from postprocess.extensions.selftest import night as selftest_night
from postprocess.extensions.selftest import page as selftest_page
from postprocess.extensions.selftest.data import (
    CaseNight,
    FinishedNight,
    InjectionNight,
    SelftestHeader,
    schedule_nights,
)
from postprocess.extensions.selftest.night import (
    SelftestBench,
    SelftestDemand,
    calibrate_bench,
    describe_bursts,
    has_enough_references,
    take_references,
)
from postprocess.extensions.selftest.score import (
    CHANCE,
    SURE,
    FlatBandResult,
    InjectionScore,
    SelftestScores,
    is_too_many_missed,
    predict_verdict,
    score_nights,
)
from postprocess.judging.common_cause import COMMON_CASES
from postprocess.main import main
from postprocess.model.case import Case
from postprocess.model.plan import PlannedLaunch, list_places, read_plan
from postprocess.model.reference import Prior, Reference
from postprocess.model.routines.mpicost import CONTROLS, ROUTINES
from postprocess.model.session import Selection
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.references.catalog import load_catalog
from postprocess.report.rendering import render_markdown
from postprocess.session.lifecycle import injections
from postprocess.stats.band import LARGE_BYTES, SLOW_ALPHA, compute_band
from postprocess.stats.detection import GROSS
from postprocess.stats.sessions import SESSION_GAP
from tests.support.factories.launch import case as a_case
from tests.support.factories.launch import planned
from tests.support.factories.ledger import launch
from tests.support.faults import Declared, plants
from tests.support.plumbline_runner import ROOT

SIZES = {
    "barrier": [0],
    "bcast": [8, 10_000, 1_000_000],
    "alltoall": [8, 1_000, 10_000, 100_000],
    "allreduce_sum": [8, 1_000_000],
    "pingpong": [8, 10_000, 1_000_000],
}
MPIS = ("a-1", "b-2", "c-3")
CANNOT = {"tournament"}  # of ./plumbline links, which holds nothing against references


def quick(environments: tuple[str, ...] = MPIS) -> list[Case]:
    return sorted(
        a_case(routine, size, int(routine == "pingpong"), environment=name)
        for name in environments
        for routine, sizes in SIZES.items()
        for size in sizes
    )


def a_bench(**context: Any) -> SelftestBench:
    return SelftestBench(SimpleNamespace(**context), Selection(Path("site.py")))


QUIET = Progress(Console(quiet=True))


# --- plants


def test_every_routine_of_mpicost_can_be_delayed():
    """A new routine must be entered, or nothing of it would be a target. Controls call no MPI."""
    source = (ROOT / "suite" / "src" / "routines.c").read_text()
    routines = re.findall(r'^    \{"(\w+)", ', source, re.M)
    assert set(SIZES) == set(command.QUICK) < set(routines)
    composed = {routine.name for routine in ROUTINES if routine.on_request}
    cannot = CANNOT | composed | set(CONTROLS)
    assert {name for name in routines if not injections.list_mpi_functions(name)} == cannot
    for name in ("allreduce_max", "allreduce_sum"):
        assert injections.list_mpi_functions(name) == ("MPI_Allreduce",)


def test_a_plant_slows_what_calls_the_same_function_with_messages_of_its_sizes():
    everything = [*quick(), a_case("allreduce_max", 8, environment="a-1")]

    def slowed(*planted: str) -> set[tuple[str, str, int]]:
        found = filter(injections.Injection(*planted).slows, everything)
        return {(case.environment, case.routine, case.bytes) for case in found}

    sums = {("a-1", "allreduce_sum", 8), ("a-1", "allreduce_sum", 1_000_000)}
    assert slowed("a-1", "slower-5", "allreduce_sum") == {*sums, ("a-1", "allreduce_max", 8)}
    expected = {("b-2", "bcast", 10_000), ("b-2", "bcast", 1_000_000)}
    assert slowed("b-2", "large", "bcast") == expected
    every = {(e.environment, e.routine, e.bytes) for e in everything if e.environment == "c-3"}
    assert slowed("c-3", "everything", "") == every
    assert not injections.Injection("a-1", "everything", "").slows(a_case("control_timer", environment="a-1"))
    assert not injections.Injection("a-1", "everything", "").slows(a_case(environment="a-1", program="osu"))


@pytest.mark.parametrize("name", injections.INJECTION_KINDS)
def test_the_library_is_told_what_is_planted(name: str):
    plant = injections.INJECTION_KINDS[name]
    told = injections.Injection("a-1", name, "" if plant.everything else "bcast").variables(
        Path("/opt/mpicost")
    )
    assert told.pop("LD_PRELOAD") == "/opt/mpicost/lib/libdelay.so"
    numbers = [float(told[f"PLUMBLINE_DELAY_{each}"]) for each in ("FRACTION", "LAUNCHES", "CALLS")]
    assert numbers == [plant.fraction, plant.launches, plant.calls] and plant.fraction > 0
    assert told["PLUMBLINE_DELAY_ROUTINES"] == ("all" if plant.everything else "MPI_Bcast")
    assert told.get("PLUMBLINE_DELAY_LEAST") == (str(LARGE_BYTES) if name == "large" else None)
    assert told.get("PLUMBLINE_DELAY_RANK") == ("1" if name == "one-rank" else None)


def test_of_a_ping_pong_one_rank_is_delayed():
    told = injections.Injection("a-1", "slower-5", "pingpong").variables(Path("/p"))
    assert told["PLUMBLINE_DELAY_RANK"] == "0"
    assert told["PLUMBLINE_DELAY_ROUTINES"] == "MPI_Recv,MPI_Send"


def test_every_environment_of_every_night_has_the_library_and_only_the_planted_one_a_delay():
    bench = a_bench()
    bench.prefixes = {name: Path("/opt") / name for name in MPIS}
    for plantings in ((), (injections.Injection("b-2", "slower-5", "bcast"),)):
        selection = bench.planting(plantings)
        assert selection.choice["planted"] == sorted(MPIS)
        for name, told in selection.set_env.items():
            assert told["LD_PRELOAD"] == f"/opt/{name}/lib/libdelay.so"
            delayed = float(told["PLUMBLINE_DELAY_LAUNCHES"]) > 0
            assert delayed == (bool(plantings) and name == "b-2")


def test_what_is_planted_in_which_words():
    assert injections.list_unknown_injections(["spikes", "x", "slower-5"]) == ["x"]
    # 10 of 50 trials, 5 removed
    assert injections.INJECTION_KINDS["spikes"].intended == pytest.approx(4 * 5 / 45)
    found = [name for name, plant in injections.INJECTION_KINDS.items() if not plant.must_show]
    assert found == ["some-launches"]
    expected = ["allreduce_sum", "alltoall", "bcast", "pingpong"]
    assert injections.list_injectable_routines(quick(), LARGE_BYTES) == expected
    assert "MPI_Barrier" in injections.FUNCTIONS["barrier"]


# --- the order of nights


@pytest.mark.parametrize("environments", [MPIS[:1], MPIS[:2], MPIS, (*MPIS, "d-4")])
@pytest.mark.parametrize("times", [1, 3, 10])
def test_every_plant_comes_as_often_as_asked_and_over_all_mpis(environments, times: int):
    nights = schedule_nights(quick(environments), list(injections.INJECTION_KINDS.values()), times, 7, seed=1)
    assert [night.number for night in nights] == list(range(1, len(nights) + 1))
    assert sum(not night.plantings for night in nights) == 7
    plantings = [injection for night in nights for injection in night.plantings]
    come = Counter(injection.plant for injection in plantings)
    assert come.keys() == injections.INJECTION_KINDS.keys()
    assert all(number >= times for number in come.values())
    assert all(come[name] == times for name in injections.INJECTION_KINDS if name != "everything")
    for night in nights:
        assert len({injection.environment for injection in night.plantings}) == len(night.plantings)
        kinds = {injection.plant for injection in night.plantings}
        assert "everything" not in kinds or kinds == {"everything"}
        routines = [injection.routine for injection in night.plantings if injection.routine]
        assert len(set(routines)) == len(routines)  # each plant has as many as there are environments, or more
    if times == 10:
        where = Counter((injection.plant, injection.environment) for injection in plantings)
        assert min(where[plant, name] for plant in injections.INJECTION_KINDS for name in environments) >= 2
        of = {(injection.plant, injection.routine) for injection in plantings if injection.plant == "slower-10"}
        assert len(of) == len(SIZES)


def test_where_routines_are_too_few_each_comes_as_often_as_the_others():
    cases = [case for case in quick() if case.routine in ("bcast", "alltoall")]
    nights = schedule_nights(cases, [injections.INJECTION_KINDS["slower-10"]], 12, 0, seed=1)
    for night in nights:
        assert {injection.routine for injection in night.plantings} == {"bcast", "alltoall"}
    come = Counter(injection.routine for night in nights for injection in night.plantings)
    assert come == {"bcast": 6, "alltoall": 6}


def test_all_plants_of_a_night_are_too_few_for_one_cause():
    """Else none of a night's cases would be measured again, and the night would be another than at a site."""
    cases = quick()
    for night in schedule_nights(cases, list(injections.INJECTION_KINDS.values()), 10, 0, seed=5):
        if {injection.plant for injection in night.plantings} == {"everything"}:
            continue
        targets = [case for case in cases for planting in night.plantings if planting.slows(case)]
        assert 0 < len(targets) < COMMON_CASES


def test_the_order_follows_from_the_seed():
    plants = list(injections.INJECTION_KINDS.values())
    one, same, other = (schedule_nights(quick(), plants, 2, 5, seed) for seed in (1, 1, 2))
    assert one == same
    assert one != other


# --- the references and the plan


PLAN = [planned()]


def references_of(root: Path, launches: int, by_hand: dict[str, Any]) -> Path:
    """A folder with references of so many launches with these options."""
    days = range(1, launches + 1)
    update.update_references(root, [launch(1.0, day, by_hand=by_hand) for day in days])
    return root


SHELL = {"shell": {"UCX_TLS": "tcp"}}


@pytest.mark.parametrize(
    ("launches", "by_hand", "asked", "good"),
    [
        (10, {}, {}, True),
        (9, {}, {}, False),
        (10, {"oversubscribe": True}, {}, False),
        (10, {"set_env": {"A": "1"}}, {}, False),
        (10, SHELL, SHELL, True),
        (10, SHELL, {}, False),
    ],
)
def test_references_are_enough_if_they_are_of_many_launches_with_the_same_options(
    tmp_path: Path, launches: int, by_hand: dict[str, Any], asked: dict[str, Any], good: bool
):
    plan = [planned(by_hand=asked)]
    root = references_of(tmp_path, launches, by_hand)
    assert has_enough_references(load_catalog([root], list_places(plan)), plan, 10) is good
    assert not has_enough_references(load_catalog([tmp_path / "none"], list_places(plan)), plan, 1)


@plants("references", "references without the library of the self-test", "`selftest --references`", "",
        2, "has not 10 launches of each case with the idle library")  # fmt: skip
def test_references_with_options_by_hand_that_were_asked_for_are_refused(tmp_path, declared):
    def took(by_hand: dict[str, Any]) -> str:
        root = references_of(tmp_path / str(len(by_hand)), 10, by_hand)
        request = SimpleNamespace(references=root)
        context = SimpleNamespace(reference_roots=[root], request=request, progress=None)
        return take_references(a_bench(**vars(context)), PLAN, demand)

    demand = SelftestDemand(tmp_path / "output", ("slower-5",), 1, 1, 20)
    assert took({}).endswith(", 10 sessions")  # the bench of this test loads no library
    with declared.raises(UsageError):
        took({"oversubscribe": True})


def test_references_of_one_burst_are_told_as_such(tmp_path: Path):
    update.update_references(tmp_path, [launch(1.0, 1) for _ in range(10)])
    told = describe_bursts(load_catalog([tmp_path], list_places(PLAN)))
    assert told == "10 launches, of one burst, which knows no other hours"


@pytest.fixture
def slept(monkeypatch) -> list[float]:
    """How long each pause would have been."""
    found: list[float] = []
    monkeypatch.setattr(selftest_session.time, "sleep", found.append)
    return found


@pytest.mark.parametrize(("spread", "there"), [(0.0, 0), (60.0, 0), (60.0, 2)])
def test_bursts_are_a_session_apart_if_time_is_given_and_those_that_are_there_count(
    tmp_path: Path, monkeypatch, slept: list[float], spread: float, there: int
):
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    asked: list[int] = []
    for number in range(there):
        ledger.append_launches(tmp_path, f"2026{number}", [launch(session=f"2026{number}")])

    def measure(_, selection: Selection) -> tuple[Any, list, list]:
        asked.append(selection.launches)
        return SimpleNamespace(name=f"burst{len(asked)}", directory=tmp_path), [], []

    def collect(opened: Any, directory: Path, finished: Any) -> list[Any]:
        return [launch(session=opened.session, ended_utc=now)]

    monkeypatch.setattr(ledger, "collect_launches", collect)
    bench = a_bench(progress=QUIET)
    monkeypatch.setattr(bench, "measure", measure)
    demand = SelftestDemand(tmp_path, (), 1, 1, launches=7, sessions=3, spread=spread)
    calibrate_bench(bench, tmp_path / "references", demand)
    assert asked == [3, 2, 2][there:]
    assert len(ledger.read_ledger(tmp_path)) == 3
    pauses = 2 if spread and not there else 0  # two bursts of long ago need no pause
    assert len(slept) == pauses
    assert all(SESSION_GAP - 5 < value < SESSION_GAP + 5 for value in slept)


def test_nights_are_spread_over_the_time_that_is_given(tmp_path: Path, slept: list[float]):
    bench = a_bench(progress=QUIET)
    bench.night = lambda one: night(one.number, row())  # type: ignore[method-assign]
    nights = [InjectionNight(number) for number in (1, 2, 3)]
    path = tmp_path / selftest_rows.FILE
    selftest_session.run_nights(bench, nights, [], path, spread=3000.0)
    assert slept == [pytest.approx(1000, abs=60), pytest.approx(2000, abs=60)]  # since the first
    slept.clear()
    selftest_session.run_nights(bench, nights, [], path)
    assert slept == []


def test_a_plan_that_is_known_has_options_by_hand_records_and_tokens_of_each_session(tmp_path, monkeypatch):
    """The library counts as set by hand, what it delays does not. Records of another session are foreign."""
    made: list[Selection] = []

    def make_plan(_, selection: Selection) -> list[PlannedLaunch]:
        made.append(selection)
        return [one]

    one = planned(token="of the first session", by_hand={"set_env": {"OF": "the first session"}})
    one = replace(one, options=("--trials=5", f"--output={one.records(tmp_path / '0')}", "--settle=0"))
    monkeypatch.setattr(selftest_night, "make_plan", make_plan)
    bench, plain, tokens = a_bench(), Selection(Path("site.py")), {one.token}
    bench.prefixes = {"mpich-5_0_2": Path("/p")}
    library = {"set_env": {"LD_PRELOAD": "/p/lib/libdelay.so"}}
    planting = bench.planting([injections.Injection("mpich-5_0_2", "slower-5", "bcast")])
    more = (replace(plain, oversubscribe=True), {"oversubscribe": True} | library)
    for number, (selection, by_hand) in enumerate([(plain, library), (planting, library), more]):
        session = tmp_path / str(number)
        (known,) = bench.planned(SimpleNamespace(session=session), selection)
        assert known.by_hand == by_hand
        assert known.options == ("--trials=5", f"--output={one.records(session)}", "--settle=0")
        assert read_plan(session) == [known]
        tokens.add(known.token)
    assert made == [plain]
    assert len(tokens) == 4


def test_what_is_told_as_one_of_many_is_known_whatever_the_reason_says():
    night = SimpleNamespace(plantings=())
    alone = CaseResult(a_case(), Verdict.REGRESSED, "common cause: of another wording")
    shared = replace(alone, reason="another sentence", cause="cpu: everything 7% slower")
    for result in (alone, shared):
        (row,) = a_bench().rows(night, [result], [result], [], [])
        assert row.common is (result is shared)


def test_a_night_is_delayed_if_most_of_its_launches_are():
    told = {"environment": {"PLUMBLINE_DELAY_PLANTED": "1"}}

    def launches(environment: str, delayed: int, others: int) -> list[Any]:
        runs = [told] * delayed + [{}] * others
        of = SimpleNamespace(environment=environment)
        return [SimpleNamespace(launch=of, run=run) for run in runs]

    finished = [*launches("a-1", 2, 1), *launches("b-2", 1, 2), *launches("c-3", 1, 1)]
    assert selftest_night.find_delayed_environments(finished) == {"a-1"}


# --- the rows


def row(**changes: Any) -> CaseNight:
    """A case of a night in which all is well: a band of 10%, launches that differ by 1%."""
    values: dict[str, Any] = {"key": "k", "environment": "a-1", "routine": "bcast", "plant": ""}
    values |= {"of": "", "target": False, "delayed": False, "verdict": "pass", "first": "pass"}
    values |= {"value": 1.0, "median": 1.0, "reference": 1.0, "upper": 1.1, "spread": 0.01}
    values |= {"degrees": 19.0, "launches": 20, "again": ()}
    return CaseNight(**values | changes)


def night(number: int, *rows: CaseNight) -> FinishedNight:
    return FinishedNight(number, f"s{number}", 1.5, ("note",), rows)


KEYS = tuple(case.key for case in quick())
BEGUN = SelftestHeader("local", 7, 10, 40, ("slower-5",), KEYS, "references of the site")


def test_what_is_written_is_read_again(tmp_path: Path):
    path = tmp_path / "new" / selftest_rows.FILE
    selftest_rows.write_selftest_header(path, BEGUN)
    nights = [night(1, row(again=(1.0, 2.0), median_of=5)), night(2, row(value=None), row(key="other"))]
    for each in nights:
        selftest_rows.append_selftest_night(path, each)
    assert selftest_rows.read_selftest(path) == (BEGUN, nights)


def test_a_night_that_was_interrupted_while_it_was_written_does_not_count(tmp_path: Path):
    """Wherever it was cut off, what came before it stays, and the next night fits behind it."""
    path = tmp_path / selftest_rows.FILE
    selftest_rows.write_selftest_header(path, BEGUN)
    selftest_rows.append_selftest_night(path, night(1, row()))
    before = path.read_bytes()
    selftest_rows.append_selftest_night(path, night(2, row(), row(key="x")))
    whole = path.read_bytes()
    for length in range(len(before), len(whole), 7):
        path.write_bytes(whole[:length])
        assert selftest_rows.read_selftest(path) == (BEGUN, [night(1, row())])
        begun, done = command.resume_or_begin(path, BEGUN)
        assert (begun, [each.number for each in done]) == (BEGUN, [1])
        assert path.read_bytes() == before
    path.write_bytes(whole)
    assert len(command.resume_or_begin(path, BEGUN)[1]) == 2


@plants("files", "empty, no JSON, or of another kind", "the file of a self-test", "", 2,
        "is damaged | No such file")  # fmt: skip
@pytest.mark.parametrize("text", ["", "x\n", "3\n", '{"record": "case"}\n', '{"record": "begun"}\n'])
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, text: str, declared: Declared):
    path = tmp_path / selftest_rows.FILE
    path.write_text(text)
    with declared.raises(UsageError, match="is damaged"):
        selftest_rows.read_selftest(path)
    with declared.raises(UsageError, match="No such file"):
        selftest_rows.read_selftest(tmp_path / "none")


@pytest.mark.parametrize(
    "changes",
    [*({"site": "x"}, {"times": 1}, {"unchanged": 1}, {"plants": ()}, {"keys": ()}), {"references": ""}],
)
def test_one_goes_on_with_the_same_self_test_only(tmp_path: Path, changes: dict[str, Any]):
    path = tmp_path / selftest_rows.FILE
    assert command.resume_or_begin(path, BEGUN) == (BEGUN, [])
    # the seed is that of the beginning
    assert command.resume_or_begin(path, replace(BEGUN, seed=8)) == (BEGUN, [])
    with pytest.raises(UsageError, match="was begun with other"):
        command.resume_or_begin(path, replace(BEGUN, **changes))


# --- the score


def planted(plant: str = "slower-50", by: float = 1.5, **changes: Any) -> CaseNight:
    """A target that was delayed, caught unless something else is said."""
    caught = {"verdict": "regressed", "first": "regressed", "again": (by,) * 5}
    values = {"plant": plant, "of": "bcast", "target": True, "delayed": True, "value": by}
    return row(**caught | values | {"median": by} | changes)


def score(nights: list[FinishedNight]) -> SelftestScores:
    """Of a self-test that was begun with what is in these nights, and came to its end."""
    names = {row.plant for night in nights for row in night.rows if row.plant}
    return score_nights(nights, sorted(names), len(nights))


MISSED = {"verdict": "pass", "first": "pass", "again": ()}


def test_a_self_test_in_which_all_is_caught_has_no_fault():
    nights = [night(1, row()), night(2, planted(), row(key="beside", plant="slower-50"))]
    result = score(nights)
    (plant,) = result.plants
    assert result.faults == ()
    assert plant == InjectionScore(
        **{"name": "slower-50", "intended": 0.5, "plantings": 1, "environments": ("a-1",), "targets": 1},
        **{"realised": pytest.approx(0.5), "realised_median": pytest.approx(0.5), "delayed": 1, "screened": 1},
        **{"caught": 1, "common": 0, "suspect": 0, "cleared": 0, "missed": 0, "sure": 1, "sure_missed": 0},
        **{"promised": pytest.approx(1, abs=1e-6), "others": 1, "accused": 0},
        drifted=None,  # "beside" was in no unchanged night
        flat=(FlatBandResult(0.1, 1, 0), FlatBandResult(0.05, 1, 0)),
    )


LOST = planted(**MISSED | {"upper": None, "reference": None})


@pytest.mark.parametrize(
    ("nights", "fault"),
    [
        *(
            (
                [[row()], [planted(key=key, **MISSED | {"verdict": word}) for key in "kl"]],
                "slower-50: 2 of 2 cases were missed",
            )
            for word in ("pass", "cleared", "fast", "provisional")
        ),
        *(
            (
                [[row()], [planted(), row(key="x", verdict=word)]],
                f"1 result of a case in a night are none: x: {word}",
            )
            for word in ("incorrect", "crashed", "incomplete", "not-comparable")
        ),
        ([[row()], [LOST]], "nothing is proven"),
        ([[row()]], "nothing is proven"),
        ([], "nothing is proven"),
    ],
)
def test_nights_that_miss_what_is_sure_or_judge_nothing_are_a_fault(nights: list[list[CaseNight]], fault: str):
    """Whatever word a verdict uses. One miss of what bands catch for certain may be chance, two are not."""
    result = score([night(number, *rows) for number, rows in enumerate(nights, start=1)])
    assert fault in " ".join(result.faults)


def test_what_bands_cannot_see_is_no_fault():
    """A slowdown inside the band, and one of a machine whose launches differ by a half."""
    sure = planted()
    small = planted("slower-5", 1.05, **MISSED)
    noisy = planted("slower-20", 1.2, **MISSED | {"spread": 0.5, "upper": 3.0})
    result = score([night(1, row()), night(2, sure, small), night(3, noisy)])
    assert result.faults == ()
    assert [(plant.sure, plant.missed) for plant in result.plants] == [(0, 1), (0, 1), (1, 0)]


def test_a_plant_that_did_not_work_promises_nothing_and_is_a_fault():
    """Whatever the others prove: what slows nothing excuses everything that misses it."""
    idle = [night(n, planted("slower-20", 1.01, **MISSED)) for n in range(2, 5)]
    result = score([night(1, row()), *idle, night(5, planted())])
    plant = result.plants[0]
    assert not plant.worked
    assert (plant.sure, plant.promised) == (0, pytest.approx(0, abs=1e-6))
    assert result.faults == ("slower-20: did not work: +1.0% where +20.0% was intended",)
    assert "intended: what it missed says little" in selftest_page.build_selftest_page(BEGUN, (), result).text


def test_a_plant_that_nothing_is_known_of_is_a_fault():
    nights = [night(1, row()), night(2, planted())]
    assert score_nights(nights, ("slower-50",), 2).faults == ()
    assert score_nights(nights, ("slower-5", "slower-50"), 2).faults == (
        "slower-5: it is unknown whether it worked: no night has it",
    )
    nights = [night(1, row(key="other")), night(2, planted())]
    (fault,) = score(nights).faults
    assert fault.startswith("slower-50: it is unknown whether it worked: no unchanged night")
    assert score_nights(nights, ("slower-5", "slower-50"), 3).faults == ()  # it may come yet
    assert not score_nights(nights, ("slower-5", "slower-50"), 3).passed


@pytest.mark.parametrize("nights", [10, 30])
def test_what_spares_launches_may_spare_a_few_but_not_all(nights: int):
    """A quarter of the launches are delayed: of 10 launches none is in 6% of all self-tests, of 30 in 0.02%."""
    may_escape_by_chance = planted("some-launches", 1.0, **MISSED | {"delayed": False})
    others = [night(n, may_escape_by_chance) for n in range(3, nights + 3)]
    result = score([night(1, row()), night(2, planted()), *others])
    assert bool(result.faults) is (nights == 30)


@pytest.mark.parametrize("done", [0, 1, 2, 4])
def test_a_self_test_that_is_not_at_its_end_has_not_passed(tmp_path: Path, capsys, done: int):
    """It is no fault either: it goes on later. The nights are those of the schedule."""
    begun = replace(BEGUN, times=3, unchanged=2, plants=("slower-50",), keys=KEYS[:1])
    path = tmp_path / selftest_rows.FILE
    selftest_rows.write_selftest_header(path, begun)
    for number in range(1, done + 1):
        selftest_rows.append_selftest_night(path, night(number, planted() if number > 1 else row()))
    assert command.conclude_selftest(tmp_path, QUIET) == 1
    shown = capsys.readouterr().out
    assert f"UNFINISHED: only {done} of 5 nights are done\n" in shown
    assert "FAULT" not in shown
    assert (tmp_path / "selftest.md").read_text().startswith("# Plumbline self-test: ? Unfinished\n")
    selftest_rows.append_selftest_night(path, night(done or 1, row()))  # the same night again is none more
    assert command.conclude_selftest(tmp_path, QUIET) == 1
    for number in range(1, 6):
        selftest_rows.append_selftest_night(path, night(number, planted() if number > 1 else row()))
    assert command.conclude_selftest(tmp_path, QUIET) == 0


@plants("use", "a plant that slows no case", "`selftest --plants`", "", 2,
        "large: slows no case of a-1")  # fmt: skip
def test_a_plant_that_slows_nothing_or_is_unknown_is_refused(declared: Declared):
    with declared.raises(UsageError):
        command.list_nights(replace(BEGUN, plants=("large",), keys=KEYS[:1]))
    with pytest.raises(UsageError, match="slower-1: is not a plant"):
        command.list_nights(replace(BEGUN, plants=("slower-1",)))


def test_a_machine_that_has_become_faster_promises_less():
    """What is slower than today may still be inside the band of yesterday."""
    quiet, lost = row(value=0.7), planted("slower-20", 0.84, **MISSED)
    (plant,) = score([night(1, quiet), night(2, lost)]).plants
    assert plant.realised == pytest.approx(0.2)
    assert plant.sure == 0


def test_what_spares_launches_is_held_against_those_that_it_delayed():
    by = {n: 1.5 if n == 2 else 1.0 for n in range(2, 6)}
    told = {n: MISSED | {"delayed": n == 2} for n in by}
    nights = [night(n, planted("some-launches", by[n], **told[n])) for n in by]
    (plant,) = score([night(1, row()), *nights]).plants
    assert plant.realised == pytest.approx(0.5)
    assert plant.sure == 0  # missing it is right: most of its launches are well
    assert plant.promised < 0.1


def test_a_false_alarm_of_an_unchanged_night_is_counted_against_the_prediction():
    false = {"verdict": "regressed", "first": "regressed", "again": (1.2,) * 5, "value": 1.2}
    quiet = [night(n, row(), row(key="l")) for n in range(1, 41)]
    proof = night(99, planted())
    assert score([*quiet, proof]).faults == ()
    result = score([*quiet[:-1], night(40, row(**false), row(key="l")), proof])
    unchanged = result.unchanged
    assert (unchanged.nights, unchanged.cases, unchanged.regressed) == (40, 80, 1)
    assert unchanged.regressed_predicted < 0.001
    assert "unchanged nights: 1 case were" in result.faults[0] or "1 case" in result.faults[0]
    assert unchanged.per_thousand(unchanged.regressed) == pytest.approx(1000 / 80)


def test_screened_and_cleared_of_unchanged_nights_are_no_fault():
    cleared = row(verdict="cleared", first="regressed", value=1.2, again=(1.0, 1.0))
    result = score([night(1, cleared, row(key="l")), night(2, planted())])
    assert result.faults == ()
    assert (result.unchanged.screened, result.unchanged.cleared) == (1, 1)
    wide = row(upper=math.exp(0.02), spread=0.01)
    predicted = score([night(1, wide)]).unchanged
    assert 0.02 < predicted.screened_predicted < 0.05  # two spreads of 20 launches


def test_the_wrongly_accused_are_named_with_what_they_were_called_by_and_kept_apart():
    wrong = row(key="beside", plant="slower-50", verdict="regressed", first="regressed")
    wrong = replace(wrong, value=3.0, again=(2.2, 2.3), reference=2.0, upper=2.1, call=2.15)
    wrong = replace(wrong, cause="cpu: everything 7% slower")
    other = row(key="free", environment="b-2", verdict="regressed", common=True)
    nights = [night(1, row()), night(2, planted(), wrong, other)]
    result = score(nights)
    (plant,) = result.plants
    assert (plant.accused, plant.caught) == (1, 1)
    assert (result.beside.cases, result.beside.regressed, result.beside.common) == (2, 2, 1)
    told, free = result.accused
    assert (free.key, free.beside) == ("free", "")
    assert (told.key, told.beside, told.night, told.slower, told.band) == ("beside", "slower-50", 2, 1.5, 1.05)
    assert (told.call, told.fresh) == (1.075, (1.1, 1.15))
    page = selftest_page.build_selftest_page(BEGUN, nights, result)
    for text in (page.text, render_markdown(page.document)):
        assert "Called, and not slowed" in text
        for word in ("1.500", "1.050", "1.100, 1.150", "1.075", "everything 7% slower"):
            assert word in text
    assert "Called" not in selftest_page.build_selftest_page(BEGUN, (), score([night(1, row())])).text


def test_of_everything_that_is_told_as_slower_no_case_is_missed():
    """Its most precise cases fail for all. Of one routine, or where nothing is told, each stands for itself."""

    def found(name: str, common: bool) -> tuple[int, int, int]:
        one = planted(name, 1.4, common=common)
        lost = [planted(name, 1.4, key=str(n), **MISSED) for n in range(3)]
        (plant,) = score([night(1, row()), night(2, one, *lost)]).plants
        return plant.common, plant.caught, plant.missed

    assert found("everything", True) == (1, 1, 0)
    assert found("everything", False) == (0, 1, 3)
    assert found("slower-50", True) == (1, 1, 3)


def test_flat_bands_and_the_drift_of_the_machine_are_of_the_same_launches():
    values = [1.04, 1.06, 1.11]
    targets = [planted(key=f"t{value}", by=value) for value in values]
    others = [row(key=f"o{value}", value=value, plant="slower-50") for value in values]
    usual = [row(key=target.key) for target in (*targets, *others)]
    quiet = [row(value=value) for value in values]
    result = score([night(1, *usual), night(2, *targets, *others), night(3, *quiet)])
    (plant,) = result.plants
    assert (plant.realised, plant.drifted) == (pytest.approx(0.06), pytest.approx(0.06))
    assert plant.flat == (FlatBandResult(0.10, 1, 1), FlatBandResult(0.05, 2, 2))
    assert [each.false for each in result.unchanged.flat] == [1, 2]
    assert "+6.0%" in selftest_page.build_selftest_page(BEGUN, (), result).text


@given(sure=st.integers(0, 400), missed=st.integers(0, 400))
def test_misses_are_too_many_where_chance_does_not_make_them(sure: int, missed: int):
    if missed > sure:
        return
    assert not is_too_many_missed(0, sure)
    if is_too_many_missed(missed, sure):
        assert missed / sure > 1 - SURE
        assert missed == sure or is_too_many_missed(missed + 1, sure)
        assert is_too_many_missed(missed, sure - 1) or missed == sure
    assert not is_too_many_missed(1, 1)  # one of one: one in a hundred, and CHANCE is less
    assert is_too_many_missed(2, 2)
    assert CHANCE < 1 - SURE


@pytest.mark.parametrize(
    ("spread", "slower", "chance"), [(0.01, 1.5, 1.0), (0.01, 1.0, 0.0), (0.01, 1.1, 0.5), (0.0, 1.2, 1.0)]
)
def test_promises_follow_the_bands(spread: float, slower: float, chance: float):
    assert predict_verdict(row(spread=spread), math.log(slower))[1] == pytest.approx(chance, abs=1e-3)


def test_what_the_call_limit_does_not_reach_is_not_promised():
    """On a busy machine a call limit lies far out: a huge plant is suspect, and that is no fault."""
    wide = {"upper": 2.0, "spread": 0.2, "call": 40.0, "call_deviation": 0.5, "call_degrees": 8.0}
    huge = planted("slower-400", 5.0, **wide, verdict="suspect")
    without = replace(huge, call=None)
    assert predict_verdict(without, math.log(5))[1] > SURE
    assert predict_verdict(huge, math.log(5))[1] < 0.01
    result = score([night(1, row(**wide)), night(2, huge, planted())])
    plant = next(each for each in result.plants if each.name == "slower-400")
    assert (plant.sure, plant.suspect, plant.missed) == (0, 1, 0)
    assert result.faults == ()


def test_the_prediction_of_what_is_called_is_that_of_the_gross_limit():
    reference = Reference(a_case(), 1.0, 0.01, 20, session_prior=Prior(0.03, 5.0))
    limits = selftest_night.tell_limits(reference, 1)
    upper = compute_band(reference).upper
    screened, called = predict_verdict(row(upper=upper, **limits), 0.0)
    assert screened == pytest.approx(SLOW_ALPHA, rel=1e-3)
    assert called == pytest.approx(stdtr(limits["call_degrees"], -GROSS), rel=1e-3)
    assert called < 1e-3
    assert predict_verdict(row(upper=upper, **limits), 2.0)[1] > SURE


def test_the_result_shows_every_plant_and_is_written_for_people_and_programs(tmp_path: Path, capsys):
    kinds = enumerate(injections.INJECTION_KINDS.items(), start=2)
    nights = [night(1, row()), *(night(n, planted(name, 1 + kind.intended)) for n, (name, kind) in kinds)]
    page = selftest_page.build_selftest_page(BEGUN, nights, score(nights))
    assert command.publish_page(tmp_path, page, "", QUIET, None) == 0
    shown = capsys.readouterr().out
    for name, plant in injections.INJECTION_KINDS.items():
        assert all(word in shown for word in (name, plant.words, f"{plant.intended:+.1%}"))
    assert shown.endswith("every plant that must be caught was\n")
    assert "FAULT: " in selftest_page.build_selftest_page(BEGUN, (), score([])).text
    assert "✓ Passed" in (tmp_path / "selftest.md").read_text(encoding="utf-8").splitlines()[0]
    assert "Passed" in (tmp_path / "selftest.html").read_text(encoding="utf-8")
    data = json.loads((tmp_path / "selftest.json").read_text())
    assert data["scores"]["plants"][0]["caught"] == 1
    assert (data["seed"], data["nights"]) == (7, len(nights))


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--sessions", "21"), "--sessions 21: each has a launch at least; raise --launches"),
        (("--again", "/nonexistent"), "No such file"),
    ],
)
def test_wrong_words_are_refused_in_one_line(tmp_path: Path, capsys, words, named: str):
    try:
        status = main(str(ROOT), str(tmp_path), ["selftest", *words])
    except SystemExit as ended:
        status = ended.code
    said = capsys.readouterr().err
    assert status == 2
    assert named in said
    assert said.count("\n") == 1
