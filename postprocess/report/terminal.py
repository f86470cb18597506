"""The verdict table in a terminal, and the same as plain lines in a pipe.

A pipe gets the key of every case that failed, so that ``grep`` finds it. A terminal gets colour. Sentences are
wrapped, at the width of the terminal or at 80 columns; keys, commands and rows of the table are whole. Reasons
and notes stand once, however many cases they are of. Neither gets more cases than anyone reads;
a line says how many more there are.
"""

import io
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from postprocess.base import formats
from postprocess.base.formats import PIPE_COLUMNS, wrap
from postprocess.base.sanitize import sanitize_line
from postprocess.model.groups import count_lines
from postprocess.model.verdict import CaseResult
from postprocess.report import overview
from postprocess.report.first_screen import LaterRound, NumberedGroup, list_numbered_groups, propose_next
from postprocess.report.grids import GridCell, VerdictGrid, build_grid
from postprocess.report.overview import summarise_sensitivity
from postprocess.results.summary import SessionSummary

STYLES = {"good": "bold green", "fair": "bold yellow", "bad": "bold red"}  #: of the last line
UNBROKEN = 100_000  #: columns of what a pipe gets whole
MOST_ROWS = 24  #: of the grid, beyond which it is folded
MOST_LINES = 40  #: of the grid, whose cells may have several: it must fit a screen
MOST_IN_TERMINAL = 25  #: cases that are listed
MOST_IN_PIPE = 1000
MOST_REMARKS = 8  #: of one kind
#: Of a cell of the grid, the widest first.
FORMS: tuple[Callable[[GridCell], str], ...] = (
    lambda cell: cell.text,
    lambda cell: cell.text.replace(", ", ",\n"),
    lambda cell: cell.brief.replace(", ", ",\n"),
)
UNCONFIRMED = "first verdicts: other programs are still to be built; slow cases are measured again at the end"


def print_verdict_table(
    summary: SessionSummary,
    width: int | None = None,
    stream: TextIO | None = None,
    first: bool = False,
    said: Sequence[str] = (),
    rounds: Sequence[LaterRound] = (),
) -> None:
    """Print the verdict on a session, or the first verdicts of one that goes on.

    ``stream`` is standard output unless given; colour and folding depend on whether it is a
    terminal. ``width`` in columns is that of the terminal unless given, and of no account for a
    pipe. ``rounds`` measured its suspects again. What the encoding of the stream cannot express is
    printed as escapes.
    """
    out = stream or sys.stdout
    text = render_terminal(
        summary, width or shutil.get_terminal_size().columns, out.isatty(), first, said, rounds
    )
    encoding = out.encoding or "utf-8"
    out.write(text.encode(encoding, "backslashreplace").decode(encoding))
    out.flush()


def render_terminal(
    summary: SessionSummary,
    width: int,
    terminal: bool,
    first: bool = False,
    said: Sequence[str] = (),
    rounds: Sequence[LaterRound] = (),
) -> str:
    """Render the verdict on a session as text; with colour, and broken for reading, if ``terminal``.

    :param first: whether the session goes on: then without its notes and its last line
    :param said: notes that the reader has seen
    """
    console = _open_console(width, terminal)
    counts = build_grid(summary, MOST_ROWS)
    _print_grid(console, counts)
    if not first:
        _print_remarks(console, summary, said)
    _print_named_cases(console, summary, terminal)
    if not first:
        _print_last_lines(console, summary, counts, rounds)
    for section in counts.sections if first else ():
        _print_sentence(console, f"{section.program}: {section.counts}; {UNCONFIRMED}")
    return _without_trailing_blanks(console.file.getvalue())  # type: ignore[attr-defined]


def _open_console(width: int, terminal: bool) -> Console:
    """Open a console that writes to memory."""
    return Console(
        file=io.StringIO(),
        width=width if terminal else UNBROKEN,
        force_terminal=terminal,
        color_system="standard" if terminal else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )


def _print_named_cases(console: Console, summary: SessionSummary, terminal: bool) -> None:
    """Print the cases that are not healthy, or as many of them as anyone reads, by what is said of them."""
    groups = list_numbered_groups(summary)
    most = MOST_IN_TERMINAL if terminal else MOST_IN_PIPE
    named = [result for group in groups for result in group.group.results]
    heads = [result for group in groups for result in _first_of(group, terminal)]
    chosen = {result.case for result in overview.sample_each_verdict(heads, most)}
    for group in groups:
        if shown := [result for result in _first_of(group, terminal) if result.case in chosen]:
            for line in format_group(group, shown, _columns(console)):
                _print(console, line)
            console.print()
    heard = (group.group.results for group in groups if group.group.results[0].case in chosen)
    _print_unlisted(console, named, [result for results in heard for result in results], summary.session)


def format_group(numbered: NumberedGroup, shown: Sequence[CaseResult], width: int) -> Iterator[Text]:
    """Format a group as lines.

    :param shown: the cases of it that are listed
    """
    group = numbered.group
    verdict = Text(str(group.verdict), "bold red" if numbered.failed else "yellow")
    if len(group.results) == 1:
        (only,) = group.results
        yield Text.assemble(verdict, "  ", (only.case.key, "bold"))
        why = overview.explain(only)
    else:
        yield Text.assemble(verdict, "  ", (formats.plural(len(group.results), "case"), "bold"))
        for result in shown:
            told = overview.format_numbers(result)
            yield Text(f"    {result.case.key}")
            yield from [Text(f"      {told}")] if told else []
        if left := len(group.results) - len(shown):
            yield Text(f"    and {formats.format_whole(left)} more")
        why = group.reason
    if why:
        yield from map(Text, wrap(sanitize_line(why), width, "  why: ", indent=" " * len("  why: ")))
    if numbered.again:
        yield Text(f"  again: {numbered.again}")


