"""The commands of a parser: one module each, with its texts, its options and what it does."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from types import ModuleType

from postprocess.cli.parser import Parser


def add_commands(parser: Parser, dest: str, commands: Mapping[str, ModuleType]) -> None:
    """Add commands to a parser, by name, in this order.

    A module has ``HELP``, one line; ``EXAMPLE``, a command line; ``FAILS``, the meaning of exit status 1 or
    ``""``; ``add_arguments(parser)``; and ``run(work, arguments)``, which returns the exit status.
    A module with ``COMMANDS``, of this form, in place of the last two leaves the work to the commands below it.
    ``PARSER``, where it has one, holds further parameters of the parser.

    :param dest: attribute of the parsed arguments that gets the name of the chosen command
    """
    found = parser.add_subparsers(dest=dest, required=True, metavar="COMMAND", title="commands")
    for name, module in commands.items():
        made = found.add_parser(
            name,
            help=module.HELP,
            description=module.HELP,
            example=module.EXAMPLE,
            fails=module.FAILS,
            **getattr(module, "PARSER", {}),
        )
        if hasattr(module, "COMMANDS"):
            add_commands(made, f"{name}_command", module.COMMANDS)
        else:
            module.add_arguments(made)
            made.set_defaults(run=module.run)


def subcommands(parser: argparse.ArgumentParser) -> Mapping[str, Parser]:
    """Return the parsers of the commands below a parser, by name."""
    actions = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    return {name: below for each in actions for name, below in each.choices.items()}
