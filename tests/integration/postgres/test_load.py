"""The store in PostgreSQL, a real one: each session whole and once, and no password anywhere."""

import os
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from postprocess.base.errors import UsageError
from postprocess.main import main
from postprocess.results import store
from postprocess.results.store import SCHEMA, read_sessions, write_session
from tests.support.factories.store import Site, session_name
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT
from tests.support.postgres import PASSWORD, Server, running
from tests.unit.postprocess.results.test_store import LOST, ROW

SITE = Site(cases=30)
ALL = "SELECT * FROM plumbline_cases ORDER BY session, launch, key"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture
def dsn(server: Server, tmp_path: Path) -> str:
    return server.create(tmp_path.name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with two nights and a session with what is hard to write."""
    made = tmp_path / "home" / "store"
    for number in range(2):
        SITE.write(made, number)
    hard = replace(ROW, reason='a\tb\\n\n"\\N" NUL \0 \r\u2028\n\\.\n', figures="{}")
    write_session(made / f"{ROW.session}.parquet", [hard, LOST])
    return made


def load(folder: Path, dsn: str, **more):
    from postprocess.results.postgres import load_store

    return load_store(folder, dsn, lambda text: None, **more)


def query(dsn: str, text: str) -> list[tuple]:
    import psycopg

    with psycopg.connect(dsn) as connection:
        return connection.execute(text).fetchall()


def held(folder: Path) -> list[tuple]:
    """The store's rows as the database should have them."""
    frame = read_sessions(folder).sort("session", "launch", "key")
    text = pl.col(pl.String).str.replace_all("\0", "\\x00", literal=True)
    when = pl.col("started_utc").str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_zone="UTC")
    return frame.with_columns(text).with_columns(when).rows()


def test_every_row_and_trial_arrives_as_it_was(folder, dsn):
    done = load(folder, dsn)
    assert (done.new, done.known, done.rows) == (3, 0, 62)
    assert query(dsn, ALL) == held(folder)
    names = "SELECT column_name FROM information_schema.columns WHERE table_name = 'plumbline_cases'"
    assert {name for (name,) in query(dsn, names)} == set(SCHEMA.names())


@plants("files", "a character that the encoding of the database lacks", "`load`", "", 2,
        "PostgreSQL: character with byte sequence")  # fmt: skip
def test_a_database_of_another_encoding_holds_the_same_text(tmp_path, server, declared: Declared):
    """And says so where it cannot, rather than hold another."""
    folder, dsn = tmp_path / "store", server.create(f"{tmp_path.name}1", "LATIN1")
    write_session(folder / "a.parquet", [replace(ROW, session="a", reason="Zürich", mpi_library="")])
    load(folder, dsn)
    assert query(dsn, "SELECT reason, length(reason) FROM plumbline_cases") == [("Zürich", 6)]
    write_session(folder / "b.parquet", [replace(ROW, session="b", reason="\u2028")])
    with declared.raises(UsageError):
        load(folder, dsn)


def test_a_session_is_loaded_once_and_new_ones_follow(folder, dsn):
    load(folder, dsn)
    again = load(folder, dsn)
    assert (again.new, again.known, again.rows) == (0, 3, 0)
    SITE.write(folder, 2)
    assert (load(folder, dsn).new, len(query(dsn, ALL))) == (1, 92)


def test_a_row_cannot_come_twice(folder, dsn):
    """Whatever loads it: the table itself refuses."""
    import psycopg

    load(folder, dsn)
    with psycopg.connect(dsn) as connection, pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute("INSERT INTO plumbline_cases SELECT * FROM plumbline_cases LIMIT 1")


@plants("lost", "half a row after the last one of a session", "`load`", "", 2, "PostgreSQL: ")
def test_a_session_comes_whole_or_not_at_all(folder, dsn, monkeypatch, declared: Declared):
    """The second one breaks off in a row after its last: nothing of it stays, and the first one does."""
    from postprocess.results import postgres

    calls = []
    original = postgres.encode_copy_lines

    def spoilt(frame: pl.DataFrame) -> bytes:
        calls.append(frame)
        return original(frame) + (b"half a row\n" if len(calls) == 2 else b"")

    monkeypatch.setattr(postgres, "encode_copy_lines", spoilt)
    with declared.raises(UsageError):
        load(folder, dsn)
    monkeypatch.undo()
    sessions = "SELECT session FROM plumbline_sessions"
    assert query(dsn, sessions) == [(session_name(0),)]
    assert {row[0] for row in query(dsn, ALL)} == {session_name(0)}
    assert load(folder, dsn).new == 2
    assert query(dsn, ALL) == held(folder)


@plants("stale", "a session whose content has changed since it was loaded", "`load`", "", 2,
        ".parquet: was loaded with another content")  # fmt: skip
