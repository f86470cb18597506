"""A table as the papers' views have it: made once, shown in a terminal, in Markdown and in HTML."""

from __future__ import annotations

from dataclasses import dataclass

from postprocess.base import sanitize
from postprocess.base.formats import align_rows
from postprocess.base.sanitize import sanitize_line

MISSING = "missing"  #: planned or expected, and not measured
NOT_PRINTED = "-"  #: the papers print no such figure


@dataclass(frozen=True)
class TextTable:
    """Rows of text. The first cells of a row, one for each label, say what it is about."""

    title: str
    labels: tuple[str, ...]
    columns: tuple[str, ...]  #: heads of the numbers
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def render_text(sheet: TextTable) -> str:
    """The sheet as lines of aligned text, however long: ``grep`` and a pager see whole rows."""
    head = (*sheet.labels, *sheet.columns)
    rows = [tuple(map(sanitize_line, row)) for row in (head, *sheet.rows)]
    lines = [sanitize_line(sheet.title)]
    lines += [f"  {line}" for line in align_rows(rows, len(sheet.labels), between="   ")]
    lines += [f"  {sanitize_line(note)}" for note in sheet.notes]
    return "".join(f"{line}\n" for line in lines)


def render_markdown_table(sheet: TextTable) -> str:
    """The sheet as a table in Markdown without its title, and its notes below."""
    rule = ["---"] * len(sheet.labels) + ["---:"] * len(sheet.columns)
    head, *rows = (
        f"| {' | '.join(map(sanitize.escape_markdown, row))} |"
        for row in ((*sheet.labels, *sheet.columns), *sheet.rows)
    )
    notes = [f"{sanitize.escape_markdown(note)}\n" for note in sheet.notes]
    return "\n".join([head, f"|{'|'.join(rule)}|", *rows, "", *notes])
