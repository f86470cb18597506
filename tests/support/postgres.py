"""A PostgreSQL of the test's own: from Debian's package, on a socket in a folder, gone with the test."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

USER, PASSWORD = "plumbline", "se'cret %word"
SECONDS = 30  #: after which a server that does not answer is no server


@dataclass(frozen=True)
class Server:
    """A running server, and who may enter it."""

    folder: Path

    def dsn(self, database: str, password: str = PASSWORD) -> str:
        """How to reach a database."""
        quoted = password.replace("\\", r"\\").replace("'", r"\'")
        return f"host={self.folder} user={USER} dbname={database} password='{quoted}'"

    def create(self, database: str, encoding: str = "UTF8") -> str:
        """Make an empty database, and say how to reach it."""
        import psycopg

        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            made = f'CREATE DATABASE "{database}" TEMPLATE template0 ENCODING {encoding!r}'
            connection.execute(made)
        return self.dsn(database)


def programs() -> Path:
    """The folder with PostgreSQL's programs; the test is skipped where there is none."""
    pytest.importorskip("psycopg", reason="no psycopg: ./plumbline test installs it")
    # Debian has the programs of each version in a folder of their own, and this one on the search path.
    debian = shutil.which("pg_ctlcluster") is not None
    known = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) if debian else []
    on_path = shutil.which("initdb")
    if not known and not on_path:
        pytest.skip("no PostgreSQL (Debian: apt-get install postgresql)")
    return (known[-1] if known else Path(on_path)).parent


def unprivileged(folder: Path) -> dict:
    """Who a server may run as: not root. The folder becomes theirs."""
    if os.getuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@contextmanager
def running() -> Iterator[Server]:
    """A server until the end of the block. Its folder has a short name: a socket's may not be long."""
    binaries = programs()
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    who = unprivileged(folder) | {"cwd": folder}
    server = None
    try:
        word = folder / "password"
        word.write_text(PASSWORD)
        word.chmod(0o644)
        make = [binaries / "initdb", "--pgdata", folder / "data", "--username", USER, "--no-sync"]
        make += ["--encoding=UTF8", "--locale=C", "--auth=scram-sha-256", f"--pwfile={word}"]
        done = subprocess.run(make, capture_output=True, text=True, check=False, **who)
        assert done.returncode == 0, done.stderr
        start = ["setpriv", "--pdeathsig", "INT", binaries / "postgres", "-D", folder / "data"]
        start += ["-c", "listen_addresses=", "-k", folder, "-F"]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(start, stdout=log, stderr=log, **who)
        wait(server, folder)
        yield Server(folder)
    finally:
        if server:
            server.terminate()
            server.send_signal(2)
            server.wait(SECONDS)
        shutil.rmtree(folder)


def wait(server: subprocess.Popen, folder: Path) -> None:
    """Until the server lets somebody in."""
    import psycopg

    for _ in range(SECONDS * 10):
        try:
            psycopg.connect(Server(folder).dsn("postgres")).close()
            return
        except psycopg.OperationalError:
            assert server.poll() is None, (folder / "log").read_text()
            time.sleep(0.1)
    raise AssertionError((folder / "log").read_text())
