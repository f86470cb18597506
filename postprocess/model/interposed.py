"""What is loaded in front of the MPI or in its place, by its run record: it may slow or damage any call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

INTERPOSED = "interposed"  #: in run records a list of objects; a circumstance, where there are any
ELSEWHERE = "interposed_elsewhere"  #: in run records: a rank with other objects, and these
DELAY_LIBRARY = "libdelay.so"  #: of the self-test, which its plan declares
WITNESS = "lib/libwitness.so"  #: below the prefix of mpicost
SEPARATOR = " | "  #: between the lines of a circumstance
HASH_SHOWN = 8  #: digits


#: File names of the libraries that MPICH, Intel MPI and Open MPI are.
OF_AN_MPI = re.compile(r"lib(p?mpi|p?mpich|mpi_\w+)\.so(\.\d+)*")


def is_replacing(described: str) -> bool:
    """Return whether one of the objects of :func:`describe_interposed` has the name of an MPI's own library."""
    names = (each.partition(" ")[0] for each in described.split(SEPARATOR))
    return any(map(OF_AN_MPI.fullmatch, names))


def describe_standing(described: str) -> str:
    """Describe in words where such objects stand: in front of the MPI, or in the place of its own library."""
    if is_replacing(described):
        return f"{described} stands in the place of the MPI's own library"
    return f"{described or 'nothing'} is loaded in front of the MPI"


def list_interposed(run: Mapping[str, Any]) -> list[str]:
    """Name the objects in front of the MPI of a run."""
    return [PurePath(each["path"]).name for each in run.get(INTERPOSED, ())]


def describe_interposed(objects: Sequence[Mapping[str, str]]) -> str:
    """Describe objects by name and a hash of their instructions, without the self-test's; empty for none."""
    named = [(PurePath(each["path"]).name, each["text"][:HASH_SHOWN]) for each in objects]
    return SEPARATOR.join(f"{name} ({text})" for name, text in named if name != DELAY_LIBRARY)


def describe_differing_ranks(run: Mapping[str, Any]) -> str:
    """Name a rank with other objects in front of its MPI than rank 0, in one line; empty if none has."""
    if ELSEWHERE not in run:
        return ""
    ours, theirs = (", ".join(list_interposed(each)) or "nothing" for each in (run, run[ELSEWHERE]))
    fix = "set LD_PRELOAD and /etc/ld.so.preload alike on all nodes"
    rank = run[ELSEWHERE]["rank"]
    return f"rank {rank} has loaded {theirs} in front of its MPI, and rank 0 {ours}; {fix}"
