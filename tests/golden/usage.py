"""The help of every command."""

import argparse
from collections.abc import Iterator

from postprocess.cli.parser import subcommands
from postprocess.main import build_parser
from tests.golden.stage import Stage


def play(stage: Stage) -> None:
    """Ask every command for its help."""
    for words in list_commands(build_parser()):
        stage.run("-".join([*words, "help"]), [*words, "--help"])
    stage.run("nightly-help-all", ["nightly", "--help-all"])
    stage.run("version", ["--version"])


def list_commands(parser: argparse.ArgumentParser, *words: str) -> Iterator[list[str]]:
    """List the words of every command, the whole command line first."""
    yield [*words]
    for name, below in subcommands(parser).items():
        yield from list_commands(below, *words, name)
