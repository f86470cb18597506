"""The tournament of mpicost: every rank plays with every other once, and every pair's times are kept."""

import subprocess
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postprocess.parsers.mpicost import read_launch
from tests.support.mpicost import (
    EVICTED,
    FAMILIES,
    TINY,
    Program,
    Records,
    library,
    lines,
    preload,
    program,
    read,
)
from tests.support.simgrid import simulated

TOURNAMENT = ("--routine", "tournament:8:80", "--trials", "3")


def rounds(processes: int) -> int:
    return processes - 1 + processes % 2


def partners(processes: int) -> list[list[int]]:
    """Partner of each rank in each round, as the C code says."""
    done = subprocess.run(
        [program("mpich").build / "tournament_driver"],
        input=f"{processes}\n",
        capture_output=True,
        text=True,
        check=True,
    )
    head, *rows = done.stdout.splitlines()
    assert head == f"{processes} processes {len(rows)} rounds"
    return [[int(word) for word in row.split()] for row in rows]


def games(row: Sequence[int]) -> list[tuple[int, int]]:
    """The pairs of a round, lower rank first."""
    return [(rank, partner) for rank, partner in enumerate(row) if rank < partner]


@given(st.integers(min_value=2, max_value=200))
@settings(max_examples=60)
def test_every_pair_meets_exactly_once(processes: int) -> None:
    table = partners(processes)
    assert len(table) == rounds(processes)
    for row in table:
        assert all(row[partner] == rank != partner for rank, partner in enumerate(row) if partner >= 0)
        assert row.count(-1) == processes % 2
    played = sorted(game for row in table for game in games(row))
    assert played == list(combinations(range(processes), 2))


def test_a_single_process_has_no_round() -> None:
    assert partners(1) == []


def measured(run: Program, processes: int, file: Path, *options: str) -> Records:
    """A tournament whose records hold what they must."""
    records = run.measure(processes, file, *TOURNAMENT, *options)
    read_launch(file)
    for case in records.cases:
        times = np.array([pair["t"] for pair in case["pairs"]])
        assert times.max(axis=0).tolist() == case["t_max"]
        assert (times >= case["t_min"]).all()
    return records


def check_all_rounds(records: Records, processes: int) -> None:
    """Each size has each round, with the pairs that the circle method gives."""
    table = partners(processes)
    found = {
        (case["bytes"], case["peer"]): [(pair["a"], pair["b"]) for pair in case["pairs"]]
        for case in records.cases
    }
    assert found == {(size, number): games(row) for size in (8, 80) for number, row in enumerate(table, 1)}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("processes", [2, 3, 5])
def test_all_rounds(family: str, processes: int, tmp_path: Path) -> None:
    records = measured(program(family), processes, tmp_path / "a", *EVICTED)
    check_all_rounds(records, processes)


@pytest.mark.parametrize("processes", [2, 7, 8])
def test_all_rounds_in_simulated_time(processes: int, tmp_path: Path) -> None:
    """Pairs of a round do not wait for each other: on a torus the near ones are the fast ones."""
    records = measured(simulated(), processes, tmp_path / "a", "--cache", "warm")
    check_all_rounds(records, processes)
    if processes == 8:  # a ring: rank 0 is one link from ranks 1 and 7, four from rank 4
        times = {
            (pair["a"], pair["b"]): np.median(pair["t"])
            for case in records.cases
            for pair in case["pairs"]
            if case["bytes"] == 80
        }
        assert times[0, 4] > 1.5 * times[0, 1]
        assert times[0, 7] == pytest.approx(times[0, 1], rel=0.1)


@pytest.mark.parametrize("processes", [5, 9])
def test_how_ranks_are_released_is_in_no_time_of_a_pair(processes: int, tmp_path: Path) -> None:
    """Partners meet before they are timed. A start window has them all start at once, a barrier does not."""
    options = ("--cache", "warm", "--routine", "tournament:8", "--trials", "2")

    def times(sync: str) -> dict[tuple[int, int], float]:
        records = simulated().measure(processes, tmp_path / sync, *options, "--sync", sync)
        return {(pair["a"], pair["b"]): pair["t"][1] for case in records.cases for pair in case["pairs"]}

    together = times("window")
    assert len(together) == processes * (processes - 1) // 2
    for sync in ("dissemination", "barrier"):
        assert times(sync) == pytest.approx(together, rel=0.01)  # messages meet on the way


