"""The library with which the self-test plants delays: what it delays, by how much, and what it leaves alone."""

import json
import statistics
import subprocess
from pathlib import Path

import pytest

from tests.support.mpicost import TINY, Ended, Program, program, read
from tests.support.witness import FAMILIES, OTHER, family_here

ROUTINES = ("--routine", "bcast:8:10000:1000000,allreduce_sum:8,barrier,pingpong:8")
TRIALS = 7
CALLS = TRIALS + 2  #: of a case: one before the timing and one after it verify
LATE = range(6, 15)  #: barriers to which a rank comes late on purpose: more where the others come later still


@pytest.fixture(params=FAMILIES)
def mpicost(request: pytest.FixtureRequest) -> Program:
    return program(family_here(request.param))


def library(built: Program) -> Path:
    return built.build / "libdelay.so"


def delayed(built: Program, file: Path, *options: str, loaded: Path | None = None, **order: str) -> Ended:
    """mpicost on two processes with the library in front of it; ``order`` without its prefix."""
    variables = [f"PLUMBLINE_DELAY_{name}={value}" for name, value in order.items()]
    wrapper = ["env", f"LD_PRELOAD={loaded or library(built)}", *variables]
    words = (f"--output={file}", f"--trials={TRIALS}", "--rounds=1", *TINY, *options)
    return built.run(2, *words, wrapper=wrapper)


