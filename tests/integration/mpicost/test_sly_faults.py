"""MPIs whose results pass where only a part of the bits is looked at, or the same data again."""

from __future__ import annotations

from pathlib import Path

import pytest

from postprocess.parsers.mpicost import read_launch
from tests.support.faults import Declared, plants
from tests.support.mpicost import library, preload, program, read

SHORT = ("--cache", "warm", "--trials", "5", "--settle", "0", "--seed", "3")
WHERE = "MPI under mpicost itself"


def planted(what: str, message: str):
    """Declare an MPI whose results are wrong in a way that earlier data did not show."""
    return plants("data", what, WHERE, "", 1, message)


#: fault: (what is planted, where it is measured, what mpicost says)
FAULTS = {
    "half_numbers": ("the lower half of every number is lost", "rightshift:8:8000", "index 0: "),
    "few_bits": ("the lowest 4 of 64 bits are lost", "rightshift:80", "index "),
    "one_bit": ("one bit of the last element is wrong on the last rank", "scatter:80", "rank 2 index 9: "),
    "single": ("a sum in single precision", "scan_sum:80", "index 0: "),
    "single_root": ("the same at the root", "reduce_sum:80", "rank 0 index 0: "),
    "least": ("the least bit of a sum is lost on one rank", "allreduce_sum:800", "rank 2 index "),
    "remembered": ("the first answer again", "rightshift:80", "in trial 1"),
    "stale_half": ("half of the message before", "rightshift:80", "index 5: "),
    "stale_block": ("a block of the call before", "allgather:80", "rank 0 index 20: "),
    "last_block": ("a block that is not delivered", "alltoall:80", "rank 2 index 20: -1 "),
    "spoiled": ("a call that changes what it sends", "gather:80", "rank 0 index 20: "),
    "behind": ("a byte written 64 bytes behind the result", "scatter:80", "rank 2 index 18: 164 "),
    "before": ("a byte written before the result", "scatter:80", "rank 2 index -1: 164 "),
    "around": ("a byte written behind what is sent", "gather:80", "rank 2 send buffer index 10: 164 "),
    "idle_barrier": ("a barrier that does nothing", "barrier", " s before the last had come, "),
    "one_sided": ("a barrier in which one rank waits for nobody", "barrier", " left "),
    "deaf": ("the same of the last rank", "barrier", " left "),
}  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "routine"),
    [
        pytest.param(fault, routine, marks=planted(what, message), id=fault)
        for fault, (what, routine, message) in FAULTS.items()
    ],
)
def test_what_earlier_data_did_not_show_is_found(
    fault: str, routine: str, tmp_path: Path, declared: Declared
) -> None:
    file = tmp_path / "out.jsonl"
    ended = program("mpich").run(
        *(3, *SHORT, "--routine", routine, "--output", str(file)),
        wrapper=preload(library("mpich", "sly_mpi")),
        variables={"PLUMBLINE_FAULT": fault},
    )
    declared.check((), ended.status, ended.complaints)
    assert not read(file).end["verified"]
    launch = read_launch(file)
    assert launch.wrong and not set(launch.wrong) & set(launch.measurements)


def test_the_library_alone_does_no_harm(tmp_path: Path) -> None:
    routines = ",".join(dict.fromkeys(routine for _, routine, _ in FAULTS.values()))
    ended = program("mpich").run(
        *(3, *SHORT, "--routine", routines.replace("rightshift:8:8000,", "")),
        wrapper=preload(library("mpich", "sly_mpi")),
        variables={"PLUMBLINE_FAULT": "none"},
    )
    assert (ended.status, ended.complaints) == (0, [])


@pytest.mark.parametrize("sync", ["window", "barrier"])
def test_a_barrier_is_looked_at_with_every_synchroniser(sync: str, tmp_path: Path) -> None:
    """With MPI_Barrier between the trials too, on a communicator of its own that works."""
    ended = program("mpich").run(
        *(2, *SHORT, "--sync", sync, "--routine", "barrier"),
        wrapper=preload(library("mpich", "sly_mpi")),
        variables={"PLUMBLINE_FAULT": "idle_barrier"},
    )
    assert ended.status == 1
    assert "before the last had come" in ended.complaints[0]
