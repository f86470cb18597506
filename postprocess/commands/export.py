"""The command ``export``: the results store as CSV."""

from __future__ import annotations

import argparse
import sys

from postprocess.base.formats import plural
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.options import add_options
from postprocess.cli.output_files import add_output_file
from postprocess.cli.parser import READ, Parser
from postprocess.results.csv_export import ExportFilter, export_csv, open_output

HELP = "Write the results store as CSV."
EXAMPLE = "./plumbline export --since 2026-11-01 --case '*:bcast:*' --output bcast.csv"
FAILS = ""


def add_arguments(parser: Parser) -> None:
    """Add the options that choose rows, and the file."""
    add_options(parser, "--since", "--case")
    parser.group(READ).add_argument(
        "--trials", action="store_true", help="write every trial and the run records too"
    )
    add_output_file(parser, "--output", "write to FILE (default: the standard output)")


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Write the store as CSV. Returns 0."""
    wanted = ExportFilter(arguments.since, arguments.case, arguments.trials)
    with open_output(arguments.output) as sink:
        rows = export_csv(work.store, wanted, sink, say)
    say(f"exported {plural(rows, 'row')}")
    return 0


def say(text: str) -> None:
    """Print one line beside the data, which has the standard output."""
    print(text, file=sys.stderr, flush=True)
