"""What the papers printed, and which simulated machines stand for theirs. These data are no references.

The files and their conventions: ``reference_data/historical/README.md``.
"""

import csv
import io
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.strict_json import format_external
from postprocess.extensions.papers.linear_model import Growth, LinearModel

INTEGER = re.compile(r"0|[1-9][0-9]{0,11}")
NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?")
ABSENT = "N/A"  #: what the papers print where there is no figure
LEAST = {"processes": 2, "line": 1}  #: of integers; 0 for all others
#: Columns that are about a figure and are not what it is of
ABOUT = ("source", "line", "remark")

_Row = TypeVar("_Row")


def read_rows(path: Path, kind: type[_Row]) -> tuple[_Row, ...]:
    """Read the rows of one file. Rows are counted as editors do: the header is row 1.

    :raises UsageError: for the first fault.
    """
    columns = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    rows: list[_Row] = []
    first: dict[tuple[Any, ...], int] = {}
    for number, cells in enumerate(_cells(path), 1):
        if number == 1:
            if cells != columns:
                raise UsageError(f"{path}: row 1: is not the header; write {','.join(columns)}")
            continue
        try:
            row = _row(kind, cells)
        except ValueError as error:
            raise UsageError(f"{path}: row {number}: {error}") from None
        same = first.setdefault(_identity(row), number)
        if same != number:
            raise UsageError(f"{path}: row {number}: is the same as row {same}; remove one")
        rows.append(row)
    if not rows:
        raise UsageError(f"{path}: row 2: there is none; restore the file")
    return tuple(rows)


def _cells(path: Path) -> list[list[str]]:
    try:
        text = files.read_text(path)
        if not text.endswith("\n"):
            raise ValueError("is cut off")
        return list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; restore the file") from None
    except (ValueError, csv.Error) as error:
        raise UsageError(f"{path}: no CSV in UTF-8 ({error}); restore the file") from None


def _row(kind: type[_Row], cells: list[str]) -> _Row:
    """Parse one row by the types of its class. Raises ValueError, ``column: what is wrong; fix``."""
    columns = fields(kind)  # type: ignore[arg-type]
    if len(cells) != len(columns):
        raise ValueError(f"has {len(cells)} cells; write {len(columns)}, parted by commas")
    values = {}
    for field, cell in zip(columns, cells, strict=True):
        values[field.name] = _parse(field.type, field.name, cell)
    return kind(**values)


def _parse(kind: Any, column: str, cell: str) -> Any:
    """Parse a cell by the type of its column. Raises ValueError, ``column: what is wrong; fix``."""
    if kind in (float | None, Growth | None):
        if cell == ABSENT:
            return None
        kind = float if kind == float | None else Growth
    least = LEAST.get(column, 0)
    try:
        if kind is Growth:
            return Growth.parse(cell)
    except ValueError as error:
        raise ValueError(f"{column}: {error}") from None
    if kind is int:
        right, form = bool(INTEGER.fullmatch(cell)) and int(cell) >= least, f"an integer, {least} or more"
    elif kind is float:
        right, form = bool(NUMBER.fullmatch(cell)) and float(cell) > 0, "a number above zero, as in 2.5"
    else:
        right = bool(cell) and cell == cell.strip() and cell.isprintable()
        form = "words, without blanks around them"
    if not right:
        raise ValueError(f"{column}: {format_external(cell)}; write {form}")
    return kind(cell)


def _identity(row: Any) -> tuple[Any, ...]:
    """Return what identifies a row: its words and counts, without its figures."""
    return tuple(
        getattr(row, field.name)
        for field in fields(row)
        if field.type in (str, int) and field.name not in ABOUT
    )


DIRECTORY = Path(__file__).resolve().parents[3] / "reference_data" / "historical"
NOTHING = Growth("0", ())


@dataclass(frozen=True)
class PrintedRatio:
    """Time on one machine over time on another, both at ``processes``."""

    routine: str
    bytes: int
    processes: int
    machine: str
    against: str
    ratio: float
    source: str
    line: int  #: of the text of the paper, as in all classes here


@dataclass(frozen=True)
class PrintedCost:
    """Time per call of RUS Stuttgart's loop. ``bytes`` is that report's buffer, see its README."""

    routine: str
    bytes: int
    processes: int
    machine: str
    microseconds: float
    source: str
    line: int


