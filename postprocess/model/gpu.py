"""Calls on the memory of GPUs: the cases, and the GPUs of a launch as its records tell them."""

from collections.abc import Mapping
from typing import Any

from postprocess.base.strict_json import JsonObject
from site_configs.topology.gpus import VENDORS

GPU = "gpu"  #: the program, and what its run record has that of no other has
FACTS = ("name", "bus", "vendor")  #: texts that each rank tells of its GPU

#: Where the send and the receive buffer lie: on the GPU, where its driver moves them, or on the host
LETTERS = {"D": "device", "M": "managed", "H": "host"}
IN_PAIRS = ("DD", "DH", "HD", "MM", "HH")  #: of routines with a sender and a receiver
OF_ALL = ("DD", "HH")  #: of collective routines; those on the host show what the GPU costs

#: Bytes by routine of mpicost. ``mpicost --family gpu`` has the same.
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

#: Bytes by the name of the case, in the order of the suite.
BYTES = {
    f"{routine}.{memory}": sizes
    for routine, sizes in SIZES.items()
    for memory in (IN_PAIRS if routine == "pingpong" else OF_ALL)
}


def split_name(name: str) -> tuple[str, str]:
    """Split the name of a case into the routine of mpicost and its memory: ``bcast.DD``; no memory without."""
    routine, _, memory = name.partition(".")
    return (routine, memory) if len(memory) == 2 and set(memory) <= set(LETTERS) else (name, "")


def check_gpu_record(entry: JsonObject) -> None:
    """Check that a run record tells a GPU of each rank if its cases have buffers there, and none otherwise.

    :raises ValueError: if it does not.
    """
    if (GPU in entry.fields) is not (entry.text("program") == GPU):
        found = "is there" if GPU in entry.fields else "is missing"
        raise ValueError(f"{GPU}: {found} in a record of {entry.text('program')}")
    if GPU not in entry.fields:
        return
    told = entry.object(GPU)
    told.word("kind", tuple(VENDORS))
    told.text("library")
    told.integer("version")
    ranks = told.objects("ranks")
    if [each.integer("rank") for each in ranks] != list(range(entry.integer("processes"))):
        raise ValueError(f"{GPU}: ranks: are not those from 0 to processes - 1, in turn")
    for each in ranks:
        each.integer("index")
        for fact in FACTS:
            each.get(fact, str)


def explain_wrong_gpu(run: Mapping[str, Any], kind: str) -> str:
    """Explain why a launch had not one GPU of this kind a rank; empty if it had.

    The kernel lists what is on the PCI bus, which no library can make up: what stands in for a driver gives
    memory of the host.
    """
    if GPU not in run:
        return f"it tells of no GPU, and the site says {kind}"
    told = run[GPU]
    taken: dict[tuple[str, str], int] = {}
    if told["kind"] != kind:
        return f"its buffers are on GPUs of kind {told['kind']}, and the site says {kind}"
    for rank, place in zip(told["ranks"], run["ranks"], strict=True):
        where = f"rank {rank['rank']} on {place['host']}"
        name = f"{rank['name']!r} at {rank['bus'] or 'no address'}"
        if rank["vendor"] != VENDORS[kind]:
            there = f"has {rank['vendor']} there" if rank["vendor"] else "has nothing there"
            what = f"{where}: GPU {name} is none: the PCI bus {there}, not {VENDORS[kind]}"
            return f"{what}; {told['library']} stands in for a driver, with memory of the host"
        own = (place["host"], rank.get("uuid") or rank["bus"])
        if own in taken:
            fix = "see gpus of the partition, and what the launcher shows each rank"
            return f"{where} has the GPU of rank {taken[own]}, {name}, and not one of its own; {fix}"
        taken[own] = rank["rank"]
    return ""


def describe_gpus(run: Mapping[str, Any]) -> str:
    """Describe the kinds of GPUs of a launch in one line, ``NVIDIA H100, ECC on``; empty if it had none."""
    ranks = run.get(GPU, {}).get("ranks", ())
    ecc = {1: ", ECC on", 0: ", ECC off"}
    return " + ".join(sorted({rank["name"] + ecc.get(rank.get("ecc"), "") for rank in ranks}))
