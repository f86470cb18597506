"""Cases that are not healthy, as lines: what, why, and the command that measures them again.

A reason that many cases share stands once. On a terminal no line is wider than it, but for a command, which
must be whole to be copied; a pipe gets each line whole, so that ``grep`` finds a case by its key.
"""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Sequence

from rich.text import Text

from postprocess.base import formats
from postprocess.base.sanitize import sanitize_line
from postprocess.model.groups import CaseGroup, group_cases
from postprocess.model.verdict import INSIDE, JUDGED, LOOKED_SLOW, CaseResult
from postprocess.report import overview
from postprocess.results.summary import SessionSummary

MOST_IN_GROUP = 5  #: cases that a terminal lists of one group
TOLD = JUDGED - INSIDE  #: whose reasons begin with value and reference
RUN = ["./plumbline", "run"]  #: how commands begin that ``run --failed`` can take together


def list_groups(summary: SessionSummary) -> list[CaseGroup]:
    """List the groups of cases that are not healthy, the worst first: ``run --failed`` counts them from 1."""
    return group_cases(overview.sort_by_severity([*summary.failed, *summary.outliers]))


def format_group(
    group: CaseGroup, number: int, summary: SessionSummary, shown: Sequence[CaseResult], width: int
) -> Iterator[Text]:
    """Format a group as lines.

    :param number: of the group in :func:`list_groups`, from 1 on
    :param shown: the cases of it that are listed
    :param width: columns of the terminal; 0 for a pipe
    """
    good = all(result.counts_as_healthy(summary.strict) for result in group.results)
    verdict = Text(str(group.verdict), "yellow" if good else "bold red")
    if len(group.results) == 1:
        (only,) = group.results
        yield Text.assemble(verdict, "  ", (only.case.key, "bold"))
        why = explain(only)
    else:
        number_of = formats.plural(len(group.results), "case")
        yield Text.assemble(verdict, "  ", (number_of, "bold"))
        for result in shown:
            told = format_numbers(result)
            yield Text(f"    {result.case.key}")
            yield from [Text(f"      {told}")] if told else []
        if left := len(group.results) - len(shown):
            yield Text(f"    and {formats.format_whole(left)} more")
        why = group.reason
    if why:
        yield from wrap("  why: ", sanitize_line(why), width)
    if again := format_again(group, number, summary):
        yield Text(f"  again: {again}")


def wrap(label: str, text: str, width: int) -> list[Text]:
    """Wrap a text to the width of a terminal behind its label; a pipe gets it in one line."""
    if not width:
        return [Text(label + text)]
    indent = " " * len(label)
    lines = textwrap.wrap(
        text,
        max(width, 2 * len(label)),
        initial_indent=label,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return list(map(Text, lines or [label.rstrip()]))


def format_numbers(result: CaseResult) -> str:
    """Format what was measured, and what it is held against; empty if nothing was measured."""
    if result.value is None:
        return ""
    told = formats.quantity(result.value, result.unit)
    if result.reference is None:
        return told
    compared = formats.format_comparison(result.value, result.reference, result.unit)
    return f"{told}, {compared} its reference {formats.quantity(result.reference, result.unit)}"


def explain(result: CaseResult) -> str:
    """Explain a verdict: the numbers unless the reason has them, the reason, and q where it counts."""
    numbers = "" if result.verdict in TOLD and result.reason else format_numbers(result)
    doubted = result.verdict in LOOKED_SLOW and result.q is not None
    q = f"q = {formats.factor(result.q)}" if doubted else ""
    return "; ".join(filter(None, (numbers, result.reason, q)))


def format_again(group: CaseGroup, number: int, summary: SessionSummary) -> str:
    """Format the command that measures a group again; empty if there is none."""
    commands = {result.rerun for result in group.results if result.rerun}
    if not commands:
        return ""
    if all(split_command(command)[:2] == RUN for command in commands):
        return f"./plumbline run --failed {summary.session}:{number}"
    return sanitize_line(min(commands))


def split_command(command: str) -> list[str]:
    """Split a command into its words; into none if it is no command."""
    try:
        return shlex.split(command)
    except ValueError:
        return []
