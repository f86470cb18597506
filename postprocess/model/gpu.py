"""MPI calls on GPU memory: the cases, and the GPUs of a launch from its records."""

from collections.abc import Mapping
from typing import Any

from postprocess.base.strict_json import JsonObject
from site_configs.topology.gpus import VENDORS

GPU = "gpu"  #: name of the program, and key of its GPUs in the run record
FACTS = ("name", "bus", "vendor")  #: texts in the record of each rank's GPU

#: Where the send and the receive buffer are: on the GPU, in managed memory, or on the host
LETTERS = {"D": "device", "M": "managed", "H": "host"}
IN_PAIRS = ("DD", "DH", "HD", "MM", "HH")  #: for routines with a sender and a receiver
OF_ALL = ("DD", "HH")  #: for collective routines; host buffers show what the GPU costs

#: Bytes by routine of mpicost, as in ``mpicost --family gpu``.
SIZES = {
    "pingpong": (8, 10_000, 1_000_000),
    "rightshift": (8, 1_000_000),
    "bcast": (8, 1_000_000),
    "scatter": (8, 100_000),
    "gather": (8, 100_000),
    "allgather": (8, 10_000),
    "alltoall": (8, 100_000),
    "reduce_sum": (8, 1_000_000),
    "allreduce_sum": (8, 10_000, 1_000_000),
    "scan_sum": (8, 1_000_000),
}

#: Bytes by case name, in the order of the suite.
BYTES = {
    f"{routine}.{memory}": sizes
    for routine, sizes in SIZES.items()
    for memory in (IN_PAIRS if routine == "pingpong" else OF_ALL)
}


def split_name(name: str) -> tuple[str, str]:
    """Split the name of a case, ``bcast.DD``, into routine and memory; the memory may be empty."""
    routine, _, memory = name.partition(".")
    return (routine, memory) if len(memory) == 2 and set(memory) <= set(LETTERS) else (name, "")


def check_gpu_record(entry: JsonObject) -> None:
    """Check that a run record names a GPU for each rank if its program is ``gpu``, and none otherwise.

    :raises ValueError: if it does not.
    """
    if (GPU in entry.fields) is not (entry.text("program") == GPU):
        state = "is there" if GPU in entry.fields else "is missing"
        raise ValueError(f"{GPU}: {state} in a record of {entry.text('program')}")
    if GPU not in entry.fields:
        return
    record = entry.object(GPU)
    record.word("kind", tuple(VENDORS))
    record.text("library")
    record.integer("version")
    ranks = record.objects("ranks")
    if [rank.integer("rank") for rank in ranks] != list(range(entry.integer("processes"))):
        raise ValueError(f"{GPU}: ranks: are not those from 0 to processes - 1, in turn")
    for rank in ranks:
        rank.integer("index")
        for fact in FACTS:
            rank.get(fact, str)


def explain_wrong_gpu(run: Mapping[str, Any], kind: str) -> str:
    """Explain why not every rank had its own GPU of this kind; empty if it had.

    The kernel's list of PCI devices is decisive: a library that imitates a driver cannot change it, and serves
    host memory.
    """
    if GPU not in run:
        return f"it records no GPU, but the site says {kind}"
    record = run[GPU]
    taken: dict[tuple[str, str], int] = {}
    if record["kind"] != kind:
        return f"its buffers are on GPUs of kind {record['kind']}, and the site says {kind}"
    for rank, place in zip(record["ranks"], run["ranks"], strict=True):
        where = f"rank {rank['rank']} on {place['host']}"
        name = f"{rank['name']!r} at {rank['bus'] or 'no address'}"
        if rank["vendor"] != VENDORS[kind]:
            there = f"has {rank['vendor']} there" if rank["vendor"] else "has nothing there"
            what = f"{where}: GPU {name} is none: the PCI bus {there}, not {VENDORS[kind]}"
            return f"{what}; {record['library']} stands in for a driver, with memory of the host"
        gpu = (place["host"], rank.get("uuid") or rank["bus"])
        if gpu in taken:
            fix = "see gpus of the partition, and what the launcher shows each rank"
            return f"{where} has the GPU of rank {taken[gpu]}, {name}, and not one of its own; {fix}"
        taken[gpu] = rank["rank"]
    return ""


def describe_gpus(run: Mapping[str, Any]) -> str:
    """Describe the kinds of GPUs of a launch in one line, ``NVIDIA H100, ECC on``; empty if it had none."""
    ranks = run.get(GPU, {}).get("ranks", ())
    ecc = {1: ", ECC on", 0: ", ECC off"}
    return " + ".join(sorted({rank["name"] + ecc.get(rank.get("ecc"), "") for rank in ranks}))