def counts(path: Path) -> dict[tuple[str, int], dict[str, float]]:
    """What every rank delayed, by function and rank."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {(each["function"], each["rank"]): each for each in lines}


def test_exactly_the_calls_that_were_ordered_are_delayed(mpicost: Program, tmp_path: Path):
    """One function, one size range, one rank; every other call goes through as it came."""
    order = {"FRACTION": "0.5", "ROUTINES": "MPI_Bcast", "LEAST": "10000", "MOST": "999999"}
    told = tmp_path / "counts"
    ended = delayed(mpicost, tmp_path / "r.jsonl", *ROUTINES, RANK="1", COUNTS=str(told), **order)
    assert ended.status == 0, ended
    found = counts(told)
    expected = {("MPI_Bcast", 0): (3 * CALLS, 0), ("MPI_Bcast", 1): (3 * CALLS, CALLS)}
    assert {name: (each["calls"], each["delayed"]) for name, each in found.items()} == expected
    one = found["MPI_Bcast", 1]
    assert 0.5 * one["took"] - CALLS * 2e-9 <= one["added"]
    assert found["MPI_Bcast", 0]["added"] == 0


def test_all_delays_every_measured_call_and_no_synchronisation(mpicost: Program, tmp_path: Path):
    told = tmp_path / "counts"
    order = {"FRACTION": "0.07", "ROUTINES": "all", "COUNTS": str(told)}
    assert delayed(mpicost, tmp_path / "r.jsonl", *ROUTINES, **order).status == 0
    cases = {"MPI_Bcast": 3, "MPI_Allreduce": 1, "MPI_Send": 1, "MPI_Recv": 1}
    found = {name: each["delayed"] for name, each in counts(told).items()}
    late = {found.pop(("MPI_Barrier", rank)) - CALLS for rank in (0, 1)}
    assert found == {(name, rank): number * CALLS for name, number in cases.items() for rank in (0, 1)}
    assert len(late) == 1 and late < set(LATE)


def test_calls_that_settle_the_library_come_before_the_trials(mpicost: Program, tmp_path: Path):
    """A library is slow until it has touched its memory: what a few cases took would look slow beside many."""
    told = tmp_path / "counts"
    order = {"FRACTION": "0.01", "ROUTINES": "MPI_Bcast", "COUNTS": str(told)}
    assert delayed(mpicost, tmp_path / "r.jsonl", "--routine=bcast:8", "--settle=0.01", **order).status == 0
    assert all(CALLS < each["calls"] <= CALLS + 256 for each in counts(told).values())


@pytest.mark.alone
def test_delayed_trials_are_slower(mpicost: Program, tmp_path: Path):
    """Every other call is delayed, so both kinds see the same machine; by so much that a busy one shows it."""
    file = tmp_path / "r.jsonl"
    order = {"FRACTION": "100", "ROUTINES": "MPI_Bcast", "CALLS": "0.5"}
    assert delayed(mpicost, file, "--routine=bcast:8", "--trials=41", **order).status == 0
    (case,) = read(file).cases
    slow, fast = (statistics.median(case["t_max"][first::2]) for first in (0, 1))
    assert slow > 3 * fast


@pytest.mark.parametrize(("share", "planted"), [("1", "1"), ("0", "0")])
def test_the_record_tells_whether_the_launch_was_delayed(mpicost, tmp_path, share, planted):
    file, told = tmp_path / "r.jsonl", tmp_path / "counts"
    order = {"FRACTION": "0.5", "ROUTINES": "all", "LAUNCHES": share, "COUNTS": str(told)}
    assert delayed(mpicost, file, "--routine=barrier", **order).status == 0
    environment = read(file).run["environment"]
    assert environment["PLUMBLINE_DELAY_PLANTED"] == planted
    assert environment["PLUMBLINE_DELAY_FRACTION"] == "0.5"
    assert told.exists() == (planted == "1")


@pytest.mark.parametrize(
    ("order", "named"),
    [
        ({"ROUTINES": "all"}, "FRACTION"),
        ({"FRACTION": "0", "ROUTINES": "all"}, "FRACTION"),
        ({"FRACTION": "101", "ROUTINES": "all"}, "FRACTION"),
        ({"FRACTION": "nan", "ROUTINES": "all"}, "FRACTION"),
        ({"FRACTION": "0.1x", "ROUTINES": "all"}, "FRACTION"),
        ({"FRACTION": "0.1"}, "ROUTINES"),
        ({"FRACTION": "0.1", "ROUTINES": "MPI_Bcast,"}, "ROUTINES"),
        ({"FRACTION": "0.1", "ROUTINES": "MPI_Bcas"}, "ROUTINES"),
        ({"FRACTION": "0.1", "ROUTINES": "all", "LEAST": "-1"}, "LEAST"),
        ({"FRACTION": "0.1", "ROUTINES": "all", "MOST": "1k"}, "MOST"),
        ({"FRACTION": "0.1", "ROUTINES": "all", "RANK": "-1"}, "RANK"),
        ({"FRACTION": "0.1", "ROUTINES": "all", "LAUNCHES": "1.5"}, "LAUNCHES"),
        ({"FRACTION": "0.1", "ROUTINES": "all", "CALLS": "0"}, "CALLS"),
    ],
)
def test_a_wrong_order_is_refused(tmp_path: Path, order: dict[str, str], named: str):
    """Nothing is measured: nobody may take what was not planted for what was."""
    file = tmp_path / "r.jsonl"
    built = program("mpich")
    wrapper = ["env", f"LD_PRELOAD={library(built)}"]
    wrapper += [f"PLUMBLINE_DELAY_{name}={value}" for name, value in order.items()]
    done = subprocess.run(
        [*wrapper, str(built.build / "mpicost"), f"--output={file}", "--routine=barrier"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"delay: PLUMBLINE_DELAY_{named}: must be")
    assert not file.exists()


@pytest.mark.parametrize("family", OTHER)
def test_an_mpi_of_another_family_is_refused(family: str, tmp_path: Path):
    built, other = program(family), library(program(OTHER[family]))
    order = {"FRACTION": "0.1", "ROUTINES": "all"}
    assert delayed(built, tmp_path / "r.jsonl", "--routine=barrier", loaded=other, **order).status
    assert not (tmp_path / "r.jsonl").exists()


def test_the_library_brings_no_mpi_of_its_own(mpicost: Program):
    listed = subprocess.check_output(["readelf", "-d", library(mpicost)], text=True)
    assert "NEEDED" in listed
    assert "libmpi" not in listed
