"""A table as the papers' views have it: made once, shown in a terminal, in Markdown and in HTML."""

from __future__ import annotations

from dataclasses import dataclass

from postprocess.base import sanitize
from postprocess.base.formats import aligned
from postprocess.base.sanitize import one_line

MISSING = "missing"  #: planned or expected, and not measured
NOT_PRINTED = "-"  #: the papers print no such figure


@dataclass(frozen=True)
class Sheet:
    """Rows of text. The first cells of a row, one for each label, say what it is about."""

    title: str
    labels: tuple[str, ...]
    columns: tuple[str, ...]  #: heads of the numbers
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def text(sheet: Sheet) -> str:
    """The sheet as lines of aligned text, however long: ``grep`` and a pager see whole rows."""
    head = (*sheet.labels, *sheet.columns)
    rows = [tuple(map(one_line, row)) for row in (head, *sheet.rows)]
    lines = [one_line(sheet.title)]
    lines += [f"  {line}" for line in aligned(rows, len(sheet.labels), between="   ")]
    lines += [f"  {one_line(note)}" for note in sheet.notes]
    return "".join(f"{line}\n" for line in lines)


def markdown(sheet: Sheet) -> str:
    """The sheet as a table in Markdown without its title, and its notes below."""
    rule = ["---"] * len(sheet.labels) + ["---:"] * len(sheet.columns)
    head, *rows = (
        f"| {' | '.join(map(sanitize.markdown, row))} |"
        for row in ((*sheet.labels, *sheet.columns), *sheet.rows)
    )
    notes = [f"{sanitize.markdown(note)}\n" for note in sheet.notes]
    return "\n".join([head, f"|{'|'.join(rule)}|", *rows, "", *notes])