def test_sampling_that_goes_on_keeps_every_trial_of_every_pair(tmp_path: Path) -> None:
    options = ("--cache", "warm", "--trials", "40", "--relative-error", "0.0000001")
    records = measured(simulated(), 5, tmp_path / "a", *options)
    assert max(case["trials"] for case in records.cases) > 10


@pytest.mark.parametrize("trials", [4096, 5000])
def test_times_are_brought_to_rank_0_in_messages_of_any_length(trials: int, tmp_path: Path) -> None:
    """They are 32 KiB at most: 4,096 times of a pair fill one to the last byte."""
    file, options = tmp_path / "a", ("--routine", "tournament:8", "--peers", "3", "--cache", "warm")
    (case,) = simulated().measure(8, file, *options, "--trials", str(trials)).cases
    read_launch(file)
    pairs = [(pair["a"], pair["b"]) for pair in case["pairs"]]
    assert pairs == games(partners(8)[2])
    again = simulated().measure(8, tmp_path / "b", *options, "--trials", "10").cases[0]
    for pair, few in zip(case["pairs"], again["pairs"], strict=True):
        assert np.median(pair["t"]) == pytest.approx(np.median(few["t"]), rel=1e-3)


def test_peers_choose_rounds_of_every_routine_in_pairs() -> None:
    def listed(processes: int, *options: str) -> list[str]:
        ended = program("mpich").run(processes, "--list", *options)
        assert (ended.status, ended.complaints) == (0, [])
        return ended.output.splitlines()

    one = ("--routine", "tournament:8", "--peers", "3,1")
    assert listed(3, *one) == ["tournament 1 8", "tournament 3 8"]
    both = ("--routine", "tournament:8,pingpong:8,barrier", "--peers", "2")
    assert listed(3, *both) == ["pingpong 2 8", "barrier 0 0", "tournament 2 8"]
    assert len(listed(3, "--routine", "tournament:8,pingpong:8")) == 3 + 2
    assert listed(2, "--routine", "tournament") == ["tournament 1 8", "tournament 1 1000000"]
    assert listed(2, "--routine", "tournament", "--bytes", "16") == ["tournament 1 16"]


@pytest.mark.parametrize(
    ("processes", "routines", "peer"),
    [(3, "tournament", "4"), (4, "tournament", "4"), (3, "tournament,pingpong", "3")],
)
def test_round_that_is_not_there(processes: int, routines: str, peer: str) -> None:
    ended = program("mpich").run(processes, *TINY, "--routine", routines, "--peers", peer)
    assert (ended.status, len(ended.complaints)) == (2, 1)
    assert f"has no peer '{peer}'" in ended.complaints[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_wrong_data_in_one_pair_is_found(family: str, tmp_path: Path) -> None:
    """Rank 1 receives one wrong element in its third game; which round that is, the order says."""
    file = tmp_path / "out.jsonl"
    variables = {"PLUMBLINE_FAULT": "recv", "PLUMBLINE_FAULT_AFTER": "7"}
    variables["PLUMBLINE_FAULT_BEFORE"] = "8"
    options = (*TINY, "--routine", "tournament:80", "--trials", "3", "--output", str(file))
    wrapper = preload(library(family, "wrong_data"))
    ended = program(family).run(4, *options, wrapper=wrapper, variables=variables)
    assert (ended.status, len(ended.complaints)) == (1, 1)
    assert "bytes 80: rank 1 index 9: " in ended.complaints[0]
    assert ended.complaints[0].endswith("in trial 2")
    cases = read(file).cases
    (wrong,) = (case for case in cases if not case["verified"])
    assert f"tournament peer {wrong['peer']} " in ended.complaints[0]
    assert cases.index(wrong) == 1  # five receptions each: two in verification, three in trials
    assert not lines(file)[-1]["verified"]
