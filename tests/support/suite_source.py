"""The table of routines as the source of the suite has it: what Python knows of mpicost is held against it."""

import re
from dataclasses import dataclass

from tests.support.paths import SUITE

SOURCE = SUITE / "src" / "routines.c"
COMPOSITIONS = SUITE / "src" / "compositions.c"
FAMILIES = SUITE / "src" / "family.c"
FAMILY = re.compile(r'\{"(?P<name>\w+)",\s*(?P<routines>(?:"[\w:,]+"\s*)+)\}')
ENTRY = re.compile(
    r'\{"(?P<name>\w+)", (?:\w+|"\w+"), "?(?P<sizes>[\d,]+|[A-Z]+)"?,\s*(?P<sends>\w+), (?P<receives>\w+), '
    r"(?P<operation>\w+), \w+, COMBINE_(?P<combine>\w+), SCALING_(?P<scaling>\w+), PAIRING_(?P<pairing>\w+)\}"
)
NAME = re.compile(r'^    \{"(\w+)"', re.M)


@dataclass(frozen=True)
class Entry:
    """A routine in the words of the C source."""

    name: str
    sizes: str  #: unless others are asked for, separated by commas; or a macro's name
    sends: str  #: the function that counts elements
    receives: str
    operation: str  #: the function that is timed
    combine: str
    scaling: str
    pairing: str
    calls: frozenset[str]  #: MPI functions that the timed function calls


def read_entries() -> list[Entry]:
    """All routines, in the order of the source. Raises ValueError if an entry is not understood."""
    source = SOURCE.read_text()
    timed = source + COMPOSITIONS.read_text()
    found = [
        Entry(**words, calls=_calls(timed, words["operation"]))
        for words in map(re.Match.groupdict, ENTRY.finditer(source))
    ]
    if [entry.name for entry in found] != NAME.findall(source):
        raise ValueError(f"{SOURCE}: an entry is not understood")
    return found


def read_families() -> dict[str, list[str]]:
    """The routines of each family, in the order of the source, without their sizes."""
    return {
        match["name"]: [
            entry.partition(":")[0] for entry in "".join(re.findall(r'"([^"]*)"', match["routines"])).split(",")
        ]
        for match in FAMILY.finditer(FAMILIES.read_text())
    }


def _calls(source: str, function: str) -> frozenset[str]:
    body = re.search(rf"^(?:static )?void {function}\(.*?^\}}", source, re.M | re.S)
    return frozenset(re.findall(r"\bMPI_[A-Z][a-z_]+(?=\()", body[0]) if body else ())
