"""Numbers of a paper's tables: as people read them, and in full for CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from postprocess.base.formats import format_percent, format_significant, microseconds, ratio
from postprocess.base.text_table import NOT_PRINTED, TextTable

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
        """Make the cell."""
        self = super().__new__(cls, text)
        self.value, self.unit, self.quantity, self.note = value, unit, quantity, note
        self.about, self.more = about or {}, tuple(more)
        return self


def write_time(seconds: float, **about: Any) -> Number:
    """Write a time in seconds as microseconds."""
    return Number(microseconds(seconds), seconds * 1e6, "us", **about)


def write_ratio(value: float, **about: Any) -> Number:
    """Write a ratio, as in ``2.31``."""
    return Number(ratio(value, 1.0), value, **about)


def write_share(fraction: float, text: str = "", **about: Any) -> Number:
    """Write a fraction as per cent."""
    return Number(text or format_percent(fraction), fraction * 100, "%", **about)


def write_rate(rate: float, **about: Any) -> Number:
    """Write bytes/s as MB/s."""
    return Number(format_significant(rate / 1e6), rate / 1e6, "MB/s", **about)


def write_plain(value: float, unit: str = "", digits: int = 4, **about: Any) -> Number:
    """Write a number in its unit."""
    return Number(format_significant(value, digits), value, unit, **about)


def write_count(number: int, **about: Any) -> Number:
    """Write a count in full."""
    return Number(str(number), number, **about)


def write_bytes(size: float) -> Number:
    """Write a size by powers of 1024, as RUS and Taboada et al. do, or in bytes; never by powers of 1000."""
    if size >= KIB**2 and size == int(size) and int(size) % KIB**2 == 0:
        return Number(f"{size / KIB**2:.0f} MiB", size, "B")
    if size >= KIB and (size % KIB == 0 or size != int(size)):
        return Number(f"{size / KIB:.4g} KiB", size, "B")
    return Number(f"{size:.0f} B", size, "B")


def format_csv(tables: Iterable[tuple[str, TextTable]]) -> str:
    """Format tables, each with its part of the page: a line for each number, and for each refusal."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for part, table in tables:
        for line in _lines(table):
            writer.writerow({"part": part, "table": table.title, **line})
    return out.getvalue()


def _lines(table: TextTable) -> Iterator[dict[str, Any]]:
    for row in table.rows:
        about, notes = _read_labels(table, row)
        for head, cell in zip(table.columns, row[len(table.labels) :], strict=True):
            if isinstance(cell, Number):
                for each in (cell, *cell.more):
                    told = "; ".join(filter(None, [*notes, each.note]))
                    quantity = each.quantity or head.removesuffix(f" ({each.unit})")
                    found = {"quantity": quantity, "value": repr(float(each.value)), "unit": each.unit}
                    yield {**about, **each.about, **found, "note": told}
            elif cell and cell != NOT_PRINTED:
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
        elif cell and cell != NOT_PRINTED:
            notes.append(f"{label} {cell}")
    return about, notes
