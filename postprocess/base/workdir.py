"""The work directory: everything that is not source, and the lock on it.

Layout below the root: ``venv``, ``mpi`` (wheels), ``spack``, ``build``, ``programs``, ``mirror`` (its name),
``sessions/<session>``, ``latest`` (a link to the last), ``store/<session>.parquet``, ``calibrations`` (the
ledger), ``references`` (provisional ones), ``proposal`` (changes to others), ``told.json`` (notes already
printed), ``alarms.jsonl``, ``drift``, ``selftest``, ``compare``, ``offer``, ``offers`` (compared), ``accept``,
``bindings``, ``imported.jsonl`` (launches from reports) and ``faults`` (tracebacks).
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from postprocess.base import os_errors as faults
from postprocess.base.errors import UsageError, explaining
from postprocess.base.os_errors import lock_file


@dataclass(frozen=True)
class WorkDirectory:
    """Paths of one work directory and of its sources."""

    root: Path
    source: Path

    @property
    def sessions(self) -> Path:
        """One directory per session: plan, raw records, ReFrame's files, summary, report."""
        return self.root / "sessions"

    @property
    def store(self) -> Path:
        """One columnar file per session, with every trial."""
        return self.root / "store"

    @property
    def faults(self) -> Path:
        """One file per fault of Plumbline itself, with its traceback."""
        return self.root / faults.FOLDER

    @property
    def provisional(self) -> Path:
        """References that were calibrated here and not reviewed."""
        return self.root / "references"

    @property
    def reference_roots(self) -> list[Path]:
        """Where references are looked up, the reviewed ones first."""
        return [self.source / "reference_data", self.provisional]

    def new_session(self) -> Path:
        """Make the directory of a new session; its name sorts by time and is unique.

        :raises UsageError: if it cannot be made.
        """
        stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        session = self.sessions / f"{stamp}-{os.getpid()}"
        while session.exists():
            time.sleep(0.1)
            stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
            session = self.sessions / f"{stamp}-{os.getpid()}"
        with explaining(session, "PLUMBLINE_HOME chooses another place"):
            session.mkdir(parents=True)
        return session

    @property
    def told(self) -> Path:
        """The file of notes that were printed in an earlier session and need not be repeated."""
        return self.root / "told.json"

    @property
    def latest(self) -> Path:
        """A link to the session that finished last."""
        return self.root / "latest"

    def find_last_session(self) -> Path | None:
        summaries = self.sessions.glob("*/summary.json")
        last = max(summaries, key=lambda path: (path.stat().st_mtime_ns, path), default=None)
        return last.parent if last else None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the work directory exclusively: two sessions at once would disturb each other's times.

        The lock ends with the process, however it ends.
        :raises UsageError: if another process holds it.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "lock").open("a+") as lock:
            try:
                lock_file(lock, self.root / "lock", fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                holder = lock.read().strip() or "another process"
                fix = "wait for it, or use another work directory (PLUMBLINE_HOME)"
                raise UsageError(f"{self.root}: in use by {holder}; {fix}") from None
            lock.truncate(0)
            lock.write(f"process {os.getpid()}\n")
            lock.flush()
            yield
