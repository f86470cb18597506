"""The commands below a parser: each has a name, a line of help, what it accepts, and what does it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from postprocess.base.workdir import WorkDirectory

Add = Callable[[argparse.ArgumentParser], object]  #: gives a parser what a command accepts
Run = Callable[[WorkDirectory, argparse.Namespace], int]  #: returns the exit status


def commands_below(
    parser: argparse.ArgumentParser, dest: str
) -> Callable[..., argparse.ArgumentParser]:
    """What adds a command below a parser, and returns the parser of that.

    :param dest: where the name of the chosen one goes
    """
    found = parser.add_subparsers(
        dest=dest, required=True, metavar="COMMAND", parser_class=type(parser)
    )

    def command(name: str, text: str, run: Run | None, **how: Any) -> argparse.ArgumentParser:
        made = found.add_parser(name, help=text, description=text, epilog=parser.epilog, **how)
        made.set_defaults(run=run)
        return made

    return command
