"""The launches of the fingerprint are of ping-pong alone, in turn, and take no time from the pairs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from postprocess.base.errors import UsageError
from postprocess.features.compare import data
from postprocess.features.compare.data import NEW, OLD, CaseValue, ComparedSide, LaunchValues
from postprocess.features.compare.facts import SIZES, FingerprintLaunch, LoadedObject, SideFacts
from postprocess.features.compare.measure import differences
from postprocess.features.compare.measure.bench import ComparisonBench
from postprocess.features.compare.measure.differences import require_layer
from postprocess.model.session import Selection
from postprocess.stats.launches import MOVED
from site_configs.mpi.family import Mpi
from tests.support.factories.comparison import HEADER, make_pass
from tests.support.faults import Declared, plants

TOLD = FingerprintLaunch(OLD, 0, "cpu", "2x2", "s", 1.0, SIZES, (1e-6,) * len(SIZES))
NEAR, FAR = 5e-8, 2.5e-7  #: from core to core, in seconds


@pytest.fixture
def bench(tmp_path: Path, progress) -> ComparisonBench:
    """A trial run took 10 s a pair; six pairs are planned."""
    path = tmp_path / data.FILE
    header = replace(HEADER, seconds=100)
    data.append_record(path, header)
    for position, side in enumerate((OLD, NEW)):
        said = {"cpu/mpicost/bcast/warm-barrier/2x2/8": CaseValue(1e-6, "s")}
        data.append_record(path, make_pass(0, position, side, said, seconds=5.0))
    data.append_record(path, data.PlannedLooks((6,)))
    return ComparisonBench(SimpleNamespace(progress=progress), header, path)  # type: ignore[arg-type]


def test_pingpong_of_two_processes_is_measured_whatever_else_is_chosen() -> None:
    asked = Selection(Path("s"), choice={"routines": ["bcast"], "partitions": ["a"], "cache": "evict"})
    choice = differences.select_pingpong(asked).choice
    assert 0 in choice["sizes"] and 8192 in choice["sizes"]
    assert choice | {"sizes": []} == {
        "routines": ["pingpong"],
        "processes": [2],
        "partitions": ["a"],
        "cache": "warm",
        "programs": ["mpicost"],
        "sizes": [],
    }


@pytest.fixture
def take(bench, monkeypatch) -> Callable[..., list[tuple[int, str]]]:
    """Take fingerprints, the new side's on these cores and the old one's on near ones; what was launched."""

    def take_all(cores: Sequence[float]) -> list[tuple[int, str]]:
        taken: list[tuple[int, str]] = []

        def take_one(bench: ComparisonBench, number: int, name: str) -> None:
            taken.append((number, name))
            where = cores[min(number, len(cores) - 1)] if name == NEW else NEAR
            told = replace(TOLD, side=name, number=number, seconds=0.0, core_latency=where)
            data.append_record(bench.path, told)

        monkeypatch.setattr(differences, "take_fingerprint", take_one)
        differences.take_fingerprints(bench)
        return taken

    return take_all


def test_both_sides_begin_in_turn_and_what_is_done_is_not_done_again(bench, take) -> None:
    data.append_record(bench.path, replace(TOLD, core_latency=NEAR))
    assert take([NEAR]) == [(0, NEW), (1, NEW), (1, OLD), (2, OLD), (2, NEW)]


@pytest.mark.parametrize(
    ("cores", "launches", "said"),
    [
        ([FAR] * 4 + [NEAR], 11, "empty message"),  # to the second that lies as the old side's do
        ([FAR], 16, "no fingerprint: no launches of both sides had their ranks on like cores"),
    ],
)
def test_launches_go_on_while_the_sides_lie_on_other_cores(bench, take, monkeypatch, cores, launches, said):
    lines: list[str] = []
    monkeypatch.setattr(bench.context.progress, "say", lines.append)
    assert len(take(cores)) == launches
    assert lines[0].strip().startswith(said)


def test_each_place_needs_launches_of_both_sides() -> None:
    told = [
        replace(TOLD, side=side, number=number, layout=layout)
        for side in (OLD, NEW)
        for number in range(2)
        for layout in ("2x1", "2x2")
    ]
    assert differences.has_enough(told) and not differences.has_enough(told[:-1])


def test_the_cores_of_a_launch_are_those_of_nearly_all_its_cases() -> None:
    def told(*times: float) -> float | None:
        return differences.locate_launch([CaseValue(1e-6, "s", core_latency=(time, None)) for time in times])

    assert told(*[NEAR] * 20, FAR) == pytest.approx(NEAR)
    assert told(*[NEAR] * 10, *[FAR] * 10) == MOVED
    assert differences.locate_launch([CaseValue(1e-6, "s")]) is None


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
    told = replace(TOLD, sizes=(0, 8), times=(1e-6, 2e-6))
    data.append_record(bench.path, told)
    assert bench.stored.fingerprints == (told,)
    data.append_record(bench.path, replace(told, **wrong))
    with pytest.raises(UsageError, match="is damaged; choose another folder"):
        data.read_comparison(bench.path)


def test_the_pairs_keep_their_time(bench: ComparisonBench) -> None:
    assert differences.has_time_beside_pairs(bench)  # 100 - 10 - 60 are left
    data.append_record(bench.path, replace(TOLD, seconds=16.0))
    assert not differences.has_time_beside_pairs(bench)  # 14 are left, and the last one took 16


def test_what_fails_is_noted_and_stops_nothing(bench, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise UsageError("ping-pong has no value: crashed")

    monkeypatch.setattr(differences, "take_fingerprint", fail)
    differences.take_fingerprints(bench)
    assert any("ping-pong has no value" in note for note in bench.context.progress.notes)


def test_values_are_read_by_place() -> None:
    def read(*launches: LaunchValues) -> list[FingerprintLaunch]:
        return differences.read_fingerprint_launches(OLD, 1, "s", 9.0, launches)

    def launch(layout: str, *said: CaseValue) -> LaunchValues:
        keys = [f"cpu/mpicost/pingpong@1/warm-barrier/{layout}/{n}" for n in (8, 0)]
        return LaunchValues(layout, {}, dict(zip(keys, said, strict=False)))

    value = CaseValue(1e-6, "s")
    found = [(each.layout, each.sizes, each.seconds, each.moved) for each in read(
        launch("2x1", value, value), launch("2x2", value, value))]  # fmt: skip
    assert found == [("2x1", (0, 8), 9.0, False), ("2x2", (0, 8), 0.0, False)]
    here, there = (replace(value, core_latency=(where, where)) for where in (NEAR, FAR))
    (moved,) = read(launch("2x1", here, there))
    assert moved.moved and moved.core_latency is None
    with pytest.raises(UsageError, match="ping-pong has no value: signal 11"):
        read(launch("2x1", CaseValue(None, "s", "crashed", "signal 11")))


@plants("environment", "`LD_LIBRARY_PATH` in a start-up file, which leads to another libfabric",
        "a comparison of `mpich+libfabric@2.4.0`", "", 2,
        "new+libfabric: ran on /own/libfabric.so.1, not on /asked/libfabric.so.1; …")  # fmt: skip
def test_a_side_that_ran_on_another_library_than_its_name_says_is_refused(declared: Declared):
    """Both sides on one libfabric are the same, whatever two libfabrics are."""
    own, asked = (
        Mpi(
            *(layer, "mpich", "5.0.2", "MPICH", "path", "/m", "/m/mpicc", "/m/mpiexec"),
            env={"LD_LIBRARY_PATH": folder} if folder else {},
            layer=layer,
        )
        for layer, folder in (("libfabric", ""), ("libfabric@2.4.0", "/asked"))
    )
    inventory = MagicMock(mpis=(own, asked))

    def require(environment: str, *loaded: str) -> None:
        objects = tuple(LoadedObject(path, "1") for path in loaded)
        facts = SideFacts("MPICH", "5.0", "/m/lib/libmpi.so", objects, (), {})
        require_layer(inventory, ComparedSide("new+libfabric", environment), facts)

    require(asked.name, "/lib/libc.so.6", "/asked/libfabric.so.1")
    require(own.name, "/own/libfabric.so.1")
    require("another environment")
    with pytest.raises(UsageError, match="ran on no libfabric"):
        require(asked.name)
    with declared.raises(UsageError):
        require(asked.name, "/asked/libfabric.so.1", "/own/libfabric.so.1")
