"""Tables that people review, as text: a header, then one row a line, cells parted by tabs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from postprocess.base import files

Row = TypeVar("Row")


def read_text(path: Path, fix: str) -> str:
    """Read all of a file. Raises ValueError, ``path: what is wrong; fix``."""
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
    """Parse what can be read of a table, by number of the row (the header is row 1); and every fault of it.

    :param name: of its file
    :param read: makes something of a row, from its number and its cells by column, or raises ValueError
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
