"""How a command is typed, in one line: its options in short, its arguments by name."""

from __future__ import annotations

import argparse


def list_shown_actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the options and arguments of a parser, but for ``--help`` and the commands below it."""
    hidden = (argparse._HelpAction, argparse._SubParsersAction, argparse._VersionAction)
    return [each for each in parser._actions if not isinstance(each, hidden)]


def list_words(parser: argparse.ArgumentParser) -> list[str]:
    """Return what follows the name of a command in its synopsis."""
    if any(isinstance(each, argparse._SubParsersAction) for each in parser._actions):
        return ["COMMAND ..."]
    every = list_shown_actions(parser)
    required = [usage(each) for each in every if each.option_strings and each.required]
    some = any(each.option_strings and not each.required for each in every)
    positional = [usage(each) for each in every if not each.option_strings]
    return required + (["[OPTIONS]"] if some else []) + positional


def usage(action: argparse.Action) -> str:
    """Return an option with its value, or an argument, as it is typed."""
    metavar = action.metavar or "{" + ",".join(map(str, action.choices or ())) + "}"
    if action.nargs == 0:
        return action.option_strings[0]
    value = " ".join(metavar) if isinstance(metavar, tuple) else metavar
    value = {"?": f"[{value}]", "*": f"[{value}...]", "+": f"{value}..."}.get(
        str(action.nargs), value
    )
    return " ".join([*action.option_strings, value])
