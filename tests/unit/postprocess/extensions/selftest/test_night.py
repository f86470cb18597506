"""The self-test without a machine: what is planted when, what is kept, and how it is scored."""

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postprocess.base.errors import UsageError
from postprocess.calibration import ledger, update
from postprocess.extensions.selftest import command
from postprocess.extensions.selftest import command as selftest_session
from postprocess.extensions.selftest import data as selftest_rows
from postprocess.extensions.selftest import night as selftest_night
from postprocess.extensions.selftest.data import InjectionNight
from postprocess.extensions.selftest.night import (
    SelftestDemand,
    calibrate_bench,
    describe_bursts,
    has_enough_references,
    take_references,
)
from postprocess.model.plan import PlannedLaunch, list_places, read_plan
from postprocess.model.session import Selection
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.references.catalog import load_catalog
from postprocess.session.lifecycle import injections
from postprocess.stats.sessions import SESSION_GAP
from tests.support.factories.launch import case as a_case
from tests.support.factories.launch import planned
from tests.support.factories.ledger import launch
from tests.support.factories.selftest import BEGUN, QUIET, a_bench, night, row
from tests.support.faults import Declared, plants

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
    assert (made, len(tokens)) == ([plain], 4)


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
