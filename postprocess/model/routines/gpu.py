"""Routines with buffers on a GPU, and the names of their cases."""

from __future__ import annotations

from postprocess.model.gpu import GPU
from site_configs.programs.program import PROGRAMS

TRIALS: int = PROGRAMS[GPU].options["trials"]

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
