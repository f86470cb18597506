"""Load the rows of the results store into PostgreSQL, for sites with one server for many machines.

There are three tables: ``plumbline_schema`` with the version of the columns, ``plumbline_sessions`` with the
digest of each session's file, and ``plumbline_cases`` with the rows, including trials, under the column names
of the store. A session is loaded whole or not at all, and once. Dashboards read the views defined here.
"""

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from postprocess.base import files
from postprocess.base.errors import UsageError, explaining
from postprocess.model.verdict import HEALTHY
from postprocess.results.store import SCHEMA, SUFFIX, VERSION, StoreError, list_sessions, read_session

NIGHT = "mode IN ('nightly', 'import')"
#: Columns that all launches of a case in a session share.
SHARED = (
    'session, started_utc, mode, "key", system, "partition", environment, program, routine, processes, '
    "per_node, bytes, verdict, reason, expected, unit, reference, lower, upper, q, detectable"
)
#: Above 1 is worse in every unit, as in ``formats.compute_slowdown``.
SLOWDOWN = "CASE unit WHEN 'MB/s' THEN reference / nullif(median, 0) ELSE median / nullif(reference, 0) END"
MEDIANS = (
    f"SELECT {SHARED}, count(value) AS launches, "
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY value) AS median "
    f"FROM plumbline_cases WHERE {NIGHT}{{more}} GROUP BY {SHARED}"
)
#: Index of nights by system and time, without trials: five years of nights have millions of rows.
INDEX = (
    "CREATE INDEX IF NOT EXISTS plumbline_nights ON plumbline_cases (system, started_utc, session) "
    f'INCLUDE ("key", verdict, expected, mode) WHERE {NIGHT}'
)
LAST = (
    "SELECT DISTINCT ON (system) session FROM plumbline_cases "
    f"WHERE {NIGHT} ORDER BY system, started_utc DESC, session DESC"
)
WELL = ", ".join(f"'{verdict}'" for verdict in sorted(HEALTHY))
CASES = (
    f'SELECT DISTINCT system, started_utc, session, "key", verdict, expected FROM plumbline_cases WHERE {NIGHT}'
)

#: Queries by name. No column is ever removed or moved, so that ``CREATE OR REPLACE`` keeps the grants on a
#: view.
VIEWS = {
    "plumbline_history": f"SELECT *, {SLOWDOWN} AS slowdown FROM ({MEDIANS.format(more='')}) AS cases",
    "plumbline_last_night": f"SELECT *, {SLOWDOWN} AS slowdown "
    f"FROM ({MEDIANS.format(more=f' AND session IN ({LAST})')}) AS cases",
    "plumbline_alarms_by_month": "SELECT date_trunc('month', started_utc) AS month, system, "
    "count(DISTINCT session) AS nights, "
    f"count(DISTINCT session) FILTER (WHERE {{failed}}) AS failed_nights, "
    "count(*) FILTER (WHERE verdict = 'regressed' AND expected = '') AS regressed, "
    f"count(*) FILTER (WHERE {{failed}}) AS failed_cases FROM ({CASES}) AS cases GROUP BY 1, 2".replace(
        "{failed}", f"verdict NOT IN ({WELL}) AND expected = ''"
    ),
}


def create_views(connection: psycopg.Connection) -> None:
    connection.execute(sql.SQL(INDEX))
    for name, query in VIEWS.items():
        words = sql.SQL("CREATE OR REPLACE VIEW {} AS ").format(sql.Identifier(name))
        connection.execute(words + sql.SQL(query))


TYPES: dict[Any, str] = {
    pl.String: "text",
    pl.Int64: "bigint",
    pl.Float64: "double precision",
    pl.Boolean: "boolean",
    pl.List(pl.Float64): "double precision[]",
    pl.List(pl.Boolean): "boolean[]",
}
KEY = ("session", "launch", "key")
LOCK = 0x706C756D62  #: only one loader at a time makes or changes the tables
#: Escapes for COPY, the backslash first. PostgreSQL's text has no NUL, which is written as in Python.
ESCAPES = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r", "\0": r"\\x00"}
MANY = 100  #: sessions between two lines of progress
Say = Callable[[str], None]


@dataclass(frozen=True)
class LoadCount:
    """The numbers of sessions and rows that were loaded or known before."""

    new: int
    known: int
    rows: int  #: rows of the new sessions


def load_store(directory: Path, dsn: str, say: Say) -> LoadCount:
    """Load all sessions of a store that are not in the database yet, each in its own transaction.

    ``dsn``: as libpq reads it; empty for PGHOST and similar variables. Its password is never shown.

    :raises UsageError: if the server cannot be reached or refuses, the tables are of another version, a file is
    damaged, or a session was loaded with other contents. Sessions loaded by then stay.
    """
    paths = list_sessions(directory)
    secrets = find_passwords(dsn)
    try:
        with psycopg.connect(dsn, autocommit=True, client_encoding="utf8") as connection:
            prepare_tables(connection)
            return load_all(connection, paths, say)
    except psycopg.Error as error:
        reason = str(error).strip() or type(error).__name__
        for secret in secrets:
            reason = reason.replace(secret, "***")
        reason = " ".join(reason.split())
        raise UsageError(f"PostgreSQL: {reason}; see that server and rights are there") from None


