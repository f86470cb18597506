"""How far apart the cores of neighbouring ranks are: measured before and after each case, without MPI."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.mpicost import FAMILIES, program

WARM = ("--cache", "warm", "--trials", "4", "--settle", "0")
FEW = ("--routine", "barrier,bcast:8")


@pytest.mark.parametrize("family", FAMILIES)
def test_each_case_tells_the_time_from_core_to_core(family: str, tmp_path: Path) -> None:
    """Between 5 ns, which a core needs by itself, and 100 us, which no two processors of a node need."""
    done = program(family).measure(2, tmp_path / "two.jsonl", *WARM, *FEW)
    times = [time for case in done.cases for time in case["core_latency"]]
    assert len(times) == 2 * len(done.cases)
    assert all(5e-9 < time < 1e-4 for time in times), times


@pytest.mark.parametrize("family", FAMILIES)
def test_a_rank_without_a_neighbour_has_none(family: str, tmp_path: Path) -> None:
    """One rank has none; of three the last has none, and the other two tell theirs."""
    one = program(family).measure(1, tmp_path / "one.jsonl", *WARM, "--routine", "control_compute")
    assert all("core_latency" not in case for case in one.cases)
    three = program(family).measure(3, tmp_path / "three.jsonl", *WARM, *FEW)
    assert all(min(case["core_latency"]) > 0 for case in three.cases)


def test_nothing_is_left_in_the_shared_memory_of_the_host(tmp_path: Path) -> None:
    program(FAMILIES[0]).measure(2, tmp_path / "two.jsonl", *WARM, *FEW)
    left = Path("/dev/shm")
    assert not left.exists() or not any("mpicost" in name for name in os.listdir(left))
