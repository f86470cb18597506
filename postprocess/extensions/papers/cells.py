"""Cells of the papers' tables: numbers as people read them, and in full, each in a line, for CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from postprocess.base import formats
from postprocess.base.formats import TextTable
from postprocess.base.sanitize import sanitize_line
from postprocess.report.document import Document, Tone, Toned

KIB = 1024
MISSING = Toned(formats.MISSING, Tone.BAD)  #: a cell
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


def time(seconds: float, **about: Any) -> Number:
    """Write a time in seconds as microseconds."""
    return Number(formats.microseconds(seconds), seconds * 1e6, "us", **about)


def ratio(value: float, **about: Any) -> Number:
    """Write a ratio, as in ``2.31``."""
    return Number(formats.ratio(value, 1.0), value, **about)


def share(fraction: float, text: str = "", **about: Any) -> Number:
    """Write a fraction as per cent."""
    return Number(text or formats.format_percent(fraction), fraction * 100, "%", **about)


def rate(rate: float, **about: Any) -> Number:
    return Number(formats.format_significant(rate / 1e6), rate / 1e6, "MB/s", **about)


def plain(value: float, unit: str = "", digits: int = 4, **about: Any) -> Number:
    return Number(formats.format_significant(value, digits), value, unit, **about)


def count(number: int, **about: Any) -> Number:
    return Number(str(number), number, **about)


def size(size: float) -> Number:
    """Write a size by powers of 1024, as RUS and Taboada et al. do, or in bytes; never by powers of 1000."""
    if size >= KIB**2 and size == int(size) and int(size) % KIB**2 == 0:
        return Number(f"{size / KIB**2:.0f} MiB", size, "B")
    if size >= KIB and (size % KIB == 0 or size != int(size)):
        return Number(f"{size / KIB:.4g} KiB", size, "B")
    return Number(f"{size:.0f} B", size, "B")


def span(counts: Sequence[int]) -> str:
    """Write the first and the last of sorted counts of processes, as in ``2 to 128``."""
    return f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else "".join(map(str, counts))


def build_grid(
    title: str,
    labels: tuple[str, ...],
    rows: Iterable[tuple[tuple[str, ...], Mapping[str, str]]],
    notes: tuple[str, ...] = (),
    about: tuple[tuple[str, str], ...] = (),
    columns: Iterable[str] = (),
) -> TextTable:
    """Build a table of the cells of each row by their column; ``NOT_PRINTED`` where there is none.

    :param columns: in their order, if it is not that in which they come
    """
    rows = [*rows]
    heads = tuple(columns) or tuple(dict.fromkeys(head for _, row in rows for head in row))
    told = tuple((*row, *(found.get(head, formats.NOT_PRINTED) for head in heads)) for row, found in rows)
    return TextTable(title, labels, heads, told, notes, about)


def format_csv(document: Document) -> str:
    """Format the tables of a document, each with its section: a line for each number, and for each refusal."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for section in document.sections:
        for table in (block for block in section.blocks if isinstance(block, TextTable)):
            for line in _lines(table):
                entry = {"part": section.title, "table": table.title, **line}
                writer.writerow({column: sanitize_line(value) for column, value in entry.items()})
    return out.getvalue()


def _lines(table: TextTable) -> Iterator[dict[str, Any]]:
    for row in table.rows:
        about, notes = _read_labels(table, row)
        for head, cell in zip(table.columns, row[len(table.labels) :], strict=True):
            if isinstance(cell, Number):
                for number in (cell, *cell.more):
                    told = "; ".join(filter(None, [*notes, number.note]))
                    quantity = number.quantity or head.removesuffix(f" ({number.unit})")
                    found = {"quantity": quantity, "value": repr(float(number.value)), "unit": number.unit}
                    yield {**about, **number.about, **found, "note": told}
            elif cell and cell != formats.NOT_PRINTED:
                yield {**about, "quantity": head, "note": "; ".join([*notes, cell])}


def _read_labels(table: TextTable, row: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
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