def find_passwords(dsn: str) -> list[str]:
    """Find the passwords in a DSN, which must not be shown.

    :raises UsageError: if it is not a DSN; without its text, which may contain a password.
    """
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.Error:
        forms = "postgresql://user@host/database or host=... dbname=..."
        raise UsageError(f"the DSN is none that PostgreSQL reads; write it as {forms}") from None
    return [str(parts[name]) for name in ("password", "sslpassword") if parts.get(name)]


def prepare_tables(connection: psycopg.Connection) -> None:
    """Make the tables if they do not exist, and the views.

    :raises UsageError: if they are of another version.
    """
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        connection.execute("CREATE TABLE IF NOT EXISTS plumbline_schema (version integer NOT NULL)")
        row = connection.execute("SELECT max(version) FROM plumbline_schema").fetchone()
        held = row[0] if row else None
        if held is None:
            create_tables(connection)
        elif held != VERSION:
            other = f"its tables are of version {held}, and this Plumbline knows {VERSION}"
            raise UsageError(f"PostgreSQL: {other}; load into another database")
        create_views(connection)


def create_tables(connection: psycopg.Connection) -> None:
    columns = [declare_column(name) for name in SCHEMA.names()]
    connection.execute(
        "CREATE TABLE plumbline_sessions (session text PRIMARY KEY, digest text NOT NULL, "
        "rows bigint NOT NULL, loaded timestamptz NOT NULL DEFAULT now())"
    )
    statement = (
        "CREATE TABLE plumbline_cases ({columns}, PRIMARY KEY ({key}), "
        "FOREIGN KEY (session) REFERENCES plumbline_sessions)"
    )
    connection.execute(sql.SQL(statement).format(columns=sql.SQL(", ").join(columns), key=join_columns(KEY)))
    connection.execute('CREATE INDEX ON plumbline_cases ("key", started_utc)')
    connection.execute("INSERT INTO plumbline_schema VALUES (%s)", [VERSION])


def declare_column(name: str) -> sql.Composed:
    kind = "timestamptz" if name == "started_utc" else TYPES[SCHEMA[name]]
    return sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind))


def join_columns(columns: Any) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def load_all(connection: psycopg.Connection, paths: list[Path], say: Say) -> LoadCount:
    """Load the sessions of these files that are not in the database yet.

    :raises UsageError: if one was loaded with other contents.
    :raises StoreError: if one cannot be read.
    """
    digests: dict[str, str] = dict(
        connection.execute("SELECT session, digest FROM plumbline_sessions").fetchall()
    )
    new = rows = 0
    for number, path in enumerate(paths, 1):
        digest = compute_digest(path)
        session = path.name.removesuffix(SUFFIX)
        if digests.get(session, digest) != digest:
            other = "was loaded with another content; remove the session from the database first"
            raise UsageError(f"{path}: {other}")
        loaded = None if session in digests else load_session(connection, path, session, digest)
        new += loaded is not None
        rows += loaded or 0
        if number % MANY == 0:
            say(f"{number} of {len(paths)} sessions")
    return LoadCount(new, len(paths) - new, rows)


def compute_digest(path: Path) -> str:
    """Compute the SHA-256 of a file. Raises StoreError if it cannot be read."""
    with explaining(path, "restore the file or remove it", StoreError):
        return hashlib.sha256(files.read_regular(path)).hexdigest()


def load_session(connection: psycopg.Connection, path: Path, session: str, digest: str) -> int | None:
    """Load one session whole or not at all. Return its number of rows, or None if another loader was faster."""
    frame = read_session(path)
    copy = sql.SQL("COPY plumbline_cases ({}) FROM STDIN").format(join_columns(frame.columns))
    with connection.transaction(), connection.cursor() as cursor:
        columns = "plumbline_sessions (session, digest, rows) VALUES (%s, %s, %s)"
        insert = f"INSERT INTO {columns} ON CONFLICT DO NOTHING"
        if cursor.execute(insert, [session, digest, frame.height]).rowcount == 0:
            return None
        with cursor.copy(copy) as target:
            target.write(encode_copy_lines(frame))
    return frame.height


def encode_copy_lines(frame: pl.DataFrame) -> bytes:
    """Encode rows in the text format of COPY: one per line, separated by tabs, with escapes."""
    columns = []
    for name, kind in frame.schema.items():
        values = pl.col(name)
        if isinstance(kind, pl.List):
            values = pl.format("{{{}}}", values.cast(pl.List(pl.String)).list.join(","))
        elif kind == pl.String:
            for sign, written in ESCAPES.items():
                values = values.str.replace_all(sign, written, literal=True)
        columns.append(values.alias(name))
    buffer = io.BytesIO()
    frame.select(columns).write_csv(
        buffer, include_header=False, separator="\t", quote_style="never", null_value=r"\N"
    )
    return buffer.getvalue()
