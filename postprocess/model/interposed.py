"""What is loaded in front of the MPI, in its place or below it, by its run record.

What is in front may slow or damage any call; by what is below, messages travel.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

INTERPOSED = "interposed"  #: in run records a list of objects; a circumstance, where there are any
ELSEWHERE = "interposed_elsewhere"  #: in run records: a rank with other objects, and these
BELOW = "libraries_below"  #: a circumstance: version and hash of each library below the MPI, by its name
BELOW_RECORD = "below"  #: the list of these libraries in run records
DELAY_LIBRARY = "libdelay.so"  #: of the self-test, which its plan declares
WITNESS = "lib/libwitness.so"  #: below the prefix of mpicost
SEPARATOR = " | "  #: between the lines of a circumstance
HASH_SHOWN = 8  #: digits


#: File names of the libraries that MPICH, Intel MPI and Open MPI are.
OF_AN_MPI = re.compile(r"lib(p?mpi|p?mpich|mpi_\w+)\.so(\.\d+)*")


def is_replacing(described: str) -> bool:
    """Return whether one of the objects of :func:`describe_interposed` has the name of an MPI's own library."""
    names = (word.partition(" ")[0] for word in described.split(SEPARATOR))
    return any(map(OF_AN_MPI.fullmatch, names))


def describe_standing(described: str) -> str:
    """Describe in words where such objects stand: in front of the MPI, or in the place of its own library."""
    if is_replacing(described):
        return f"{described} stands in the place of the MPI's own library"
    return f"{described or 'nothing'} is loaded in front of the MPI"


def list_interposed(run: Mapping[str, Any]) -> list[str]:
    return [PurePath(each["path"]).name for each in run.get(INTERPOSED, ())]


def describe_interposed(objects: Sequence[Mapping[str, str]]) -> str:
    """Describe objects by name and a hash of their instructions, without the self-test's; empty for none."""
    named = [(PurePath(each["path"]).name, each["text"][:HASH_SHOWN]) for each in objects]
    return SEPARATOR.join(f"{name} ({text})" for name, text in named if name != DELAY_LIBRARY)


def describe_below(run: Mapping[str, Any]) -> dict[str, str]:
    """Describe the libraries below an MPI that a launch has loaded: version and hash of each, by its name."""
    return {
        each["name"]: f"{each['version']} ({each['text'][:HASH_SHOWN]})".lstrip()
        for each in run.get(BELOW_RECORD, ())
    }


def describe_differing_ranks(run: Mapping[str, Any]) -> str:
    """Name a rank with other objects in front of its MPI than rank 0, in one line; empty if none has."""
    if ELSEWHERE not in run:
        return ""
    ours, theirs = (", ".join(list_interposed(each)) or "nothing" for each in (run, run[ELSEWHERE]))
    fix = "set LD_PRELOAD and /etc/ld.so.preload alike on all nodes"
    rank = run[ELSEWHERE]["rank"]
    return f"rank {rank} has loaded {theirs} in front of its MPI, and rank 0 {ours}; {fix}"


INJECTION_PREFIX = "PLUMBLINE_DELAY_"  #: of every variable that the library reads or sets
#: Set by the library: ``1`` in a launch that it delays, ``0`` in another
TOLD = f"{INJECTION_PREFIX}PLANTED"
LIBRARY = f"lib/{DELAY_LIBRARY}"  #: below the prefix of mpicost


def describe_unplanned_injection(run: Mapping[str, Any], planted: bool) -> str:
    """Describe a launch that was delayed and not planned so, or the other way round; empty for any other.

    :param planted: whether the plan says that delays are planted into it
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
    """Return whether the library delayed this launch; it may delay only a fraction of launches."""
    return run.get("environment", {}).get(TOLD) == "1"
