"""Recognise names of routines before ReFrame starts, because loading the checks takes seconds."""

import re
from functools import cache
from pathlib import Path

from postprocess.base.errors import find_near_word
from postprocess.base.files import read_text
from postprocess.model.routines.mpicost import KERNEL_ROUTINES, ROUTINES
from postprocess.model.routines.requested import REQUESTED

#: The checks, and the modules from which they take names.
SOURCES = ("reframe_checks", "postprocess/model/routines", "site_configs/mpi")
QUOTED = re.compile(r'"([a-z0-9_]+)"')  #: a string in a source
NAME = re.compile(r"([a-z0-9_]+)(\.\S+)?")  #: a routine, with its stem: ``ibcast`` of ``ibcast.pure``
PARTS = ("i", "neighbor_", "_sum", "_mt")  #: affixes that checks add to a name


def propose_routine(word: str) -> str:
    """Propose the routine that a word names or may be meant for; empty if none is near."""
    return find_near_word(word, [*(routine.name for routine in (*ROUTINES, *KERNEL_ROUTINES)), *REQUESTED])


def may_be_routine(word: str) -> bool:
    """Return whether a check may have a routine of this name: a string of its source, maybe with an affix."""
    named = NAME.fullmatch(word.lower())
    if named is None:
        return False
    stems = {named[1]}
    for part in PARTS:
        stems |= {stem.removeprefix(part).removesuffix(part) for stem in stems}
    return not {*stems, word}.isdisjoint(read_words())


@cache
def read_words() -> frozenset[str]:
    """Read all one-word strings in the checks' sources, in lower case."""
    root = Path(__file__).resolve().parents[3]
    files = [path for folder in SOURCES for path in (root / folder).rglob("*.py")]
    words = {word for path in files for word in QUOTED.findall(read_text(path).lower())}
    named = {routine.name.lower() for routine in (*ROUTINES, *KERNEL_ROUTINES)}
    return frozenset(words | named | REQUESTED)
