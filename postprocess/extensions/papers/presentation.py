"""What tables and figures of papers are made of: numbers as people read them and in full for CSV; panels."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from postprocess.base import formats
from postprocess.extensions.papers.measurements import Operation, PaperMeasurements
from postprocess.report.panels import LOGARITHMIC, Panel, PanelLine, Point, thin_values

_Value = TypeVar("_Value")

KIB = 1024
#: Of the CSV: what a number is and of what; a line for each number
COLUMNS = (
    *("part", "table", "quantity", "value", "unit", "machine", "mpi", "routine", "bytes"),
    *("processes", "cache", "sync", "note"),
)
#: Labels of tables that are columns of the CSV under another name; ``conditions`` are two
LABELS = {
    **{name: name for name in ("machine", "routine", "processes", "cache", "sync")},
    **{"MPI": "mpi", "library": "mpi", "replace": "routine", "kernel": "routine"},
    **{"size": "bytes", "block": "bytes", "buffer": "bytes", "bytes": "bytes"},
    "partition": "machine",
}


class Number(str):
    """A cell that is a number: its text, and the number in full with its unit.

    ``about`` says what the row and its labels do not, by the columns of the CSV; ``quantity`` what the number
    is where the head of its column does not; ``more`` are numbers in brackets behind it.
    """

    value: float
    unit: str
    quantity: str
    about: Mapping[str, Any]
    note: str
    more: tuple[Number, ...]

    def __new__(
        cls,
        text: str,
        value: float,
        unit: str = "",
        quantity: str = "",
        about: Mapping[str, Any] | None = None,
        note: str = "",
        more: Sequence[Number] = (),
    ) -> Number:
        self = super().__new__(cls, text)
        self.value, self.unit, self.quantity, self.note = value, unit, quantity, note
        self.about, self.more = about or {}, tuple(more)
        return self


def write_time(seconds: float, **about: Any) -> Number:
    """Write a time in seconds as microseconds."""
    return Number(formats.microseconds(seconds), seconds * 1e6, "us", **about)


def write_ratio(value: float, **about: Any) -> Number:
    """Write a ratio, as in ``2.31``."""
    return Number(formats.ratio(value, 1.0), value, **about)


def write_share(fraction: float, text: str = "", **about: Any) -> Number:
    """Write a fraction as per cent."""
    return Number(text or formats.format_percent(fraction), fraction * 100, "%", **about)


def write_rate(rate: float, **about: Any) -> Number:
    return Number(formats.format_significant(rate / 1e6), rate / 1e6, "MB/s", **about)


def write_plain(value: float, unit: str = "", digits: int = 4, **about: Any) -> Number:
    return Number(formats.format_significant(value, digits), value, unit, **about)


def write_count(number: int, **about: Any) -> Number:
    return Number(str(number), number, **about)


def write_bytes(size: float) -> Number:
    """Write a size by powers of 1024, as RUS and Taboada et al. do, or in bytes; never by powers of 1000."""
    if size >= KIB**2 and size == int(size) and int(size) % KIB**2 == 0:
        return Number(f"{size / KIB**2:.0f} MiB", size, "B")
    if size >= KIB and (size % KIB == 0 or size != int(size)):
        return Number(f"{size / KIB:.4g} KiB", size, "B")
    return Number(f"{size:.0f} B", size, "B")


def write_span(counts: Sequence[int]) -> str:
    """Write the first and the last of sorted counts of processes, as in ``2 to 128``."""
    return f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else "".join(map(str, counts))


def format_csv(tables: Iterable[tuple[str, formats.TextTable]]) -> str:
    """Format tables, each with its part of the page: a line for each number, and for each refusal."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for part, table in tables:
        for line in _lines(table):
            writer.writerow({"part": part, "table": table.title, **line})
    return out.getvalue()


def _lines(table: formats.TextTable) -> Iterator[dict[str, Any]]:
    for row in table.rows:
        about, notes = _read_labels(table, row)
        for head, cell in zip(table.columns, row[len(table.labels) :], strict=True):
            if isinstance(cell, Number):
                for each in (cell, *cell.more):
                    told = "; ".join(filter(None, [*notes, each.note]))
                    quantity = each.quantity or head.removesuffix(f" ({each.unit})")
                    found = {"quantity": quantity, "value": repr(float(each.value)), "unit": each.unit}
                    yield {**about, **each.about, **found, "note": told}
            elif cell and cell != formats.NOT_PRINTED:
                yield {**about, "quantity": head, "note": "; ".join([*notes, cell])}


def _read_labels(table: formats.TextTable, row: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Return what a row is about by the columns of the CSV, and what has no column."""
    about: dict[str, Any] = dict(table.about)
    notes = []
    for label, cell in zip(table.labels, row, strict=False):
        value = f"{cell.value:.15g}" if isinstance(cell, Number) else cell
        if label == "conditions" and ", " in cell:
            about["cache"], about["sync"] = cell.split(", ", 1)
        elif label in LABELS and cell:
            about[LABELS[label]] = value
        elif cell and cell != formats.NOT_PRINTED:
            notes.append(f"{label} {cell}")
    return about, notes


MOST_LINES = 8  #: of a panel, so that each has a colour of its own
Curve = Mapping[int, float]  #: seconds or MB/s by x


@dataclass(frozen=True)
class PaperFigure:
    """Panels side by side with one legend, which has the names of their lines."""

    title: str
    panels: tuple[Panel, ...]
    remark: str = ""

    @property
    def lines(self) -> list[PanelLine]:
        """One line of each name: the measured ones in the order of their styles, then those of models."""
        found = {line.name: line for panel in self.panels for line in panel.lines}
        return sorted(found.values(), key=lambda line: (line.modelled, line.style))


def build_figure(title: str, panels: Iterable[Panel | None], remark: str = "") -> PaperFigure:
    return PaperFigure(title, tuple(filter(None, panels)), remark)


def build_panel(
    title: str,
    x: str,
    curves: Mapping[str, Curve],
    styles: Mapping[str, int],
    unit: str = formats.SECONDS,
    modelled: Collection[str] = (),
    scale: str = LOGARITHMIC,
) -> Panel | None:
    """Build a panel with a line for each curve; None if none has a point.

    ``curves``: values in the unit by x; ``styles``: of the lines; ``modelled``: of a model.
    """
    lines = tuple(
        PanelLine(
            name,
            styles[name],
            tuple(Point(at, curve[at], None, False) for at in sorted(curve)),
            name in modelled,
        )
        for name, curve in curves.items()
        if curve
    )
    return Panel(title, x, lines, unit, scale) if lines else None


def number_styles(names: Iterable[str]) -> dict[str, int]:
    """Return a style for each line, in their order."""
    return {name: number for number, name in enumerate(names)}


def choose_evenly(values: Sequence[_Value], most: int) -> list[_Value]:
    """Choose at most ``most`` of the values, evenly, the first and the last among them."""
    return [values[n] for n in thin_values(range(len(values)), most)]


def group_operations(measured: PaperMeasurements) -> dict[tuple[str, ...], list[Operation]]:
    """Group the operations that share a figure: one routine under the same conditions."""
    found: dict[tuple[str, ...], list[Operation]] = {}
    for operation in measured.operations:
        about = (operation.routine, *measured.name_conditions(operation))
        found.setdefault(about, []).append(operation)
    return found
