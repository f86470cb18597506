"""A history plans whole rounds, goes on where it was killed, and refuses what it cannot be."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from postprocess.base.errors import UsageError
from postprocess.features.compare import data
from postprocess.features.compare.data import CaseValue, ComparisonPass
from postprocess.features.compare.measure.history import HistoryBench
from tests.support.factories.comparison import HEADER, make_pass
from tests.support.faults import Declared, plants
from tests.unit.postprocess.features.compare.test_history import NAMES, STEADY, VERSIONS


def of_version(number: int, name: str, exact: bool = False) -> ComparisonPass:
    return make_pass(number, 0, name, {STEADY: CaseValue(1e-6, "s", exact=exact)}, seconds=2.0)


@pytest.fixture
def bench(tmp_path: Path, progress) -> HistoryBench:
    """Four versions whose trial runs took 8 s together."""
    header = replace(HEADER, versions=VERSIONS)
    path = tmp_path / data.FILE
    data.append_record(path, header)
    for name in NAMES:
        data.append_record(path, of_version(0, name))
    return HistoryBench(SimpleNamespace(progress=progress), header, path)  # type: ignore[arg-type]


@pytest.mark.parametrize(("seconds", "rounds"), [(None, 10), (56, 6), (100, 11), (10**6, 20)])
def test_rounds_fit_into_the_time(bench: HistoryBench, seconds: int | None, rounds: int) -> None:
    bench.header = replace(bench.header, seconds=seconds)
    assert bench.plan_rounds() == rounds
    bench.header = replace(bench.header, seconds=None)
    assert bench.plan_rounds() == rounds  # what was fixed stays


def test_two_rounds_of_simulated_time_are_enough_and_are_read_again(bench: HistoryBench) -> None:
    data.append_record(bench.path, of_version(0, NAMES[0], exact=True))
    assert bench.plan_rounds() == 2
    assert bench.stored.looks == (2,)


@plants("use", "less time than a round of all versions takes", "`compare --history --seconds`", "", 2,
        "--seconds 55: a round of 4 versions … fits into --seconds 70")  # fmt: skip
def test_too_little_time_is_refused_with_what_is_needed(bench: HistoryBench, declared: Declared):
    bench.header = replace(bench.header, seconds=55)
    with declared.raises(UsageError, match=r"--seconds 55: a round of 4 versions .* fits into --seconds 70$"):
        bench.plan_rounds()


@pytest.fixture
def launched(monkeypatch) -> list[tuple[int, str]]:
    """What is launched, with 2 s each."""
    found: list[tuple[int, str]] = []

    def launch(self: HistoryBench, number: int, position: int, name: str, wanted: list) -> None:
        assert [each.key for each in wanted] == [STEADY]
        found.append((number, name))
        data.append_record(self.path, of_version(number, name))

    monkeypatch.setattr(HistoryBench, "run_pass", launch)
    return found


def test_every_version_is_launched_once_a_round_and_none_again(bench, launched) -> None:
    data.append_record(bench.path, of_version(1, NAMES[2]))
    bench.run_rounds(2)
    expected = {(number, name) for number in (1, 2) for name in NAMES} - {(1, NAMES[2])}
    assert sorted(launched) == sorted(expected)


def test_the_time_is_kept(bench: HistoryBench, launched) -> None:
    bench.header = replace(bench.header, seconds=26)  # the trial and two rounds of 8 s
    bench.run_rounds(6)
    assert max(number for number, _ in launched) == 2
