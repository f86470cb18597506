"""The commands ``export`` and ``load``: the results store as CSV, and in PostgreSQL."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import polars as pl

from postprocess.base.errors import UsageError
from postprocess.base.formats import parse_since, plural
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.options import add_options
from postprocess.cli.output_files import add_output_file
from postprocess.cli.parser import READ, Command, Parser
from postprocess.model.case import matches_patterns
from postprocess.results.query import build_filter, list_index_months, select_months
from postprocess.results.store import SCHEMA, SERIES, read_session


def add_export_arguments(parser: Parser) -> None:
    add_options(parser, "--since", "--case")
    parser.group(READ).add_argument(
        "--trials", action="store_true", help="write every trial and the run records too"
    )
    add_output_file(parser, "--output", "write to FILE (default: the standard output)")


def run_export(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    wanted = ExportFilter(arguments.since, arguments.case, arguments.trials)
    with open_output(arguments.output) as sink:
        rows = export_csv(work.store, wanted, sink, say)
    say(f"exported {plural(rows, 'row')}")
    return 0


EXPORT = Command(
    "./plumbline export --since 2026-11-01 --case '*:bcast:*' --output bcast.csv",
    "",
    add_export_arguments,
    run_export,
)


def say(text: str) -> None:
    """Print one line beside the data, which has the standard output."""
    print(text, file=sys.stderr, flush=True)


LONG = (*SERIES, "late", "provenance")  #: columns that come with ``--trials`` only
MANY = 100  #: sessions between two lines that tell how far it is
Say = Callable[[str], None]


@dataclass(frozen=True)
class ExportFilter:
    """Which rows and columns to export: all sessions of all modes, unless said otherwise."""

    since: str | None = None  #: sessions that started at this time or later
    cases: Sequence[str] = ()  #: only these, by key or by pattern
    trials: bool = False  #: every trial, as JSON lists, and the run records

    @property
    def columns(self) -> list[str]:
        """The columns of the CSV, in their order."""
        return [name for name in SCHEMA.names() if self.trials or name not in LONG]


def export_csv(directory: Path, wanted: ExportFilter, sink: BinaryIO, say: Say) -> int:
    """Write the rows that are wanted, session after session, a session in memory at a time. Returns how many.

    Floats have the digits that make them again exactly. No value is an empty field; an empty text is ``""``.

    :raises UsageError: for a damaged or foreign file, a ``since`` that is no time, and a case that no row has.
        What was written by then is not the whole.
    """
    rows, missing = 0, wanted.cases
    sink.write((",".join(wanted.columns) + "\r\n").encode())
    for number, frame in enumerate(read_frames(directory, wanted), 1):
        keys = frame["key"].unique().to_list()
        missing = [each for each in missing if not any(matches_patterns(key, [each]) for key in keys)]
        encode_lists(frame).write_csv(sink, include_header=False, line_terminator="\r\n")
        rows += frame.height
        if number % MANY == 0:
            say(f"exported {number} sessions")
    if missing:
        raise UsageError(f"--case {missing[0]}: no row of it is in {directory}")
    return rows


def read_frames(directory: Path, wanted: ExportFilter) -> Iterator[pl.DataFrame]:
    begin = parse_since(wanted.since) if wanted.since is not None else None
    rows = build_filter(None, begin, modes=None)
    for month in select_months(list_index_months(directory), begin):
        for path in month.sessions:
            frame = read_session(path, wanted.columns).filter(rows)
            keys = [key for key in frame["key"].unique() if matches_patterns(key, wanted.cases)]
            yield frame.filter(pl.col("key").is_in(keys))


def encode_lists(frame: pl.DataFrame) -> pl.DataFrame:
    """Encode lists as JSON, which a field of CSV can hold."""
    lists = [name for name, kind in frame.schema.items() if isinstance(kind, pl.List)]
    return frame.with_columns(
        pl.Series(name, [json.dumps(values) for values in frame[name].to_list()], dtype=pl.String)
        for name in lists
    )


@contextmanager
def open_output(path: Path | None) -> Iterator[BinaryIO]:
    """Open where to write: standard output, or a file that gets its name only once it is whole.

    A link stays, and so does what is not a regular file, such as a pipe: that is written to as it is.

    :raises UsageError: for a folder.
    """
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(os.path.realpath(path))
    if path.is_dir():
        raise UsageError(f"--output {path}: is a folder; name a file")
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            yield stream
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def add_load_arguments(parser: Parser) -> None:
    """Add the address of the database. One that is written without quotes is several words."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="DSN",
        help="database, as in postgresql://user@host/database (default: PGHOST, PGDATABASE and the like); "
        "keep a password in ~/.pgpass or PGPASSWORD",
    )


def run_load(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    from postprocess.results import postgres  # its driver takes time to import, and only this command needs it

    done = postgres.load_store(work.store, " ".join(arguments.words), say)
    print(f"loaded {plural(done.new, 'session')} with {plural(done.rows, 'row')}; "
          f"{done.known} there already")  # fmt: skip
    return 0


LOAD = Command("./plumbline load postgresql://user@host/database", "", add_load_arguments, run_load)
