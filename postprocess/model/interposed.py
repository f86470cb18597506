"""Libraries in front of the MPI, in its place or below it, from the run record.

A library in front may slow or damage any call. Libraries below carry the messages.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

INTERPOSED = "interposed"  #: a list of objects in run records; a circumstance if there are any
ELSEWHERE = "interposed_elsewhere"  #: key in run records: a rank with other objects, and what it has loaded
BELOW = "libraries_below"  #: a circumstance: version and hash of each library below the MPI, by name
BELOW_RECORD = "below"  #: the list of these libraries in run records
DELAY_LIBRARY = "libdelay.so"  #: library of the self-test; its plan declares it
WITNESS = "lib/libwitness.so"  #: relative to the prefix of mpicost
SEPARATOR = " | "  #: between the parts of a circumstance
HASH_SHOWN = 8  #: digits


#: File names of the libraries of MPICH, Intel MPI and Open MPI.
OF_AN_MPI = re.compile(r"lib(p?mpi|p?mpich|mpi_\w+)\.so(\.\d+)*")


def is_replacing(described: str) -> bool:
    """Return whether an object of :func:`describe_interposed` is named like an MPI's own library."""
    names = (word.partition(" ")[0] for word in described.split(SEPARATOR))
    return any(map(OF_AN_MPI.fullmatch, names))


def describe_standing(described: str) -> str:
    """Say where such objects are: in front of the MPI, or in the place of its own library."""
    if is_replacing(described):
        return f"{described} stands in the place of the MPI's own library"
    return f"{described or 'nothing'} is loaded in front of the MPI"


def list_interposed(run: Mapping[str, Any]) -> list[str]:
    return [PurePath(entry["path"]).name for entry in run.get(INTERPOSED, ())]


def describe_interposed(objects: Sequence[Mapping[str, str]]) -> str:
    """Describe objects by name and hash of their code, without the self-test's library; empty for none."""
    named = [(PurePath(entry["path"]).name, entry["text"][:HASH_SHOWN]) for entry in objects]
    return SEPARATOR.join(f"{name} ({text})" for name, text in named if name != DELAY_LIBRARY)


def describe_below(run: Mapping[str, Any]) -> dict[str, str]:
    """Describe the loaded libraries below the MPI: version and hash, by name."""
    return {
        library["name"]: f"{library['version']} ({library['text'][:HASH_SHOWN]})".lstrip()
        for library in run.get(BELOW_RECORD, ())
    }


def describe_differing_ranks(run: Mapping[str, Any]) -> str:
    """Name a rank with other objects in front of its MPI than rank 0, in one line; empty without one."""
    if ELSEWHERE not in run:
        return ""
    ours, theirs = (", ".join(list_interposed(record)) or "nothing" for record in (run, run[ELSEWHERE]))
    fix = "set LD_PRELOAD and /etc/ld.so.preload alike on all nodes"
    rank = run[ELSEWHERE]["rank"]
    return f"rank {rank} has loaded {theirs} in front of its MPI, and rank 0 {ours}; {fix}"


INJECTION_PREFIX = "PLUMBLINE_DELAY_"  #: prefix of all variables that the library reads or sets
#: The library sets it: ``1`` in a launch that it delays, else ``0``
TOLD = f"{INJECTION_PREFIX}PLANTED"
LIBRARY = f"lib/{DELAY_LIBRARY}"  #: relative to the prefix of mpicost


def describe_unplanned_injection(run: Mapping[str, Any], planted: bool) -> str:
    """Describe how the delays of a launch differ from its plan.

    :param planted: whether delays are planned
    :returns: one line; empty if all is as planned
    """
    environment = run.get("environment", {})
    if planted:
        return "" if TOLD in environment else "the delays of the self-test were not planted"
    traces = sorted(name for name in environment if name.startswith(INJECTION_PREFIX))
    if DELAY_LIBRARY in environment.get("LD_PRELOAD", "") or DELAY_LIBRARY in list_interposed(run):
        traces.append("LD_PRELOAD")
    if not traces:
        return ""
    return f"{traces[0]} is set: delays are planted into it, which is for ./plumbline selftest only"


def is_delayed(run: Mapping[str, Any]) -> bool:
    """Return whether the library delayed this launch: it may delay only a fraction of the launches."""
    return run.get("environment", {}).get(TOLD) == "1"
