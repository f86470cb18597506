"""Calls in a row: back to back as OSU and IMB time, and a trial that is a loop of many, told per call."""

from pathlib import Path

import numpy as np
import pytest

from postprocess.parsers.mpicost import read_launch
from postprocess.stats.launches import bound_slowest_mean
from tests.support.mpicost import FAMILIES, library, preload, program, read

# Untimed calls first, and nothing but a barrier between trials.

CALLS, TRIALS = 7, 5
WARM = ("--cache", "warm")
BARRIER = (*WARM, "--sync", "barrier")
FEW = (*WARM, "--trials", "4")
LOOP = (*FEW, "--sync", "loop", "--loop-seconds", "0.002")
OPTIONS = (*BARRIER, "--back-to-back", str(CALLS), "--trials", str(TRIALS), "--bytes", "80")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("processes", [1, 2, 3])
def test_the_slowest_mean_is_recorded_and_believed(family: str, processes: int, tmp_path: Path):
    file = tmp_path / "out.jsonl"
    records = program(family).measure(processes, file, *OPTIONS)
    assert records.run["back_to_back"] == CALLS
    for case in records.cases:
        t_max, t_min = (np.array(case[key]) for key in ("t_max", "t_min"))
        low, high = bound_slowest_mean(t_max, t_min, processes)
        assert low * (1 - 1e-9) <= case["slowest_mean"] <= high * (1 + 1e-9)
    believed = {case.variable: case.slowest_mean for case in read_launch(file).cases}
    assert len(believed) == len(records.cases) and all(believed.values())


def test_of_one_process_it_is_the_mean(tmp_path: Path) -> None:
    options = (*OPTIONS, "--routine", "bcast,allreduce_sum")
    for case in program("mpich").measure(1, tmp_path / "out.jsonl", *options).cases:
        assert case["slowest_mean"] == pytest.approx(np.mean(case["t_max"][1:]), rel=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("first", "noticed"),
    [
        (0, "before timing"),
        (1, "after timing"),  # in the first untimed call: it is not looked at, the last one is
        (CALLS + 1, "after timing"),
        (CALLS + TRIALS + 1, "after timing"),
        (CALLS + TRIALS + 2, ""),  # there is no such call
    ],
)
def test_so_many_calls_are_made_and_data_is_verified_before_and_after(
    family: str, first: int, noticed: str, tmp_path: Path
) -> None:
    file = tmp_path / "out.jsonl"
    ended = program(family).run(
        2,
        *(*OPTIONS, "--routine", "bcast", "--output", str(file)),
        wrapper=preload(library(family, "wrong_data")),
        variables={"PLUMBLINE_FAULT": "bcast", "PLUMBLINE_FAULT_AFTER": str(first)},
    )
    assert ended.status == (1 if noticed else 0)
    assert [line.endswith(noticed) for line in ended.complaints] == ([True] if noticed else [])
    assert read(file).cases[0]["trials"] == TRIALS


def test_a_batch_after_an_early_stop_begins_together(tmp_path: Path) -> None:
    """Between batches ranks talk about going on; the first trial of each has a barrier of its own."""
    options = (*BARRIER, "--back-to-back", "3", "--trials", "40", "--relative-error", "0.9")
    records = program("mpich").measure(2, tmp_path / "out.jsonl", *options, "--routine", "alltoall:8")
    assert records.cases[0]["trials"] % 10 == 0 and records.run["back_to_back"] == 3


# A loop after one synchronisation, verified after its end.


@pytest.mark.parametrize("family", FAMILIES)
def test_a_trial_is_many_calls_and_its_time_that_of_one(family: str, tmp_path: Path) -> None:
    """A chain of multiplications takes as long in a loop as alone, and fits into it more than once."""
    asked = ("--routine", "control_compute,bcast:8,pingpong:8,barrier,reduce_local_sum:8")
    loops = program(family).measure(2, tmp_path / "loop.jsonl", *LOOP, *asked)
    once = program(family).measure(2, tmp_path / "once.jsonl", *FEW, *asked)
    assert (loops.run["sync"], loops.run["loop_seconds"]) == ("loop", 0.002)
    calls = {case["routine"]: case["calls"] for case in loops.cases}
    assert all(1 <= number <= 10_000 for number in calls.values())
    assert calls["control_compute"] > 1 and calls["reduce_local_sum"] > 1
    fastest = [
        next(min(case["t_min"]) for case in some.cases if case["routine"] == "control_compute")
        for some in (loops, once)
    ]
    assert 0.3 < fastest[0] / fastest[1] < 3
    assert "calls" not in once.cases[0]
    believed = read_launch(tmp_path / "loop.jsonl")
    assert len(believed.cases) == 5 and believed.sync == "loop"
    assert all(np.isfinite(case.t_max).all() for case in believed.cases)


@pytest.mark.parametrize(("fault", "routine"), [("skip", "allgather"), ("local", "reduce_local_sum")])
@pytest.mark.parametrize("family", FAMILIES)
def test_what_the_calls_of_a_loop_brought_is_looked_at(
    family: str, fault: str, routine: str, tmp_path: Path
) -> None:
    """Each local reduction adds to the result of the one before, so that the sum tells how many there were."""
    ended = program(family).run(
        *(2, *LOOP, "--routine", f"{routine}:8", "--output", str(tmp_path / "out.jsonl")),
        wrapper=preload(library(family, "wrong_data")),
        variables={"PLUMBLINE_FAULT": fault, "PLUMBLINE_FAULT_AFTER": "1"},
    )
    assert ended.status == 1
    assert any("in trial 1" in line for line in ended.complaints)
