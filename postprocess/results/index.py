"""What is known of every case and launch but its trials, gathered by month: derived data beside the store.

A session's file is mostly trials and run records, and proving that it is undamaged means reading all of it:
7 ms a file, 13 s for five years of nights, whatever is asked. So each file is read and proved once, and its
headlines go to ``<store>/headlines/<month>.parquet``, sorted by case and sealed as the store's files are. Such
a file lists the sessions that it covers, with size and time of change of each. It is believed only if its own
seal is whole and it covers exactly what is in the store now; otherwise it is made anew. It may be removed at
any time. So every number that is answered comes from bytes whose checksum was right. Damage that changes
neither size nor time of a file that was proved before is found by whoever reads its trials.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.formats import plural
from postprocess.base.near_words import propose_word
from postprocess.base.workdir import WorkDirectory
from postprocess.results.store import (
    METADATA,
    SCHEMA,
    SERIES,
    SUFFIX,
    VERSION,
    StoreError,
    list_sessions,
    read_session,
)

FOLDER = "headlines"
COVERS = "covers"  #: the key under which an index file tells the sessions in it
LEFT_OUT = (*SERIES, "late", "figures", "provenance")
COLUMNS = [name for name in SCHEMA.names() if name not in LEFT_OUT]
ORDER = ("key", "started_utc", "session", "launch")
NAMED_BY_TIME = re.compile(r"(?P<month>[0-9]{6})[0-9]{2}T[0-9]{6}Z-.*")
NO_MONTH = "other"  #: where sessions go whose names tell no time
ROWS_OF_A_GROUP = 8192  #: so that a question for one case reads a part of a month only
MANY = 20  #: new files in a month: it is told, for there may be many such months

Say = Callable[[str], None]
Covered = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class IndexMonth:
    """The sessions of a month that are in the store now, and the index file that should cover them."""

    name: str  #: such as ``202611``; :data:`NO_MONTH` for sessions whose names tell none
    path: Path
    sessions: Mapping[Path, tuple[int, int]]  #: size, and time of change in ns

    @property
    def covers(self) -> dict[str, tuple[int, int]]:
        """What the index file has to tell."""
        return {path.name: facts for path, facts in self.sessions.items()}


def list_index_months(directory: Path) -> list[IndexMonth]:
    """List the months of a store, in their order.

    :raises StoreError: if the folder or a file cannot be looked at.
    """
    found: dict[str, dict[Path, tuple[int, int]]] = {}
    for path in list_sessions(directory):
        match = NAMED_BY_TIME.fullmatch(path.name.removesuffix(SUFFIX))
        try:
            facts = path.stat()
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}; restore the file or remove it") from None
        month = found.setdefault(match["month"] if match else NO_MONTH, {})
        month[path] = (facts.st_size, facts.st_mtime_ns)
    return [IndexMonth(name, directory / FOLDER / f"{name}{SUFFIX}", found[name]) for name in sorted(found)]


def scan_months(chosen: Sequence[IndexMonth], say: Say | None = None) -> Iterator[pl.LazyFrame]:
    """Scan the headlines of each month lazily. A month that the index does not cover is read and added to it.

    :raises StoreError: naming the first session's file that is damaged or foreign.
    """
    for month in chosen:
        held = read_intact_index(month.path)
        known = read_covered_sessions(held)
        if held is None or known != month.covers:
            held = build_month_index(month, held, known, say)
            write_index(month.path, held)
        yield pl.scan_parquet(io.BytesIO(held))


def read_intact_index(path: Path) -> bytes | None:
    """Read an index file of this version that is as it was written; None for anything else."""
    try:
        data = files.read_regular(path)
        if not files.is_intact(data):
            return None
        same = pl.read_parquet_schema(io.BytesIO(data)) == index_schema()
        version = pl.read_parquet_metadata(io.BytesIO(data)).get(METADATA)
    except (OSError, pl.exceptions.PolarsError):
        return None
    return data if same and version == str(VERSION) else None


def index_schema() -> pl.Schema:
    """Return the columns of an index file."""
    return pl.Schema({name: SCHEMA[name] for name in COLUMNS})


def read_covered_sessions(data: bytes | None) -> Covered:
    """Read the sessions in an index file, with the size and time that their files had."""
    if data is None:
        return {}
    told = json.loads(pl.read_parquet_metadata(io.BytesIO(data)).get(COVERS, "{}"))
    return {name: tuple(facts) for name, facts in told.items()}


def build_month_index(month: IndexMonth, held: bytes | None, known: Covered, say: Say | None) -> bytes:
    """Build a month's index file from the rows that still hold and new sessions, which are read and checked."""
    if not known or not known.items() <= month.covers.items():
        held, known = None, {}
    new = [path for path in month.sessions if path.name not in known]
    if say and len(new) >= MANY:
        say(f"reading {plural(len(new), 'session')} of {month.name} for the first time")
    frames = [pl.read_parquet(io.BytesIO(held))] if held else [index_schema().to_frame()]
    frames += [read_session(path, COLUMNS) for path in new]
    buffer = io.BytesIO()
    told = {METADATA: str(VERSION), COVERS: json.dumps(month.covers), "seal": files.PLACEHOLDER}
    pl.concat(frames).sort(*ORDER).write_parquet(buffer, metadata=told, row_group_size=ROWS_OF_A_GROUP)
    return files.seal_data(buffer.getvalue())


def write_index(path: Path, data: bytes) -> None:
    """Keep an index file if there is a place for it; where there is none, the next question takes longer."""
    try:
        files.replace_files({path: data})
    except OSError:
        return


LATEST = "latest"  #: names the session that was finished last


def find_finished_session(work: WorkDirectory, name: str | None) -> Path:
    """Return the directory of a finished session by its name; of the last one for ``latest`` or no name.

    :raises UsageError: if there is none.
    """
    named = name not in (None, "", LATEST)
    directory = work.sessions / str(name) if named else work.find_last_session()
    if directory is not None and (directory / "summary.json").exists():
        return directory
    known = [path.parent.name for path in work.sessions.glob("*/summary.json")]
    fix = propose_word(str(name), known) if named else ""
    fix = fix or ("./plumbline report latest shows the last one" if known else "./plumbline nightly makes one")
    raise UsageError(f"{directory or work.sessions}: no finished session there; {fix}")
