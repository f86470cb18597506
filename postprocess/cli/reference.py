"""The reference of all commands, made from their parser: as data, and as a page in Markdown."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import dedent

from postprocess.cli.parser import Parser, exit_statuses, list_shown_actions, list_words, subcommands, usage

PROGRAM = "./plumbline"
#: exit statuses of every command; raw results of a session remain
INTERRUPTED = [(130, "interrupted by Ctrl-C"), (143, "terminated by SIGTERM")]

SHELLS = """
## Manual page and shell completion

`man -l docs/plumbline.1` shows the same as a manual page. Completion of commands, options and their choices:

```
source docs/completion/plumbline.bash          # bash: in ~/.bashrc, with the absolute path
fpath=(/path/to/docs/completion $fpath)        # zsh: in ~/.zshrc, before compinit
```
"""


@dataclass(frozen=True)
class Option:
    """One option or argument: how it is written, and what it does."""

    usage: str
    text: str


@dataclass(frozen=True)
class Command:
    """One command with everything that its help says."""

    words: tuple[str, ...]  #: that choose it
    synopsis: str
    description: str
    example: str
    groups: dict[str, list[Option]]  #: by title
    statuses: list[tuple[int, str]]
    below: list[tuple[str, str]]  #: name and description of the commands below it

    @property
    def name(self) -> str:
        """The words that choose it, separated by blanks."""
        return " ".join(self.words)


def commands(parser: Parser, words: tuple[str, ...] = ()) -> Iterator[Command]:
    """Yield the command of a parser, then all below it.

    :param words: that choose the command of this parser
    """
    below = subcommands(parser)
    yield Command(
        words=words,
        synopsis=" ".join([PROGRAM, *words, *list_words(parser)]),
        description=parser.description or "",
        example=parser.example,
        groups=dict(options(parser)),
        statuses=exit_statuses(parser.fails, parser.others),
        below=[(name, each.description or "") for name, each in below.items()],
    )
    for name, each in below.items():
        yield from commands(each, (*words, name))


def options(parser: Parser) -> Iterator[tuple[str, list[Option]]]:
    """Yield the title and the options of each group; arguments come first."""
    every = list_shown_actions(parser)
    positional = [Option(usage(each), text(parser, each)) for each in every if not each.option_strings]
    if positional:
        yield "arguments", positional
    for title, group in parser.groups.items():
        own = [action for action in group._group_actions if action in every and action.option_strings]
        if own:
            yield title, [Option(usage(action), text(parser, action)) for action in own]


def text(parser: Parser, action: argparse.Action) -> str:
    """Return the help of an option, with the options that it excludes."""
    said = str(action.help) % {"default": action.default}
    others = [
        other.option_strings[0]
        for group in parser._mutually_exclusive_groups
        if action in group._group_actions
        for other in group._group_actions
        if other is not action
    ]
    return f"{said}; not with {', '.join(others)}" if others else said


def markdown(every: Sequence[Command]) -> str:
    """Return the page of all commands."""
    first, *rest = every
    top = [each for each in rest if len(each.words) == 1]
    listed = "\n".join(f"| [`{each.name}`](#plumbline-{each.name}) | {each.description} |" for each in top)
    head = dedent(
        """\
        # Commands

        <!-- Written by python -m postprocess.write_docs: change the texts of the commands. -->

        `./plumbline COMMAND --help` shows the same. Every usage error is one line, with exit status 2.

        | command | |
        |---|---|
        """
    )
    statuses = [*first.statuses, *INTERRUPTED]
    tail = ["", "", "## Exit status", "", table(("status", "meaning"), statuses), ""]
    return head + listed + "\n".join(tail) + "".join(map(section, rest)) + SHELLS


def section(command: Command) -> str:
    """Return the section of one command."""
    lines = ["", f"{'#' * (len(command.words) + 1)} plumbline {command.name}", ""]
    lines += [command.description, "", "```", command.synopsis, "```", ""]
    lines += ["Example:", "", "```", command.example, "```", ""]
    if command.below:
        return "\n".join([*lines, table(("command", ""), command.below), ""])
    for title, own in command.groups.items():
        rows = [(f"`{each.usage}`", each.text) for each in own]
        lines += [table((title, ""), rows), ""]
    ends = "; ".join(f"{number} {meaning}" for number, meaning in command.statuses)
    return "\n".join([*lines, f"Exit status: {ends}.", ""])


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell(each) for each in row)} |" for row in lines)


def cell(value: object) -> str:
    """Return a cell of a table: nothing in it ends the cell, begins a tag or is emphasis."""
    said = str(value)
    if not said.startswith("`"):
        said = said.replace("*", r"\*").replace("<", r"\<")
    return said.replace("|", r"\|")