def test_a_session_with_another_content_is_refused(folder, dsn, declared: Declared):
    load(folder, dsn)
    path = folder / f"{session_name(1)}.parquet"
    frame = pl.read_parquet(path).with_columns(value=pl.lit(7.0))
    path.unlink()
    store.write_frame(path, frame)
    before = query(dsn, ALL)
    with declared.raises(UsageError, match=rf"{path.name}: was loaded with another content"):
        load(folder, dsn)
    assert query(dsn, ALL) == before


@plants("files", "the last bytes of a session lost", "`load`", "", 2, ".parquet: is damaged")
def test_a_damaged_session_is_named_and_not_loaded(folder, dsn, declared: Declared):
    path = folder / f"{session_name(1)}.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    with declared.raises(UsageError, match=rf"{path.name}: is damaged"):
        load(folder, dsn)
    assert query(dsn, "SELECT session FROM plumbline_sessions") == [(session_name(0),)]


def test_two_loaders_at_once_load_each_session_once(folder, dsn):
    failed: list[BaseException] = []
    done: list[int] = []

    def run() -> None:
        try:
            done.append(load(folder, dsn).new)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (failed, sum(done)) == ([], 3)
    assert query(dsn, ALL) == held(folder)


@plants("files", "tables of another version", "PostgreSQL", "", 2,
        "its tables are of version 4, and this Plumbline knows 3; load into another database")  # fmt: skip
def test_tables_of_another_version_are_refused(folder, dsn, declared: Declared):
    import psycopg

    load(folder, dsn)
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE plumbline_schema SET version = 4")
    with declared.raises(UsageError):
        load(folder, dsn)


# The command.


def plumbline(folder: Path, *words: str) -> int:
    return main(str(ROOT), str(folder.parent), ["load", *words])


def written(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.parent.rglob("*") if path.is_file())


@pytest.mark.parametrize("how", ["words", "environment"])
def test_the_command_loads_and_shows_no_password(folder, dsn, capfd, monkeypatch, how):
    words = {"words": dsn.split(" ", 3), "environment": []}[how]
    if how == "environment":
        from psycopg.conninfo import conninfo_to_dict

        parts = conninfo_to_dict(dsn)
        named = {"host": "PGHOST", "user": "PGUSER", "dbname": "PGDATABASE", "password": "PGPASSWORD"}
        for part, name in named.items():
            monkeypatch.setenv(name, str(parts[part]))
    assert plumbline(folder, *words) == 0
    shown = capfd.readouterr()
    assert shown.out == "loaded 3 sessions with 62 rows; 0 there already\n"
    assert plumbline(folder, *words) == 0
    assert capfd.readouterr().out == "loaded 0 sessions with 0 rows; 3 there already\n"
    assert PASSWORD not in shown.out + shown.err
    assert PASSWORD.encode() not in written(folder)


@plants("security", "a password, in a DSN that cannot be used, in 7 ways", "`load`", "", 2,
        "authentication failed | No such file or directory | the DSN is none that PostgreSQL reads | ***"
        )  # fmt: skip
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["host={folder} user=plumbline dbname={name} password=hush1"], "authentication failed"),
        (["postgresql://plumbline:hush1@/{name}?host={folder}"], "authentication failed"),
        (["host=/nowhere password=hush1"], "No such file or directory"),
        (["postgresql://u:hush1@["], "the DSN is none that PostgreSQL reads"),
        (["password=hush1", "hush1"], "the DSN is none that PostgreSQL reads"),
        (["host={folder} user=plumbline dbname=hush1 password=hush1"], "authentication failed"),
        (["host=/hush1 password=hush1"], r"\*\*\*"),
    ],
)
def test_what_fails_is_one_line_without_the_password(
    folder, server, tmp_path, capfd, words, said, declared: Declared
):
    words = [word.format(folder=server.folder, name=tmp_path.name) for word in words]
    status = plumbline(folder, *words)
    shown = capfd.readouterr()
    assert "hush1" not in shown.out + shown.err
    assert shown.err.count("\n") == 1 and shown.err.startswith("plumbline: ")
    assert re.search(said, shown.err)
    declared.check((), status, [shown.err])


@plants("use", "a user who may make no tables", "PostgreSQL", "", 2,
        "PostgreSQL: permission denied for schema public")  # fmt: skip
def test_who_may_make_no_tables_is_told(folder, server, dsn, tmp_path, declared: Declared):
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE \"r{tmp_path.name}\" LOGIN PASSWORD 'x'")
    guest = f"host={server.folder} dbname={tmp_path.name} user=r{tmp_path.name} password=x"
    with declared.raises(UsageError):
        load(folder, guest)


def test_the_server_does_not_run_as_root(server):
    pid = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
    assert os.stat(f"/proc/{pid}").st_uid != 0
