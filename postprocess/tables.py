"""The verdict table in a terminal, and the same as plain lines in a pipe.

A pipe gets one line per case, however long, so that ``grep`` finds a case with all that is said
of it. A terminal gets colour, and the reason and the command on lines of their own, which it folds
itself: a command copied from there is whole.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from postprocess import formats, overview
from postprocess.harmless import one_line
from postprocess.overview import Cell
from postprocess.summaries import SessionSummary
from postprocess.verdicts import CaseResult, Verdict, is_healthy

PIPE_WIDTH = 100_000  #: no line of a pipe is folded
INDENT = "\n    "
HEAD = ("verdict", "us", "reference", "band", "ratio", "case")


def verdict_table(
    summary: SessionSummary, width: int | None = None, stream: TextIO | None = None
) -> None:
    """Print the verdict on a session.

    ``stream`` is standard output unless given; colour and folding depend on whether it is a
    terminal. ``width`` in columns is that of the terminal unless given, and of no account for a
    pipe. What the encoding of the stream cannot express is printed as escapes.
    """
    out = stream or sys.stdout
    terminal = out.isatty()
    text = render(summary, width or shutil.get_terminal_size().columns, terminal)
    encoding = out.encoding or "utf-8"
    out.write(text.encode(encoding, "backslashreplace").decode(encoding))
    out.flush()


def render(summary: SessionSummary, width: int, terminal: bool) -> str:
    """The verdict on a session as text; with colour, and broken for reading, if ``terminal``."""
    console = Console(
        file=io.StringIO(),
        width=width if terminal else PIPE_WIDTH,
        force_terminal=terminal,
        color_system="standard" if terminal else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    _print_grid(console, summary)
    _print_remarks(console, summary)
    _print_cases(console, _named(summary), summary.strict, terminal)
    _print_last_line(console, summary)
    return _without_trailing_blanks(console.file.getvalue())  # type: ignore[attr-defined]


def _named(summary: SessionSummary) -> list[CaseResult]:
    """Every failed case, and those outside their band all the same: no failure, but always listed."""
    return overview.worst_first([*summary.failed, *summary.outliers])


def _print_grid(console: Console, summary: SessionSummary) -> None:
    """Counts per routine and environment; stacked in the cell where the width asks for it."""
    grid = overview.grid(summary)
    for separator in (", ", ",\n"):
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
        table.add_column("routine", no_wrap=True)
        for column in grid.columns:
            table.add_column(column, overflow="fold")
        for name, cells in grid.rows:
            table.add_row(name, *(_cell(cell, separator) for cell in cells))
        needed = console.measure(table, options=console.options.update(max_width=PIPE_WIDTH))
        if needed.maximum <= console.width:
            break
    console.print(table)
    console.print()


def _cell(cell: Cell | None, separator: str) -> Text:
    if cell is None:
        return Text("-", style="dim")
    return Text(cell.text.replace(", ", separator), style="bold red" if cell.failed else "green")


def _print_remarks(console: Console, summary: SessionSummary) -> None:
    """Notes of the session, and why cases were skipped."""
    remarks = [f"note: {note}" for note in summary.notes]
    for reason, number in overview.reasons(summary, Verdict.SKIPPED):
        remarks.append(f"skipped: {formats.plural(number, 'case')}: {reason or 'no reason given'}")
    for remark in remarks:
        _print(console, Text(one_line(remark), style="cyan"))
    if remarks:
        console.print()


def _print_cases(
    console: Console, results: Sequence[CaseResult], strict: bool, terminal: bool
) -> None:
    if not results:
        return
    rows = [_numbers(result) for result in results]
    widths = [max(map(len, column)) for column in zip(HEAD[:-1], *rows, strict=True)]
    wide = sum(widths) + 2 * len(widths) + max(len(r.case.key) for r in results)
    fits = not terminal or wide <= console.width
    _print(console, Text(_aligned(HEAD, widths), style="bold"))
    for result, row in zip(results, rows, strict=True):
        good = is_healthy(result.verdict, strict)
        line = Text.assemble((_aligned(row, widths), "yellow" if good else "bold red"))
        line.append("  " if fits else INDENT).append(result.case.key, style="bold")
        for detail in filter(None, _details(result)):
            line.append(INDENT if terminal else "  ").append(detail)
        _print(console, line)
    console.print()


def _details(result: CaseResult) -> tuple[str, str]:
    """The reason and the command; empty where there is none."""
    return one_line(result.reason), f"rerun: {one_line(result.rerun)}" if result.rerun else ""


def _numbers(result: CaseResult) -> tuple[str, ...]:
    return (
        str(result.verdict),
        formats.microseconds(result.value),
        formats.microseconds(result.reference),
        formats.band(result.band),
        formats.ratio(result.value, result.reference),
    )


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """The first column to the left, numbers to the right, what has no width as it is."""
    first = row[0].ljust(widths[0])
    numbers = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=False)]
    return "  ".join([first, *numbers, *row[len(widths) :]])


def _print_last_line(console: Console, summary: SessionSummary) -> None:
    contradiction = overview.contradiction(summary)
    if contradiction:
        _print(console, Text(f"error: {contradiction}", style="bold red"))
    style = "bold green" if summary.good else "bold red"
    _print(console, Text(overview.last_line(summary), style=style))


def _print(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True)


def _without_trailing_blanks(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())
