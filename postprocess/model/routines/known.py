"""Which words may name a routine, before ReFrame starts: it takes seconds to load the checks, which tell it."""

import re
from functools import cache
from pathlib import Path

from postprocess.base.errors import find_near_word
from postprocess.base.files import read_text
from postprocess.model.routines.mpicost import KERNEL_ROUTINES, ROUTINES
from postprocess.model.routines.requested import REQUESTED

#: Checks, and the names that they take from elsewhere.
SOURCES = ("reframe_checks", "postprocess/model/routines", "site_configs/mpi")
QUOTED = re.compile(r'"([a-z0-9_]+)"')  #: what a source has as a string; its prose names no routine
NAME = re.compile(r"([a-z0-9_]+)(\.\S+)?")  #: of a routine, with its stem: ``ibcast`` of ``ibcast.pure``
PARTS = ("i", "neighbor_", "_sum", "_mt")  #: that checks add to a name


def propose_routine(word: str) -> str:
    """Propose the routine that a word is or may be meant for; empty if none is near."""
    return find_near_word(word, [*(routine.name for routine in (*ROUTINES, *KERNEL_ROUTINES)), *REQUESTED])


def may_be_routine(word: str) -> bool:
    """Return whether some check may have a routine of this name: one of its strings, alone or with a part."""
    named = NAME.fullmatch(word.lower())
    if named is None:
        return False
    stems = {named[1]}
    for part in PARTS:
        stems |= {each.removeprefix(part).removesuffix(part) for each in stems}
    return not {*stems, word}.isdisjoint(read_words())


@cache
def read_words() -> frozenset[str]:
    """Read all strings of one word in the checks' sources, in small letters."""
    root = Path(__file__).resolve().parents[3]
    files = [path for folder in SOURCES for path in (root / folder).rglob("*.py")]
    found = {word for path in files for word in QUOTED.findall(read_text(path).lower())}
    named = {routine.name.lower() for routine in (*ROUTINES, *KERNEL_ROUTINES)}
    return frozenset(found | named | REQUESTED)
