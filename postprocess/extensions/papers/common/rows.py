"""Read tables of printed figures: a class for each shape of file, a row for each object.

The types of the fields say what a cell may hold. Nothing is taken on trust.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from postprocess.base import files
from postprocess.base.documents.strict_json import format_external
from postprocess.base.errors import UsageError
from postprocess.extensions.papers.common.linear_model import Growth

INTEGER = re.compile(r"0|[1-9][0-9]{0,11}")
NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?")
ABSENT = "N/A"  #: what the papers print where there is no figure
LEAST = {"processes": 2, "line": 1}  #: of integers; 0 for all others
#: Columns that are about a figure and are not what it is of
ABOUT = ("source", "line", "remark")

_Row = TypeVar("_Row")


class HistoricalError(UsageError):
    """A file of printed figures that cannot be used. The text is one line: file, row, fix."""


def read_rows(path: Path, kind: type[_Row]) -> tuple[_Row, ...]:
    """Read the rows of one file. Rows are counted as editors do: the header is row 1.

    :raises HistoricalError: for the first fault.
    """
    columns = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    rows: list[_Row] = []
    first: dict[tuple[Any, ...], int] = {}
    for number, cells in enumerate(_cells(path), 1):
        if number == 1:
            if cells != columns:
                raise HistoricalError(
                    f"{path}: row 1: is not the header; write {','.join(columns)}"
                )
            continue
        try:
            row = _row(kind, cells)
        except ValueError as error:
            raise HistoricalError(f"{path}: row {number}: {error}") from None
        same = first.setdefault(_identity(row), number)
        if same != number:
            raise HistoricalError(f"{path}: row {number}: is the same as row {same}; remove one")
        rows.append(row)
    if not rows:
        raise HistoricalError(f"{path}: row 2: there is none; restore the file")
    return tuple(rows)


def _cells(path: Path) -> list[list[str]]:
    """Split the lines of a file into cells."""
    try:
        text = files.read_text(path)
        if not text.endswith("\n"):
            raise ValueError("is cut off")
        return list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except OSError as error:
        raise HistoricalError(f"{path}: {error.strerror}; restore the file") from None
    except (ValueError, csv.Error) as error:
        raise HistoricalError(f"{path}: no CSV in UTF-8 ({error}); restore the file") from None


def _row(kind: type[_Row], cells: list[str]) -> _Row:
    """Parse one row by the types of its class. Raises ValueError, ``column: what is wrong; fix``."""
    columns = fields(kind)  # type: ignore[arg-type]
    if len(cells) != len(columns):
        raise ValueError(f"has {len(cells)} cells; write {len(columns)}, parted by commas")
    values = {}
    for field, cell in zip(columns, cells, strict=True):
        values[field.name] = _PARSERS[str(field.type)](field.name, cell)
    return kind(**values)


def _text(column: str, cell: str) -> str:
    if not cell or cell != cell.strip() or not cell.isprintable():
        raise ValueError(
            f"{column}: {format_external(cell)}; write words, without blanks around them"
        )
    return cell


def _integer(column: str, cell: str) -> int:
    least = LEAST.get(column, 0)
    if not INTEGER.fullmatch(cell) or int(cell) < least:
        raise ValueError(f"{column}: {format_external(cell)}; write an integer, {least} or more")
    return int(cell)


def _number(column: str, cell: str) -> float:
    if not NUMBER.fullmatch(cell) or float(cell) == 0:
        raise ValueError(f"{column}: {format_external(cell)}; write a number above zero, as in 2.5")
    return float(cell)


def _growth(column: str, cell: str) -> Growth:
    try:
        return Growth.parse(cell)
    except ValueError as error:
        raise ValueError(f"{column}: {error}") from None


def _or_absent(parse: Callable[[str, str], Any]) -> Callable[[str, str], Any]:
    return lambda column, cell: None if cell == ABSENT else parse(column, cell)


_PARSERS: dict[str, Callable[[str, str], Any]] = {
    "str": _text,
    "int": _integer,
    "float": _number,
    "float | None": _or_absent(_number),
    "Growth": _growth,
    "Growth | None": _or_absent(_growth),
}


def _identity(row: Any) -> tuple[Any, ...]:
    """Return what identifies a row: its words and counts, without its figures."""
    return tuple(
        getattr(row, field.name)
        for field in fields(row)
        if field.type in ("str", "int") and field.name not in ABOUT
    )
