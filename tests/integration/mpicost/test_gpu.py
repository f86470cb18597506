"""Buffers on a GPU, with a stand-in for the driver whose memory nobody but its copies and the MPI may touch."""

from pathlib import Path

import pytest

from postprocess.model.gpu import BYTES, explain_wrong_gpu
from postprocess.parsers.mpicost import read_launch
from tests.support.faults import each_of, plants
from tests.support.mpicost import FAMILIES, Ended, library, preload, program

#: What opens each kind's library gets the stand-in.
SONAMES = {"cuda": "libcuda.so.1", "rocm": "libamdhip64.so"}
WARM = ("--cache", "warm", "--trials", "6")
#: One routine of each way to call the MPI, in all kinds of memory
EACH = (
    "pingpong.DD:8:10000,pingpong.DH:1000000,pingpong.HD:8,pingpong.MM:10000,pingpong.HH:8,bcast.DD:10000,"
    "allreduce_sum.DD:8,alltoall.DH:8,swap_first_persistent.DD:8,pingpong_buffered.DD:8"
)


def run(family: str, *words: str, kind: str = "cuda", **variables: str) -> Ended:
    """Start two ranks with the stand-in."""
    wrapper = preload(library(family, "standin_gpu", SONAMES[kind]))
    return program(family).run(2, *WARM, "--device", kind, *words, wrapper=wrapper, variables=variables)


@pytest.mark.parametrize(("family", "kind"), [*((family, "cuda") for family in FAMILIES), ("mpich", "rocm")])
def test_nobody_but_the_mpi_touches_a_buffer_on_a_gpu(family, kind, tmp_path: Path):
    """The stand-in's memory is protected outside of the MPI and of its own copies: a touch is a crash."""
    file = tmp_path / "out.jsonl"
    ended = run(family, "--routine", EACH, "--output", str(file), kind=kind)
    assert (ended.status, ended.complaints) == (0, []), ended.output
    launch = read_launch(file)
    assert launch.run["program"] == "gpu"
    asked = {(name, int(n)) for entry in EACH.split(",") for name, *sizes in [entry.split(":")] for n in sizes}
    assert {(case.routine, case.bytes) for case in launch.cases} == asked
    ranks = launch.run["gpu"]["ranks"]
    assert [rank["index"] for rank in ranks] == [0, 1]
    assert launch.run["gpu"]["kind"] == kind and launch.run["gpu"]["mpi_takes"] is True


@plants("data", "one wrong byte of each broadcast into memory of a GPU",
        "MPI", "", 1, "wrong data: bcast.DD … instead of …")  # fmt: skip
def test_wrong_data_on_a_gpu_is_noticed(declared):
    ended = run("mpich", "--routine", "bcast.DD:8", STANDIN_GPU="corrupt")
    declared.check((), ended.status, ended.complaints)


def test_a_launch_on_the_stand_in_is_none_on_a_gpu(tmp_path: Path):
    """So no number of it gets into a reference: nothing is on the PCI bus where it says that its GPUs are."""
    file = tmp_path / "out.jsonl"
    assert run("mpich", "--routine", "bcast.DD:8", "--output", str(file)).status == 0
    reason = explain_wrong_gpu(read_launch(file).run, "cuda")
    assert "the PCI bus has nothing there" in reason and "stands in for a driver" in reason


#: What the stand-in does wrong, and what must be said.
WRONG = {
    "no-driver": plants("environment", "GPU: a driver that does not start",
        "the driver of a GPU", "", 2, "no driver: libcuda.so.1 answers with error 100 on host …"),
    "no-device": plants("environment", "GPU: a driver that sees none",
        "the driver of a GPU", "", 2, "no GPU: libcuda.so.1 sees none on host …"),
    "disguise": plants("environment", "GPU: memory of the host given for it",
        "the driver of a GPU", "", 2, "host memory in disguise: libcuda.so.1 takes host …"),
    "no-memory": plants("environment", "GPU: no memory left",
        "the driver of a GPU", "", 2, "… bytes of a GPU's memory cannot be had: error 2 of libcuda.so.1"),
    "not-taken": plants("environment", "GPU: an MPI that takes none of its memory",
        "the driver of a GPU", "", 2, "this MPI says that it takes no memory of a GPU (cuda)"),
}  # fmt: skip


@pytest.mark.parametrize("fault", each_of(WRONG))
def test_a_gpu_that_cannot_be_used_is_named(fault, declared):
    ended = run("mpich", "--routine", "bcast.DD:8", STANDIN_GPU=fault)
    declared.check((), ended.status, ended.complaints)


@plants("environment", "GPU: no driver at all", "the machine", "", 2,
        "no driver: libcuda.so.1 cannot be opened: …")  # fmt: skip
def test_a_machine_without_a_driver_is_named(declared):
    ended = program("mpich").run(2, *WARM, "--routine", "bcast.DD:8")
    declared.check((), ended.status, ended.complaints)


def test_the_same_gpu_for_all_ranks_is_told(tmp_path: Path):
    file = tmp_path / "out.jsonl"
    words = ("--routine", "bcast.DD:8", "--output", str(file))
    assert run("mpich", *words, STANDIN_GPU="one-for-all").status == 0
    told = read_launch(file).run
    for rank in told["gpu"]["ranks"]:
        rank["vendor"] = "0x10de"  # as if it were on the bus
    assert "has the GPU of rank 0" in explain_wrong_gpu(told, "cuda")


@plants("use", "a GPU that is not there, buffers that not only the MPI touches, caches to be cooled",
        "options of `mpicost`", "", 2,
        "… no routine … | no GPU for rank … | … needs --cache warm: … | … says where its buffers lie, and … | "
        "… no case has buffers on a GPU")  # fmt: skip
@pytest.mark.parametrize(
    "words",
    [
        ("--routine", "bcast.DD:8", "--devices", "7,1"),
        ("--routine", "control_memory.DD"),
        ("--routine", "barrier.DD"),
        ("--routine", "bcast_as_sends.DD"),
        ("--routine", "sor_A.DD"),
        ("--routine", "bcast.DX"),
        ("--routine", "bcast.DD:8,bcast:8"),
        ("--routine", "bcast:8", "--devices", "0"),
        ("--routine", "bcast.DD:8", "--cache", "evict"),
    ],
)
def test_what_cannot_be_measured_on_a_gpu_is_refused(words, declared):
    ended = run("mpich", *words)
    declared.check((), ended.status, ended.complaints)


def test_the_family_is_that_of_the_table():
    told = program("mpich").run(2, "--cache", "warm", "--list", "--family", "gpu").output
    listed: dict[str, list[int]] = {}
    for name, _, size in map(str.split, told.splitlines()):
        listed.setdefault(name, []).append(int(size))
    assert {name: tuple(sizes) for name, sizes in listed.items()} == BYTES
