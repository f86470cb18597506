"""The command ``offer new``."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.parser import WHAT, Parser
from postprocess.extensions.procurement.rules.rules import list_rule_sets, read_rule_set

HELP = "Write a commented set of rules to start from."
EXAMPLE = "./plumbline offer new rules.toml --set osu"
FAILS = ""


def add_arguments(parser: Parser) -> None:
    """Add the file and the set."""
    parser.add_argument("file", type=Path, metavar="FILE", help="rules to write")
    parser.group(WHAT).add_argument(
        "--set", choices=list_rule_sets(), default="quick", help="what to start from (default: %(default)s)"
    )


def run(_: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Write a set of rules. Returns 0."""
    path = arguments.file
    try:
        files.create_file(path, read_rule_set(arguments.set).encode())
    except FileExistsError:
        raise UsageError(f"{path}: is there already; choose another name") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; choose another place") from None
    print(f"{path}: change it into your own rules, then: ./plumbline offer check {path}")
    return 0
