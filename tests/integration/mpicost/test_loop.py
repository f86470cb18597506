"""A trial that is a loop: many calls after one synchronisation, told per call, verified after the loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from postprocess.parsers.mpicost import read_launch
from tests.support.mpicost import FAMILIES, library, preload, program

WARM = ("--cache", "warm", "--trials", "4")
LOOP = (*WARM, "--sync", "loop", "--loop-seconds", "0.002")

WRONG = {
    "cold": (("--cache", "evict", "--sync", "loop"), "--sync loop: needs --cache warm"),
    "back to back": ((*LOOP, "--back-to-back", "5"), "--sync loop"),
    "no loop": ((*WARM, "--loop-seconds", "1"), "--loop-seconds: is of --sync loop only"),
    "no time": ((*LOOP, "--loop-seconds", "0"), "--loop-seconds 0"),
    "too long": ((*LOOP, "--loop-seconds", "11"), "--loop-seconds 11"),
}


@pytest.mark.parametrize(("options", "named"), WRONG.values(), ids=WRONG.keys())
def test_wrong_use(options: tuple[str, ...], named: str) -> None:
    ended = program("mpich").run(2, *options)
    assert (ended.status, ended.output, len(ended.complaints)) == (2, "", 1)
    assert named in ended.complaints[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_trial_is_many_calls_and_its_time_that_of_one(family: str, tmp_path: Path) -> None:
    """A chain of multiplications takes as long in a loop as alone, and fits into it more than once."""
    asked = ("--routine", "control_compute,bcast:8,pingpong:8,barrier,reduce_local_sum:8")
    loops = program(family).measure(2, tmp_path / "loop.jsonl", *LOOP, *asked)
    once = program(family).measure(2, tmp_path / "once.jsonl", *WARM, *asked)
    assert (loops.run["sync"], loops.run["loop_seconds"]) == ("loop", 0.002)
    calls = {each["routine"]: each["calls"] for each in loops.cases}
    assert all(1 <= number <= 10_000 for number in calls.values())
    assert calls["control_compute"] > 1 and calls["reduce_local_sum"] > 1
    fastest = [
        next(min(each["t_min"]) for each in some.cases if each["routine"] == "control_compute")
        for some in (loops, once)
    ]
    assert 0.3 < fastest[0] / fastest[1] < 3
    assert "calls" not in once.cases[0]
    believed = read_launch(tmp_path / "loop.jsonl")
    assert len(believed.cases) == 5 and believed.sync == "loop"
    assert all(np.isfinite(each.t_max).all() for each in believed.cases)


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
