"""The commands that hand the results store to others: ``export`` as CSV, ``load`` into PostgreSQL."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from postprocess.base.formats import plural
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.options import add_case, add_since
from postprocess.results.csv_export import Wanted, export, output


def say(text: str) -> None:
    """One line beside the data, which has standard output."""
    print(text, file=sys.stderr, flush=True)


def run_export(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Write the store as CSV."""
    wanted = Wanted(arguments.since, arguments.case, arguments.trials)
    with output(arguments.output) as sink:
        rows = export(work.store, wanted, sink, say)
    say(f"exported {plural(rows, 'row')}")
    return 0


def run_load(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Load the store into PostgreSQL."""
    from postprocess.results import (
        postgres,  # its driver takes time to import, and only this command needs it
    )

    done = postgres.load(work.store, " ".join(arguments.words), say)
    print(f"loaded {plural(done.new, 'session')} with {plural(done.rows, 'row')}; "
          f"{done.known} there already")  # fmt: skip
    return 0


def add_export(parser: argparse.ArgumentParser) -> None:
    """What ``export`` accepts."""
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="(default: the standard output)"
    )
    add_since(parser)
    add_case(parser)
    parser.add_argument("--trials", action="store_true", help="every trial and the run records too")


def add_load(parser: argparse.ArgumentParser) -> None:
    """What ``load`` accepts. A DSN that is written without quotes is several words."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="DSN",
        help="as in postgresql://user@host/database (default: PGHOST, PGDATABASE and their like); a "
        "password is better kept in ~/.pgpass or PGPASSWORD",
    )
