"""Reference files: the cost of each case on a healthy machine, as reviewed text.

``<root>/<system>/<partition>/<environment>.tsv`` has one case per row, sorted; its provenance is beside it in
``<environment>.provenance.json``. A file with any fault is refused as a whole.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.formats import MEGABYTES, RATIO, SECONDS, UNITS, parse_unit
from postprocess.base.strict_json import format_external
from postprocess.model.case import Case, ReferencePlace
from postprocess.model.reference import Prior, Reference
from postprocess.model.routines.benchmark import ROTATE
from postprocess.model.routines.mpicost import CACHES, SYNCHRONISERS
from postprocess.references import provenance
from postprocess.stats.priors import SPREAD_COLUMNS, Key

PATH = Path(__file__).parents[2] / "reference_data" / "session_spreads.tsv"


@cache
def load_session_priors(path: Path = PATH) -> dict[Key, Prior]:
    """Load the table by cache state and smallest size. Lines that begin with ``#`` name its source.

    :raises UsageError: names file, row and fix
    """
    try:
        lines = files.read_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}; restore the file") from None
    rows = [(n, line) for n, line in enumerate(lines, 1) if line and not line.startswith("#")]
    if not rows or tuple(rows[0][1].split("\t")) != SPREAD_COLUMNS or len(rows) == 1:
        raise UsageError(f"{path}: has not the columns {', '.join(SPREAD_COLUMNS)}; restore the file")
    priors = {}
    for number, line in rows[1:]:
        try:
            cache_state, least, spread, degrees, _, _ = line.split("\t")
            prior = Prior(float(spread), float(degrees))
            if not (0 < prior.spread < 1 and 1 <= prior.degrees < 1000):
                raise ValueError("spread or degrees out of range")
            priors[cache_state, int(least)] = prior
        except ValueError as error:
            raise UsageError(f"{path}: row {number}: {error}; restore the file") from None
    return priors


def lint_session_priors(path: Path) -> list[str]:
    try:
        load_session_priors(path)
    except UsageError as error:
        return [str(error)]
    return []


Row = TypeVar("Row")


def read_text(path: Path, fix: str) -> str:
    """Read a whole file. Raises ValueError, ``path: what is wrong; fix``."""
    try:
        return files.read_regular(path).decode()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; {fix}") from None
    except UnicodeDecodeError as error:
        row = error.object[: error.start].count(b"\n") + 1
        raise ValueError(f"{path}: row {row}: is not UTF-8 text; restore the file") from None


def parse_rows(
    name: str, text: str, columns: Sequence[str], read: Callable[[int, Mapping[str, str]], Row]
) -> tuple[dict[int, Row], list[str]]:
    """Parse the sound rows of a table, by row number (the header is row 1), and find all of its faults.

    :param read: converts a row, given its number and its cells by column, or raises ValueError
    """
    header, *lines = text.split("\n")
    if header != "\t".join(columns):
        return {}, [f"{name}: row 1: is not the header; it must read {' TAB '.join(columns)}"]
    if not lines or lines.pop():
        return {}, [f"{name}: row {len(lines) + 2}: is cut off; restore the file"]
    rows: dict[int, Row] = {}
    problems: list[str] = []
    for number, line in enumerate(lines, 2):
        try:
            rows[number] = read(number, _cells(line, columns))
        except ValueError as error:
            problems.append(f"{name}: row {number}: {error}")
    return rows, problems


def _cells(line: str, columns: Sequence[str]) -> dict[str, str]:
    cells = line.split("\t")
    if len(cells) != len(columns):
        raise ValueError(f"has {len(cells)} cells; write {len(columns)}, parted by tabs")
    return dict(zip(columns, cells, strict=True))


KEYS = ("program", "routine", "peer", "cache", "sync", "processes", "per_node", "bytes")
COLUMNS = (*KEYS, "unit", "center", "spread", "launches")
#: allowed in a cell
WORDS = {"cache": (*CACHES, ROTATE), "sync": SYNCHRONISERS, "unit": tuple(UNITS)}
HEADER = "\t".join(COLUMNS)
#: Known failures of a system, see :mod:`postprocess.references.decisions`
EXPECTED = "expected.tsv"
EXACT = "exact"  #: stands in the column ``spread``
INTEGER = re.compile(r"0|[1-9][0-9]{0,17}")
#: Smallest and largest numbers in a cell. Within them no band overflows, and none is so wide that all passes.
COUNTS = {
    "peer": (0, 10**8),
    "processes": (1, 10**8),
    "per_node": (1, 10**8),
    "bytes": (0, 10**15),
    "launches": (1, 10**6),
}
CENTERS: dict[str, tuple[float, float]] = {SECONDS: (1e-10, 1e6), MEGABYTES: (1e-6, 1e12), RATIO: (1e-6, 1e9)}
MOST_SPREAD = math.log(1000)  #: launches of one machine that differ by more mean nothing
NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


class ReferenceFileError(UsageError):
    """A reference file that cannot be used: one line with file, row and fix."""


def locate_references(root: Path, system: str, partition: str, environment: str) -> Path:
    """Return where the references of an environment are below ``root``, whether or not they exist."""
    return root / system / partition / f"{environment}.tsv"


def find_reference_file(roots: Sequence[Path], system: str, partition: str, environment: str) -> Path | None:
    """Find the reference file of an environment in the first root that has one, else None.

    Raises ReferenceFileError if that cannot be determined, as below an unreadable folder.
    """
    for root in roots:
        path = locate_references(root, system, partition, environment)
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise ReferenceFileError(f"{path}: {error.strerror}; make the folder readable") from None
        return path
    return None


def load_references(path: Path, system: str, partition: str, environment: str) -> dict[Case, Reference]:
    """Load the references of one environment by case. Raises ReferenceFileError with the first fault."""
    references, problems = _examine(path, system, partition, environment)
    if problems:
        raise ReferenceFileError(problems[0])
    return {reference.case: reference for reference in references}


def lint_reference_file(path: Path) -> list[str]:
    """Find every fault of a reference file, one line each; its path names its system and environment."""
    return _examine(path, *ReferencePlace.of_file(path))[1]


def lint_reference_files(root: Path) -> list[str]:
    """Find every fault of the reference files below ``root``, and files that are never read.

    ``historical`` has other tables and is ignored.
    """
    problems: list[str] = []
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if parts[0] == "historical":
            continue
        if path.name == PATH.name and len(parts) == 1:
            problems += lint_session_priors(path)
        elif path.suffix == ".tsv" and len(parts) == 3:
            problems += lint_reference_file(path)
        elif path.name == EXPECTED and len(parts) == 2:
            continue  # checked by :mod:`postprocess.references.decisions`
        elif path.suffix == ".tsv":
            problems.append(f"{path}: is never read; move it to SYSTEM/PARTITION/ENVIRONMENT.tsv")
        elif path.name.endswith(provenance.SUFFIX) and not provenance.locate_described(path).exists():
            problems.append(f"{path}: describes no reference file; remove it or add the file")
    return problems


def write_references(path: Path, references: Iterable[Reference], origin: Mapping[str, Any]) -> None:
    """Write the references of one environment with their provenance, replacing earlier ones.

    ``origin`` is the provenance. Each file is replaced atomically; on an error neither changes. Raises
    ReferenceFileError, before anything is written, for what :func:`load_references` would refuse.
    """
    ordered = sorted(references, key=lambda reference: reference.case)
    text = "".join(f"{line}\n" for line in (HEADER, *map(_line, ordered)))
    places = {ReferencePlace.of(reference.case) for reference in ordered}
    if len(places) > 1:
        raise ReferenceFileError(f"{path}: the cases are of {len(places)} environments; write one each")
    place = next(iter(places), ReferencePlace("", "", ""))
    _, problems = _parse(str(path), text, *place)
    faults = provenance.find_provenance_faults(origin, [reference.case for reference in ordered])
    problems += [f"{provenance.locate_provenance(path)}: {fault}" for fault in faults]
    if problems:
        raise ReferenceFileError(problems[0])
    try:
        sidecar = provenance.encode_provenance(origin)
        files.replace_files({provenance.locate_provenance(path): sidecar, path: text.encode()})
    except ValueError as error:
        raise ReferenceFileError(f"{provenance.locate_provenance(path)}: {error}; correct it") from None
    except OSError as error:
        message = f"{path}: cannot be written: {error.strerror}; make room or choose another folder"
        raise ReferenceFileError(message) from None


def _line(reference: Reference) -> str:
    """Format a row. ``repr`` of a float is the shortest text that reads back as the same number."""
    keys = (str(getattr(reference.case, key)) for key in KEYS)
    spread = EXACT if reference.exact else repr(float(reference.spread))
    numbers = (repr(float(reference.center)), spread)
    return "\t".join((*keys, reference.unit, *numbers, str(reference.launches)))


def _examine(path: Path, system: str, partition: str, environment: str) -> tuple[list[Reference], list[str]]:
    """Parse a file with its provenance: return its sound rows and every fault of both."""
    try:
        text = read_text(path, "restore the file or calibrate again")
    except ValueError as error:
        return [], [str(error)]
    references, problems = _parse(str(path), text, system, partition, environment)
    cases = [reference.case for reference in references]
    return references, problems + provenance.find_provenance_problems(path, cases)


def _parse(
    name: str, text: str, system: str, partition: str, environment: str
) -> tuple[list[Reference], list[str]]:
    """Parse the rows of a file: return the sound ones and every fault."""
    rows, problems = parse_rows(
        name, text, COLUMNS, lambda _, cell: _reference(cell, system, partition, environment)
    )
    if not rows and not problems:
        return [], [f"{name}: row 2: there is none; add a case or remove the file"]
    problems += [f"{name}: {problem}" for problem in _order_problems(rows)]
    if len({reference.exact for reference in rows.values()}) > 1:
        problems.append(f"{name}: spread: exact in some rows only; simulated time is exact in all")
    return list(rows.values()), problems


def _order_problems(rows: Mapping[int, Reference]) -> Iterator[str]:
    """Find duplicates, and rows that belong above the one before them."""
    first: dict[Case, int] = {}
    for number, reference in rows.items():
        if reference.case in first:
            yield f"row {number}: is the same case as row {first[reference.case]}; remove one"
        first.setdefault(reference.case, number)
    for above, below in pairwise(rows):
        if rows[below].case < rows[above].case:
            yield f"row {below}: belongs above row {above}; sort the rows by {', '.join(KEYS)}"


def _reference(cell: Mapping[str, str], system: str, partition: str, environment: str) -> Reference:
    """Parse one row. Raises ValueError, ``column: what is wrong; fix``."""
    for key, words in WORDS.items():
        if cell[key] not in words:
            raise ValueError(f"{key}: {format_external(cell[key])} is wrong; write {' or '.join(words)}")
    case = Case(
        system=system,
        partition=partition,
        environment=environment,
        program=cell["program"],
        routine=cell["routine"],
        peer=_integer(cell, "peer"),
        cache=cell["cache"],
        sync=cell["sync"],
        processes=_integer(cell, "processes"),
        per_node=_integer(cell, "per_node"),
        bytes=_integer(cell, "bytes"),
    )
    if case.per_node > case.processes or case.peer >= case.processes:
        raise ValueError("processes: fewer than per_node or peer ask for; correct one of them")
    exact = cell["spread"] == EXACT
    center, spread = _number(cell, "center"), 0.0 if exact else _number(cell, "spread")
    launches = _integer(cell, "launches")
    if center == 0:
        raise ValueError("center: 0 is nothing to hold a value against; write it, as in 1.25e-06")
    _check_bounds("center", center, *CENTERS[cell["unit"]])
    _check_bounds("spread", spread, 0, MOST_SPREAD)
    if launches == 1 and spread != 0:
        raise ValueError("spread: one launch has none; write 0.0, or correct launches")
    return Reference(case, center, spread, launches, parse_unit(cell["unit"]), exact)


def _integer(cell: Mapping[str, str], column: str) -> int:
    least, most = COUNTS[column]
    text = cell[column]
    if not INTEGER.fullmatch(text) or not least <= int(text) <= most:
        fix = f"write an integer from {least} to {most:,}"
        raise ValueError(f"{column}: {format_external(text)}; {fix}")
    return int(text)


def _check_bounds(column: str, value: float, least: float, most: float) -> None:
    """Raise ValueError for a number that no machine has."""
    if not least <= value <= most:
        raise ValueError(f"{column}: {value!r} is not within {least:g} and {most:g}; correct it")


def _number(cell: Mapping[str, str], column: str) -> float:
    text = cell[column]
    if not NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise ValueError(f"{column}: {format_external(text)}; write a number, as in 1.25e-06")
    return float(text)
