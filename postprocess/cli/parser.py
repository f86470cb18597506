"""The parser of a command: options in groups, one example, the exit statuses, and errors of one line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from postprocess.base.errors import UsageError

#: Titles of groups of options.
WHAT, READ, WHERE, HOW, OUTPUT = (
    "what to measure",
    "what to read",
    "where",
    "how",
    "output",
)


def exit_statuses(fails: str, others: Sequence[tuple[int, str]] = ()) -> list[tuple[int, str]]:
    """Return each exit status of a command with its meaning.

    :param fails: the meaning of 1; empty if the command never ends with it
    :param others: further ones that the command has
    """
    one = [(1, fails)] if fails else []
    return [(0, "success"), *one, (2, "usage or configuration error"), *others]


class Parser(argparse.ArgumentParser):
    """Parse the words of one command."""

    def __init__(
        self,
        *words: Any,
        example: str = "",
        fails: str = "",
        others: Sequence[tuple[int, str]] = (),
        **how: Any,
    ) -> None:
        """Create a parser; further parameters are those of :mod:`argparse`.

        :param example: a command line, without an indent
        :param fails: see :func:`exit_statuses`; so ``others``
        """
        how.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*words, **how)
        self.example, self.fails, self.others = example, fails, others
        self.groups: dict[str, argparse._ArgumentGroup] = {}
        meanings = exit_statuses(fails, others)
        statuses = "\n".join(f"  {number}  {meaning}" for number, meaning in meanings)
        self.epilog = f"example:\n  {example}\n\nexit status:\n{statuses}"

    def group(self, title: str) -> argparse._ArgumentGroup:
        """Return the group of options of this title; create it when it is first asked for."""
        if title not in self.groups:
            self.groups[title] = self.add_argument_group(title)
        return self.groups[title]

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse all words; of an option that this command does not have, say which commands have it."""
        parsed, rest = self.parse_known_args(args, namespace)
        if not rest:
            return parsed
        message = f"unrecognized arguments: {' '.join(rest)}"
        options = [word.partition("=")[0] for word in rest if word.startswith("-")]
        having = find_commands_with(self, options[0]) if options else {}
        for option, commands in having.items():
            message += f"; {option} is an option of {', '.join(commands)}"
        self.error(message)

    def error(self, message: str) -> NoReturn:
        """Raise a usage error of one line."""
        raise UsageError(f"{message} ({self.prog} --help)")


def find_commands_with(parser: argparse.ArgumentParser, word: str) -> dict[str, list[str]]:
    """Find the commands that have an option, in the order of ``--help``, by its whole name.

    :param word: the option, or how its name begins
    """
    found: dict[str, list[str]] = {}
    for command, option in _list_options(parser):
        if len(word) > 2 and option.startswith(word):
            found.setdefault(option, []).append(command)
    return {word: found[word]} if word in found else found


def _list_options(parser: argparse.ArgumentParser, command: str = "") -> Iterator[tuple[str, str]]:
    """List each command below a parser with each of its options."""
    for option in parser._option_string_actions if command else ():
        yield command, option
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, below in action.choices.items():
                yield from _list_options(below, f"{command} {word}".strip())