def _columns(console: Console) -> int:
    return console.width if console.is_terminal else PIPE_COLUMNS


def _print_sentence(console: Console, text: str, command: str = "", style: str = "") -> None:
    """Print a sentence, and the command that it ends with, in lines that can be read."""
    for line in wrap(sanitize_line(text), _columns(console), command=sanitize_line(command)):
        _print(console, Text(line, style=style))


def _first_of(numbered: NumberedGroup, terminal: bool) -> Sequence[CaseResult]:
    """Return the cases of a group that are listed: the first few, but in a pipe all that failed."""
    results = numbered.group.results
    return results if numbered.failed and not terminal else results[: overview.MOST_IN_GROUP]


def _print_grid(console: Console, counts: VerdictGrid) -> None:
    """Print counts per routine and environment, in the first form of a cell that fits the screen.

    A program of which nothing ran is left out, unless nothing ran at all: a line says why.
    """
    ran = tuple(section for section in counts.sections if section.ran)
    counts = replace(counts, sections=ran or counts.sections)
    for write in FORMS:
        table = _grid_table(counts, write)
        needed = console.measure(table, options=console.options.update(max_width=UNBROKEN))
        if needed.maximum <= console.width and _height(counts, write) <= MOST_LINES:
            break
    console.print(table)
    console.print()


def _grid_table(counts: VerdictGrid, write: Callable[[GridCell], str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("routine", no_wrap=True)
    for column in counts.columns:
        table.add_column(column, overflow="fold")
    several = len(counts.sections) > 1
    for section in counts.sections:
        if several:
            table.add_row(Text(section.program, style="bold"))
        for row in section.rows:
            name = f"  {row.name}" if several else row.name
            table.add_row(name, *(_cell(cell, write) for cell in row.cells))
    return table


def _height(counts: VerdictGrid, write: Callable[[GridCell], str]) -> int:
    """Return lines of the table below its head."""
    rows = [row for section in counts.sections for row in section.rows]
    lines = (max(write(cell).count("\n") for cell in row.cells if cell) + 1 for row in rows)
    return sum(lines) + len(counts.sections)


def _cell(cell: GridCell | None, write: Callable[[GridCell], str]) -> Text:
    if cell is None:
        return Text("-", style="dim")
    return Text(write(cell), style="bold red" if cell.failed else "green")


def _print_remarks(console: Console, summary: SessionSummary, said: Sequence[str]) -> None:
    """Print the notes of the session that were not said yet, and why cases were skipped or not judged."""
    remarks = [f"note: {note}" for note in count_lines(summary.notes) if note not in said]
    reasons = overview.count_not_judged(summary.results)
    for what, reason, number in reasons[:MOST_REMARKS]:
        remarks.append(f"{what}: {formats.plural(number, 'case')}: {reason}")
    if more := reasons[MOST_REMARKS:]:
        cases = formats.plural(sum(number for *_, number in more), "case")
        remarks.append(f"not run or not judged: {cases} for {formats.plural(len(more), 'other reason')}")
    for remark in remarks:
        _print_sentence(console, remark, style="cyan")
    if remarks:
        console.print()


def _print_unlisted(
    console: Console, named: Sequence[CaseResult], listed: Sequence[CaseResult], session: str
) -> None:
    """Print how many cases were not listed, of what kind, and where they are."""
    kinds = Counter(str(r.verdict) for r in named)
    kinds.subtract(str(r.verdict) for r in listed)
    rest = {word: number for word, number in kinds.items() if number}
    if rest:
        more = f"and {formats.format_whole(sum(rest.values()))} more ({overview.format_counts(rest)})"
        where = f"all cases are in summary.json of session {session}"
        _print_sentence(console, f"{more}; {where}", style="yellow")
        console.print()


def _print_proposals(console: Console, summary: SessionSummary, rounds: Sequence[LaterRound]) -> None:
    """Print what to do next, without the commands that stand beside the cases."""
    told = {group.again for group in list_numbered_groups(summary)}
    for proposal in propose_next(summary, rounds):
        if proposal.command in told:
            continue
        _print_sentence(console, f"next: {proposal.sentence}", proposal.command)


def _print_last_lines(
    console: Console, summary: SessionSummary, counts: VerdictGrid, rounds: Sequence[LaterRound]
) -> None:
    """Print the verdict of each program, and of the whole session."""
    contradiction = overview.describe_contradiction(summary)
    if contradiction:
        _print_sentence(console, f"error: {contradiction}", style="bold red")
    for each in rounds:
        command = f"./plumbline report {each.session}"
        _print_sentence(console, each.sentence, command, style=STYLES[each.tone])
    _print_proposals(console, summary, rounds)
    if seen := summarise_sensitivity(summary.results):
        _print_sentence(console, f"{seen}; detection limits: report.html", style="cyan")
    for section in counts.sections if len(counts.sections) > 1 else ():
        _print_sentence(console, f"{section.program}: {section.counts}")
    _print_sentence(console, overview.format_last_line(summary), style=STYLES[overview.find_tone(summary)])


def _print(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True)


def _without_trailing_blanks(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())
