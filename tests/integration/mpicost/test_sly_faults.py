"""MPIs whose results pass where only a part of the bits is looked at, or the same data again."""

from pathlib import Path

import pytest

from postprocess.parsers.mpicost import read_launch
from tests.support.faults import Declared, each_of, plants
from tests.support.mpicost import library, preload, program, read

SHORT = ("--cache", "warm", "--trials", "5", "--settle", "0", "--seed", "3")
# fmt: off
#: Each fault, and the routine that it is planted into.
FAULTS = {
    "half_numbers": ("rightshift:8:8000", plants(
        "data", "the lower half of every number is lost", "MPI under mpicost itself", "", 1, "index 0: ")),
    "few_bits": ("rightshift:80", plants(
        "data", "the lowest 4 of 64 bits are lost", "MPI under mpicost itself", "", 1, "index ")),
    "one_bit": ("scatter:80", plants(
        "data", "one bit of the last element is wrong on the last rank",
        "MPI under mpicost itself", "", 1, "rank 2 index 9: ")),
    "single": ("scan_sum:80", plants(
        "data", "a sum in single precision", "MPI under mpicost itself", "", 1, "index 0: ")),
    "single_root": ("reduce_sum:80", plants(
        "data", "a sum in single precision, at the root only",
        "MPI under mpicost itself", "", 1, "rank 0 index 0: ")),
    "least": ("allreduce_sum:800", plants(
        "data", "the least bit of a sum is lost on one rank",
        "MPI under mpicost itself", "", 1, "rank 2 index ")),
    "fifth": ("reduce_sum:80", plants(
        "data", "a wrong result of the call that nobody times before the trials of a later visit",
        "MPI under mpicost itself", "", 1, "before timing")),
    "remembered": ("rightshift:80", plants(
        "data", "the first answer again", "MPI under mpicost itself", "", 1, "in trial 1")),
    "stale_half": ("rightshift:80", plants(
        "data", "half of the message before", "MPI under mpicost itself", "", 1, "index 5: ")),
    "stale_block": ("allgather:80", plants(
        "data", "a block of the call before", "MPI under mpicost itself", "", 1, "rank 0 index 20: ")),
    "last_block": ("alltoall:80", plants(
        "data", "a block that is not delivered", "MPI under mpicost itself", "", 1, "rank 2 index 20: -1 ")),
    "spoiled": ("gather:80", plants(
        "data", "a call that changes what it sends", "MPI under mpicost itself", "", 1, "rank 0 index 20: ")),
    "behind": ("scatter:80", plants(
        "data", "a byte written 64 bytes behind the result",
        "MPI under mpicost itself", "", 1, "rank 2 index 18: 164 ")),
    "before": ("scatter:80", plants(
        "data", "a byte written before the result",
        "MPI under mpicost itself", "", 1, "rank 2 index -1: 164 ")),
    "around": ("gather:80", plants(
        "data", "a byte written behind what is sent",
        "MPI under mpicost itself", "", 1, "rank 2 send buffer index 10: 164 ")),
    "idle_barrier": ("barrier", plants(
        "data", "a barrier that does nothing",
        "MPI under mpicost itself", "", 1, " s before the last had come, ")),
    "one_sided": ("barrier", plants(
        "data", "a barrier in which one rank waits for nobody", "MPI under mpicost itself", "", 1, " left ")),
    "deaf": ("barrier", plants(
        "data", "a barrier in which the last rank waits for nobody",
        "MPI under mpicost itself", "", 1, " left ")),
}
# fmt: on


#: Beside other work a rank may run so late that it hides who should have waited.
BARRIERS = {name: mark for name, (routine, mark) in FAULTS.items() if routine == "barrier"}


@pytest.mark.parametrize(
    "fault", each_of({name: mark for name, (_, mark) in FAULTS.items() if name not in BARRIERS})
)
def test_what_earlier_data_did_not_show_is_found(fault: str, tmp_path: Path, declared: Declared) -> None:
    find_wrong_data(fault, tmp_path, declared)


@pytest.mark.alone
@pytest.mark.parametrize("fault", each_of(BARRIERS))
def test_a_barrier_that_is_none_is_found(fault: str, tmp_path: Path, declared: Declared) -> None:
    find_wrong_data(fault, tmp_path, declared)


def find_wrong_data(fault: str, tmp_path: Path, declared: Declared) -> None:
    """Run the routine in an MPI with the fault; hold what mpicost says and records against the declaration."""
    file, (routine, _) = tmp_path / "out.jsonl", FAULTS[fault]
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
    routines = ",".join(dict.fromkeys(routine for routine, _ in FAULTS.values()))
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