@dataclass(frozen=True)
class PrintedModel:
    """A model of Taboada et al. with its peaks over ``least`` to ``most`` processes.

    Start-up ``t0`` and intercept ``ti`` are in us, time per byte ``tb`` in ns, ``startup`` in 1000 bytes/s,
    ``bandwidth`` in 1e6 bytes/s. A barrier has a start-up only.
    """

    machine: str
    library: str
    routine: str
    least: int
    most: int
    t0: Growth
    ti: Growth | None
    tb: Growth | None
    startup: float
    bandwidth: float | None
    source: str
    line: int

    @property
    def model(self) -> LinearModel:
        """The model in seconds and bytes."""
        return LinearModel(
            self.t0.scaled(1e-6), (self.ti or NOTHING).scaled(1e-6), (self.tb or NOTHING).scaled(1e-9)
        )


@dataclass(frozen=True)
class PrintedCrossover:
    """From which size on a composition replaces a collective operation; ``bytes`` with KB = 1024."""

    machine: str
    library: str
    routine: str
    processes: int
    side: str  #: ``above`` or ``below``, as printed
    bytes: int
    source: str
    line: int


@dataclass(frozen=True)
class PrintedReduction:
    """By how much a composition was measured to be faster than what it replaces."""

    machine: str
    library: str
    routine: str
    processes: int
    bytes: int
    percent: float
    source: str
    line: int


@dataclass(frozen=True)
class PrintedKernel:
    """Time of a kernel in one placement over its time in another, on the SCI cluster."""

    kernel: str
    size: str
    library: str
    processes: int
    per_node: int
    over_processes: int
    over_per_node: int
    ratio: float
    source: str
    line: int


@dataclass(frozen=True)
class PrintedFigure:
    """A figure of the running text or of a small table; ``-`` where the paper leaves something open."""

    machine: str
    library: str
    routine: str
    processes: str
    bytes: str
    quantity: str
    value: float
    unit: str
    paper: str
    line: int


@dataclass(frozen=True)
class StandIn:
    """A simulated partition that stands for a machine of the papers, and how it differs from it."""

    system: str
    partition: str
    machine: str
    remark: str


@dataclass(frozen=True)
class FittedRatio:
    """A printed ratio from which a model was made: that it comes out again is no evidence."""

    system: str
    partition: str
    routine: str
    bytes: int


@dataclass(frozen=True)
class History:
    """All that was printed, in the order of the files."""

    ratios: tuple[PrintedRatio, ...]
    costs: tuple[PrintedCost, ...]
    models: tuple[PrintedModel, ...]
    crossovers: tuple[PrintedCrossover, ...]
    reductions: tuple[PrintedReduction, ...]
    kernels: tuple[PrintedKernel, ...]
    figures: tuple[PrintedFigure, ...]
    stand_ins: tuple[StandIn, ...]
    fits: tuple[FittedRatio, ...]


#: The files of the fields of :class:`History`, and the class of their rows
FILES: dict[str, tuple[str, type[Any]]] = {
    "ratios": ("luecke2001_ratios.csv", PrintedRatio),
    "costs": ("rus_costs.csv", PrintedCost),
    "models": ("taboada_models.csv", PrintedModel),
    "crossovers": ("taboada_crossovers.csv", PrintedCrossover),
    "reductions": ("taboada_reductions.csv", PrintedReduction),
    "kernels": ("taboada_kernels.csv", PrintedKernel),
    "figures": ("text_figures.csv", PrintedFigure),
    "stand_ins": ("stand_ins.csv", StandIn),
    "fits": ("fits.csv", FittedRatio),
}


def load_history(directory: Path = DIRECTORY) -> History:
    """Read every file of printed figures.

    :raises UsageError: for the first file that is missing or not as it should be, with its row.
    """
    return History(**{name: read_rows(directory / file, kind) for name, (file, kind) in FILES.items()})


def lint_history(directory: Path = DIRECTORY) -> list[str]:
    """Find what is wrong with the files of printed figures, the first fault of each."""
    found = []
    for file, kind in FILES.values():
        try:
            read_rows(directory / file, kind)
        except UsageError as error:
            found.append(str(error))
    known = {file for file, _ in FILES.values()}
    strays = sorted(path for path in directory.glob("*.csv") if path.name not in known)
    return found + [f"{path}: is never read; remove it" for path in strays]
