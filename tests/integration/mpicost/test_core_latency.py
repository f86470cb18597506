"""How far apart the cores of neighbouring ranks are: measured before and after each visit, without MPI."""

import os
from pathlib import Path

import pytest

from tests.support.mpicost import FAMILIES, program

WARM = ("--cache", "warm", "--trials", "4", "--settle", "0", "--rounds", "2")
FEW = ("--routine", "barrier,bcast:8")
TRIES = 20  #: beside other work the ranks of a launch may never run at the same time


@pytest.fixture(autouse=True)
def _on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MPICOST_CORE_LATENCY")


@pytest.mark.parametrize("family", FAMILIES)
def test_each_case_tells_the_time_from_core_to_core(family: str, tmp_path: Path) -> None:
    """More than 5 ns, which a core needs by itself, and within its patience; null where a rank did not run."""
    for number in range(TRIES):
        done = program(family).measure(2, tmp_path / f"{number}.jsonl", *WARM, *FEW)
        times = [time for case in done.cases for time in case["core_latency"]]
        assert len(times) == 2 * 2 * len(done.cases)
        if any(times):
            break
    assert any(times), "the ranks never ran at the same time"
    assert all(5e-9 < time < 2e-5 for time in times if time is not None), times


def test_the_environment_leaves_it_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPICOST_CORE_LATENCY", "off")
    done = program(FAMILIES[0]).measure(2, tmp_path / "off.jsonl", *WARM, *FEW)
    assert all("core_latency" not in case for case in done.cases)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_rank_without_a_neighbour_has_none(family: str, tmp_path: Path) -> None:
    """One rank has none; of three the last has none, and the other two tell theirs."""
    one = program(family).measure(1, tmp_path / "one.jsonl", *WARM, "--routine", "control_compute")
    assert all("core_latency" not in case for case in one.cases)
    three = program(family).measure(3, tmp_path / "three.jsonl", *WARM, *FEW)
    assert all(len(case["core_latency"]) == 4 for case in three.cases)


def test_nothing_is_left_in_the_shared_memory_of_the_host(tmp_path: Path) -> None:
    program(FAMILIES[0]).measure(2, tmp_path / "two.jsonl", *WARM, *FEW)
    left = Path("/dev/shm")
    assert not left.exists() or not any("mpicost" in name for name in os.listdir(left))
