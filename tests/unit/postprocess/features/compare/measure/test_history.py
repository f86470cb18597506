"""A history plans whole rounds, goes on where it was killed, and refuses what it cannot be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from postprocess.base.errors import UsageError
from postprocess.features.compare import data
from postprocess.features.compare.data import CaseValue, ComparisonPass, LaunchValues
from postprocess.features.compare.measure.history import HistoryBench
from postprocess.main import main
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT
from tests.unit.postprocess.features.compare.history.test_steps import NAMES, STEADY, VERSIONS
from tests.unit.postprocess.features.compare.measure.test_run import HEADER


def make_pass(number: int, name: str) -> ComparisonPass:
    launch = LaunchValues("l", {}, {STEADY: CaseValue(1e-6, "s")})
    return ComparisonPass(number, 0, name, "s", 2.0, (launch,))


@pytest.fixture
def bench(tmp_path: Path, progress) -> HistoryBench:
    """Four versions whose trial runs took 8 s together."""
    header = replace(HEADER, versions=VERSIONS, seconds=None)
    path = tmp_path / data.FILE
    data.append_record(path, header)
    for name in NAMES:
        data.append_record(path, make_pass(0, name))
    return HistoryBench(SimpleNamespace(progress=progress), header, path)  # type: ignore[arg-type]


@pytest.mark.parametrize(("seconds", "rounds"), [(None, 10), (56, 6), (100, 11), (10**6, 20)])
def test_rounds_fit_into_the_time(bench: HistoryBench, seconds: int | None, rounds: int) -> None:
    bench.header = replace(bench.header, seconds=seconds)
    assert bench.plan_rounds() == rounds
    bench.header = replace(bench.header, seconds=None)
    assert bench.plan_rounds() == rounds  # what was fixed stays


def test_two_rounds_of_simulated_time_are_enough_and_are_read_again(bench: HistoryBench) -> None:
    exact = LaunchValues("l", {}, {STEADY: CaseValue(1e-6, "s", exact=True)})
    data.append_record(bench.path, ComparisonPass(0, 1, NAMES[0], "s", 2.0, (exact,)))
    assert bench.plan_rounds() == 2
    assert bench.stored.looks == (2,)


@plants("use", "less time than a round of all versions takes", "`compare --history --seconds`", "", 2,
        "--seconds 55: a round of 4 versions … give 56 s or more")  # fmt: skip
def test_too_little_time_is_refused_with_what_is_needed(bench: HistoryBench, declared: Declared):
    bench.header = replace(bench.header, seconds=55)
    with declared.raises(UsageError, match=r"--seconds 55: a round of 4 versions .* give 56 s or more"):
        bench.plan_rounds()


def test_every_version_is_launched_once_a_round_and_none_again(bench, monkeypatch) -> None:
    launched: list[tuple[int, str]] = []

    def launch(self: HistoryBench, number: int, position: int, name: str, wanted: list) -> None:
        assert [each.key for each in wanted] == [STEADY]
        launched.append((number, name))
        data.append_record(self.path, make_pass(number, name))

    monkeypatch.setattr(HistoryBench, "run_pass", launch)
    data.append_record(bench.path, make_pass(1, NAMES[2]))
    bench.run_rounds(2)
    assert sorted(launched) == sorted(
        (number, name) for number in (1, 2) for name in NAMES if (number, name) != (1, NAMES[2])
    )


def test_the_time_is_kept(bench: HistoryBench, monkeypatch) -> None:
    monkeypatch.setattr(
        HistoryBench,
        "run_pass",
        lambda self, number, _, name, __: data.append_record(self.path, make_pass(number, name)),
    )
    bench.header = replace(bench.header, seconds=26)  # the trial and two rounds of 8 s
    bench.run_rounds(6)
    assert max(each.block for each in bench.stored.passes) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a", "b", "--history", "mpich"), "OLD: a history has no two sides"),
        (("--history", "mpich", "--new-env", "A=b"), "--new-env: a history has no two sides"),
        (("--history", "mpich", "--stored"), "--stored: a history has no two sides"),
        (("--history", "openmpj"), "--history openmpj: is no family or release of one; choose of"),
        (("mpich",), "OLD NEW: name both sides, or --history FAMILY"),
    ],
)
def test_wrong_use_is_told_in_one_line(tmp_path: Path, words, said, capsys) -> None:
    assert main(str(ROOT), str(tmp_path), ["compare", *words]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1
