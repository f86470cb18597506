"""A table that is made once and shown in a terminal, in Markdown and in HTML."""

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
    about: tuple[tuple[str, str], ...] = ()  #: what all rows are of, as the title says in words


def render_text(table: TextTable) -> str:
    """Format a table as lines of aligned text, however long: ``grep`` and a pager see whole rows."""
    head = (*table.labels, *table.columns)
    rows = [tuple(map(sanitize_line, row)) for row in (head, *table.rows)]
    lines = [sanitize_line(table.title)]
    lines += [f"  {line}" for line in align_rows(rows, len(table.labels), between="   ")]
    lines += [f"  {sanitize_line(note)}" for note in table.notes]
    return "".join(f"{line}\n" for line in lines)


def render_markdown_table(table: TextTable) -> str:
    """Format a table in Markdown without its title, and its notes below."""
    rule = ["---"] * len(table.labels) + ["---:"] * len(table.columns)
    head, *rows = (
        f"| {' | '.join(map(sanitize.escape_markdown, row))} |"
        for row in ((*table.labels, *table.columns), *table.rows)
    )
    notes = [f"{sanitize.escape_markdown(note)}\n" for note in table.notes]
    return "\n".join([head, f"|{'|'.join(rule)}|", *rows, "", *notes])
