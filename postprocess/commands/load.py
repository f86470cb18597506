"""The command ``load``: the results store in PostgreSQL."""

from __future__ import annotations

import argparse

from postprocess.base.formats import plural
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.parser import Parser
from postprocess.commands.export import say

HELP = "Load the results store into PostgreSQL; add only sessions that are not there yet."
EXAMPLE = "./plumbline load postgresql://user@host/database"
FAILS = ""


def add_arguments(parser: Parser) -> None:
    """Add the address of the database. One that is written without quotes is several words."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="DSN",
        help="database, as in postgresql://user@host/database (default: PGHOST, PGDATABASE and the like); "
        "keep a password in ~/.pgpass or PGPASSWORD",
    )


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Load the store into PostgreSQL. Returns 0."""
    from postprocess.results import postgres  # its driver takes time to import, and only this command needs it

    done = postgres.load_store(work.store, " ".join(arguments.words), say)
    print(f"loaded {plural(done.new, 'session')} with {plural(done.rows, 'row')}; "
          f"{done.known} there already")  # fmt: skip
    return 0
