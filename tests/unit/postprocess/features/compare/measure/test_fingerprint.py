"""The launches of the fingerprint are of ping-pong alone, in turn, and take no time from the pairs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from postprocess.base.errors import UsageError
from postprocess.features.compare import data
from postprocess.features.compare.data import NEW, OLD, CaseValue, ComparisonPass, LaunchValues
from postprocess.features.compare.fingerprint import SIZES, FingerprintLaunch
from postprocess.features.compare.measure import differences as fingerprint
from postprocess.features.compare.measure.bench import ComparisonBench
from postprocess.features.compare.measure.differences import (
    MOST_ROUNDS,
    has_enough,
    has_time_beside_pairs,
    locate_launch,
    read_fingerprint_launches,
    select_pingpong,
    take_fingerprints,
)
from postprocess.model.session import Selection
from postprocess.stats.placement import MOVED
from tests.unit.postprocess.features.compare.measure.test_run import HEADER


@pytest.fixture
def bench(tmp_path: Path, progress) -> ComparisonBench:
    """A trial run took 10 s a pair; six pairs are planned."""
    path = tmp_path / data.FILE
    header = replace(HEADER, seconds=100)
    data.append_record(path, header)
    for position, side in enumerate((OLD, NEW)):
        launch = LaunchValues("l", {}, {"cpu/mpicost/bcast/warm-barrier/2x2/8": CaseValue(1e-6, "s")})
        data.append_record(path, ComparisonPass(0, position, side, "s", 5.0, (launch,)))
    data.append_record(path, data.PlannedLooks((6,)))
    return ComparisonBench(SimpleNamespace(progress=progress), header, path)  # type: ignore[arg-type]


def append(bench: ComparisonBench, number: int, side: str, seconds: float) -> None:
    told = FingerprintLaunch(side, number, "cpu", "2x2", "s", seconds, SIZES, (1e-6,) * len(SIZES))
    data.append_record(bench.path, told)


def test_pingpong_of_two_processes_is_measured_whatever_else_is_chosen() -> None:
    asked = Selection(Path("s"), choice={"routines": ["bcast"], "partitions": ["a"], "cache": "evict"})
    choice = select_pingpong(asked).choice
    assert choice["routines"] == ["pingpong"] and choice["processes"] == [2]
    expected = (["a"], "warm", ["mpicost"])
    assert (choice["partitions"], choice["cache"], choice["programs"]) == expected
    assert 0 in choice["sizes"] and 8192 in choice["sizes"]


def test_both_sides_begin_in_turn_and_what_is_done_is_not_done_again(bench, monkeypatch) -> None:
    taken: list[tuple[int, str]] = []

    def take(bench: ComparisonBench, number: int, name: str) -> None:
        taken.append((number, name))
        append(bench, number, name, 1.0)

    monkeypatch.setattr(fingerprint, "take_fingerprint", take)
    append(bench, 0, OLD, 1.0)
    take_fingerprints(bench)
    assert taken == [(0, NEW), (1, NEW), (1, OLD), (2, OLD), (2, NEW)]


def test_launches_go_on_while_the_sides_lie_on_other_cores(bench, monkeypatch) -> None:
    taken: list[int] = []

    def take(bench: ComparisonBench, number: int, name: str) -> None:
        taken.append(number)
        cores = 2.5e-7 if name == NEW and number < 4 else 5e-8
        told = FingerprintLaunch(name, number, "cpu", "2x2", "s", 1.0, SIZES, (1e-6,) * len(SIZES))
        data.append_record(bench.path, replace(told, core_latency=cores))

    monkeypatch.setattr(fingerprint, "take_fingerprint", take)
    take_fingerprints(bench)
    assert max(taken) == 5  # the second that lies as the old side's do
    assert bench.stored.fingerprints[1].core_latency == 2.5e-7


def test_launches_end_where_the_sides_never_lie_alike(bench, monkeypatch) -> None:
    taken: list[int] = []

    def take(bench: ComparisonBench, number: int, name: str) -> None:
        taken.append(number)
        told = FingerprintLaunch(name, number, "cpu", "2x2", "s", 1.0, SIZES, (1e-6,) * len(SIZES))
        cores = 2.5e-7 if name == NEW else 5e-8
        data.append_record(bench.path, replace(told, seconds=0.0, core_latency=cores))

    monkeypatch.setattr(fingerprint, "take_fingerprint", take)
    said: list[str] = []
    monkeypatch.setattr(bench.context.progress, "say", said.append)
    take_fingerprints(bench)
    assert len(taken) == 2 * MOST_ROUNDS == 16
    assert said == ["  no fingerprint: no launches of both sides had their ranks on like cores"]


def test_each_place_needs_launches_of_both_sides() -> None:
    told = [
        FingerprintLaunch(side, number, "cpu", layout, "s", 1.0, (0,), (1e-6,))
        for side in (OLD, NEW)
        for number in range(2)
        for layout in ("2x1", "2x2")
    ]
    assert has_enough(told) and not has_enough(told[:-1])


def test_the_cores_of_a_launch_are_those_of_nearly_all_its_cases() -> None:
    def told(*times: float) -> float | None:
        return locate_launch([CaseValue(1e-6, "s", core_latency=(each, None)) for each in times])

    assert told(*[5e-8] * 20, 2.5e-7) == pytest.approx(5e-8)
    assert told(*[5e-8] * 10, *[2.5e-7] * 10) == MOVED
    assert locate_launch([CaseValue(1e-6, "s")]) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"times": (1e-6,)},
        {"sizes": (8, 0)},
        {"sizes": (2**63 - 2, 2**63 - 1)},
        {"side": "third"},
        {"times": (1e-6, -1e-6)},
        {"moved": "x"},
    ],
)
def test_a_stored_launch_that_cannot_be_is_refused(bench: ComparisonBench, wrong: dict) -> None:
    told = FingerprintLaunch(OLD, 0, "cpu", "2x2", "s", 1.0, (0, 8), (1e-6, 2e-6))
    data.append_record(bench.path, told)
    assert bench.stored.fingerprints == (told,)
    data.append_record(bench.path, replace(told, **wrong))
    with pytest.raises(UsageError, match="is damaged; choose another --output"):
        data.read_comparison(bench.path)


def test_the_pairs_keep_their_time(bench: ComparisonBench) -> None:
    assert has_time_beside_pairs(bench)  # 100 - 10 - 60 are left
    append(bench, 0, OLD, 16.0)
    assert not has_time_beside_pairs(bench)  # 14 are left, and the last one took 16


def test_what_fails_is_noted_and_stops_nothing(bench, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise UsageError("ping-pong has no value: crashed")

    monkeypatch.setattr(fingerprint, "take_fingerprint", fail)
    take_fingerprints(bench)
    assert any("ping-pong has no value" in each for each in bench.context.progress.notes)


def test_values_are_read_by_place() -> None:
    keys = [f"cpu/mpicost/pingpong@1/warm-barrier/{layout}/{n}" for layout in ("2x1", "2x2") for n in (8, 0)]
    found = [
        LaunchValues(layout, {}, {k: CaseValue(1e-6, "s") for k in keys if f"/{layout}/" in k})
        for layout in ("2x1", "2x2")
    ]
    read = read_fingerprint_launches(OLD, 1, "s", 9.0, found)
    expected = [("2x1", (0, 8), 9.0), ("2x2", (0, 8), 0.0)]
    assert [(each.layout, each.sizes, each.seconds) for each in read] == expected
    assert not any(each.moved for each in read)
    cores = dict(zip(keys, ((5e-8, 5e-8), (2.5e-7, 2.5e-7)), strict=False))
    moved = {key: CaseValue(1e-6, "s", core_latency=cores[key]) for key in keys[:2]}
    (one,) = read_fingerprint_launches(OLD, 1, "s", 9.0, [LaunchValues("2x1", {}, moved)])
    assert one.moved and one.core_latency is None
    failed = LaunchValues("l", {}, {keys[0]: CaseValue(None, "s", "crashed", "signal 11")})
    with pytest.raises(UsageError, match="ping-pong has no value: signal 11"):
        read_fingerprint_launches(OLD, 0, "s", 9.0, [failed])
