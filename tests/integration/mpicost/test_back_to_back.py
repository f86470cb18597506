"""mpicost as OSU and IMB time: untimed calls first, and nothing but a barrier between trials."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from postprocess.parsers.mpicost import read_launch
from postprocess.stats.headline import bound_slowest_mean
from tests.support.mpicost import FAMILIES, TINY, library, preload, program, read

CALLS, TRIALS = 7, 5
WARM = ("--cache", "warm", "--sync", "barrier")
OPTIONS = (*WARM, "--back-to-back", str(CALLS), "--trials", str(TRIALS), "--bytes", "80")

WRONG = {
    "flushed": ((*TINY, "--back-to-back", "5"), "--back-to-back"),
    "with a window": (("--cache", "warm", "--sync", "window", "--back-to-back", "5"), "--sync window"),
    "no number": ((*WARM, "--back-to-back", "few"), "--back-to-back few"),
    "negative": ((*WARM, "--back-to-back", "-1"), "--back-to-back -1"),
    "too many": ((*WARM, "--back-to-back", "1000001"), "--back-to-back 1000001"),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("options", "named"), WRONG.values(), ids=WRONG.keys())
def test_wrong_use(family: str, options: tuple[str, ...], named: str) -> None:
    ended = program(family).run(2, *options)
    assert (ended.status, ended.output, len(ended.complaints)) == (2, "", 1)
    assert named in ended.complaints[0]


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
    options = (*WARM, "--back-to-back", "3", "--trials", "40", "--relative-error", "0.9")
    records = program("mpich").measure(2, tmp_path / "out.jsonl", *options, "--routine", "alltoall:8")
    assert records.cases[0]["trials"] % 10 == 0 and records.run["back_to_back"] == 3
