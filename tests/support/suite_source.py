"""The table of routines as the source of the suite has it: what Python knows of mpicost is held against it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.support.paths import SUITE

SOURCE = SUITE / "src" / "routines.c"
ENTRY = re.compile(
    r'\{"(?P<name>\w+)", [^{}]*\{(?P<sizes>[^{}]*)\},\s*(?P<sends>\w+), (?P<receives>\w+), '
    r"(?P<operation>\w+), \w+, COMBINE_(?P<combine>\w+), SCALING_(?P<scaling>\w+), PAIRING_(?P<pairing>\w+)\}"
)
NAME = re.compile(r'^    \{"(\w+)"', re.M)


@dataclass(frozen=True)
class Entry:
    """A routine in the words of the C source."""

    name: str
    sizes: tuple[
        str, ...
    ]  #: of both papers, of either, and on request; ``NULL`` or a list in quotes
    sends: str  #: the function that counts blocks
    receives: str
    operation: str  #: the function that is timed
    combine: str
    scaling: str
    pairing: str
    calls: frozenset[str]  #: MPI functions that the timed function calls


def read_entries() -> list[Entry]:
    """All routines, in the order of the source.

    :raises ValueError: if an entry is not understood.
    """
    source = SOURCE.read_text()
    found = []
    for match in ENTRY.finditer(source):
        words = match.groupdict()
        sizes = tuple(re.findall(r'NULL|"[^"]*"', words.pop("sizes")))
        found.append(Entry(**words, sizes=sizes, calls=_calls(source, words["operation"])))
    if [each.name for each in found] != NAME.findall(source):
        raise ValueError(f"{SOURCE}: an entry is not understood")
    return found


def _calls(source: str, function: str) -> frozenset[str]:
    body = re.search(rf"^static void {function}\(.*?^\}}", source, re.M | re.S)
    return frozenset(re.findall(r"\bMPI_[A-Z][a-z_]+(?=\()", body[0]) if body else ())
