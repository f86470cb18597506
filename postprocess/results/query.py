"""Query many sessions: the single place for it, which uses the store alone and not its trials.

A session's file is mostly trials and run records, and proving it undamaged means reading all of it: 7 ms per
file, 13 s for five years of nights, whatever the query. So each file is read and proved once, and its headlines
go to ``<store>/headlines/<month>.parquet``, sorted by case and sealed like the store's files. Such a file lists
the sessions that it covers, with size and modification time of each. It is used only if its own seal is intact
and it covers exactly the sessions now in the store; otherwise it is rebuilt. It may be removed at any time. So
every reported number comes from bytes with a correct checksum. Damage that changes neither the size nor the
time of a proved file is found when its trials are read.

The headlines are the history of one case (``keys=[key]``), a year of context for a night (``since=``) and the
input of the search for drift (all cases, few ``columns``).
"""

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

from postprocess.base import files
from postprocess.base.errors import UsageError, explaining, propose_word
from postprocess.base.formats import parse_since, plural
from postprocess.base.grouping import group_pairs
from postprocess.base.workdir import WorkDirectory
from postprocess.results import store
from postprocess.results.store import read_session

FOLDER = "headlines"
COVERS = "covers"  #: key of the covered sessions in an index file
LEFT_OUT = (*store.SERIES, "late", "figures", "provenance")
INDEX_COLUMNS = [name for name in store.SCHEMA.names() if name not in LEFT_OUT]
ORDER = ("key", "started_utc", "session", "launch")
NAMED_BY_TIME = re.compile(r"(?P<month>[0-9]{6})[0-9]{2}T[0-9]{6}Z-.*")
NO_MONTH = "other"  #: month of sessions whose names have no time
ROWS_OF_A_GROUP = 8192  #: so that a query for one case reads only a part of a month
MANY = 20  #: new files in a month from which on it is reported, because there may be many such months

Say = Callable[[str], None]
Covered = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class IndexMonth:
    """The current sessions of a month in the store, and the index file that should cover them."""

    name: str  #: such as ``202611``; :data:`NO_MONTH` for sessions whose names have no time
    path: Path
    sessions: Mapping[Path, tuple[int, int]]  #: size, and modification time in ns

    @property
    def covers(self) -> dict[str, tuple[int, int]]:
        """The sessions that the index file must list."""
        return {path.name: facts for path, facts in self.sessions.items()}


def list_index_months(directory: Path) -> list[IndexMonth]:
    """List the months of a store, sorted.

    :raises StoreError: if the folder or a file cannot be accessed.
    """
    months: dict[str, dict[Path, tuple[int, int]]] = {}
    for path in store.list_sessions(directory):
        match = NAMED_BY_TIME.fullmatch(path.name.removesuffix(store.SUFFIX))
        with explaining(path, "restore the file or remove it", store.StoreError):
            facts = path.stat()
        month = months.setdefault(match["month"] if match else NO_MONTH, {})
        month[path] = (facts.st_size, facts.st_mtime_ns)
    return [
        IndexMonth(name, directory / FOLDER / f"{name}{store.SUFFIX}", months[name]) for name in sorted(months)
    ]


def scan_months(chosen: Sequence[IndexMonth], say: Say | None = None) -> Iterator[pl.LazyFrame]:
    """Scan the headlines of each month lazily. A month that the index does not cover is read and indexed.

    :raises StoreError: names the first session file that is damaged or foreign.
    """
    for month in chosen:
        held = read_intact_index(month.path)
        covered = read_covered_sessions(held)
        if held is None or covered != month.covers:
            held = build_month_index(month, held, covered, say)
            write_index(month.path, held)
        yield pl.scan_parquet(io.BytesIO(held))


def read_intact_index(path: Path) -> bytes | None:
    """Read an index file of this version if it is intact; else return None."""
    try:
        data = files.read_regular(path)
        if not files.is_intact(data):
            return None
        same = pl.read_parquet_schema(io.BytesIO(data)) == index_schema()
        version = pl.read_parquet_metadata(io.BytesIO(data)).get(store.METADATA)
    except (OSError, pl.exceptions.PolarsError):
        return None
    return data if same and version == str(store.VERSION) else None


def index_schema() -> pl.Schema:
    return pl.Schema({name: store.SCHEMA[name] for name in INDEX_COLUMNS})


def read_covered_sessions(data: bytes | None) -> Covered:
    """Read the sessions in an index file, with the size and time that their files had."""
    if data is None:
        return {}
    covers = json.loads(pl.read_parquet_metadata(io.BytesIO(data)).get(COVERS, "{}"))
    return {name: tuple(facts) for name, facts in covers.items()}


def build_month_index(month: IndexMonth, held: bytes | None, known: Covered, say: Say | None) -> bytes:
    """Build a month's index file from the valid earlier rows and new sessions, which are read and checked."""
    if not known or not known.items() <= month.covers.items():
        held, known = None, {}
    new = [path for path in month.sessions if path.name not in known]
    if say and len(new) >= MANY:
        say(f"reading {plural(len(new), 'session')} of {month.name} for the first time")
    frames = [pl.read_parquet(io.BytesIO(held))] if held else [index_schema().to_frame()]
    frames += [read_session(path, INDEX_COLUMNS) for path in new]
    buffer = io.BytesIO()
    metadata = {store.METADATA: str(store.VERSION), COVERS: json.dumps(month.covers), "seal": files.PLACEHOLDER}
    pl.concat(frames).sort(*ORDER).write_parquet(buffer, metadata=metadata, row_group_size=ROWS_OF_A_GROUP)
    return files.seal_data(buffer.getvalue())


def write_index(path: Path, data: bytes) -> None:
    """Write an index file if possible; if not, the next query takes longer."""
    try:
        files.replace_files({path: data})
    except OSError:
        return


LATEST = "latest"  #: names the session that finished last


def find_finished_session(work: WorkDirectory, name: str | None) -> Path:
    """Return the directory of a finished session by name; the last one for ``latest`` or no name.

    :raises UsageError: if there is none.
    """
    named = name not in (None, "", LATEST)
    directory = work.sessions / str(name) if named else work.find_last_session()
    if directory is not None and (directory / "summary.json").exists():
        return directory
    names = [path.parent.name for path in work.sessions.glob("*/summary.json")]
    fix = propose_word(str(name), names) if named else ""
    fix = fix or ("./plumbline report latest shows the last one" if names else "./plumbline nightly makes one")
    raise UsageError(f"{directory or work.sessions}: no finished session there; {fix}")


#: Modes of sessions that are nights. Calibrations, confirmations and manual trials (``run``) are not: five runs
#: in an hour would outvote a week, and one with other references would restart the history.
NIGHTS = ("nightly",)
CONFIRM = "confirm"
#: Suffix of the mode of retests, which a night or a run makes before it judges
FRESH = "-fresh"
#: Modes of sessions that decide on suspects: nights, and what measures them again
JUDGING = (*NIGHTS, CONFIRM)
#: Modes of sessions that count in a series of slow sessions; retests stand for their night
COUNTING = (*JUDGING, *(night + FRESH for night in NIGHTS))
#: tolerated error of a session's clock; a session further in the future is ignored
AHEAD = timedelta(days=1)


def read_headlines(
    directory: Path,
    *,
    keys: Sequence[str] | None = None,
    since: str | None = None,
    modes: Sequence[str] | None = NIGHTS,
    columns: Sequence[str] | None = None,
    say: Say | None = None,
) -> pl.DataFrame:
    """Read a row per case and launch, without trials, sorted by key, started_utc, session and launch.

    ``keys``: only these cases. ``since``: only sessions that started at this time or later, UTC, as in
    ``2026-11-21`` or ``2026-11-21T01:30:00Z``. ``modes``: only sessions of these modes, nights by default, None
    for all. A session in the future, due to a wrong clock, is left out: it would be the last one for years.
    ``columns``: the wanted ones of ``INDEX_COLUMNS``; fewer need less memory. ``say``: reports what takes long.
    Values are in ``unit`` of their row.

    :raises StoreError: names the first file that is damaged, foreign or newer than this version; also if it
    would not be part of the answer, unless it is of a month that is not needed.
    :raises UsageError: if ``since`` is not a time.
    """
    chosen = list(columns) if columns is not None else INDEX_COLUMNS
    begin = parse_since(since) if since is not None else None
    needed = list(dict.fromkeys([*ORDER, *chosen]))
    wanted = build_filter(keys, begin, modes)
    frames = [index_schema().to_frame().select(needed)]
    for lazy in scan_months(select_months(list_index_months(directory), begin), say):
        frames.append(lazy.filter(wanted).select(needed).collect())
    return sort_rows(pl.concat(frames)).select(chosen)


def select_months(found: Sequence[IndexMonth], begin: datetime | None) -> list[IndexMonth]:
    """Select the months that may have sessions from a time on; a session is named just before it starts."""
    if begin is None:
        return list(found)
    before = begin - timedelta(days=1) if begin.date() > date.min else begin
    first = f"{before.year:04}{before.month:02}"
    return [month for month in found if month.name == NO_MONTH or month.name >= first]


def build_filter(keys: Sequence[str] | None, begin: datetime | None, modes: Sequence[str] | None) -> pl.Expr:
    latest = datetime.now(timezone.utc) + AHEAD
    wanted = pl.col("started_utc") < f"{latest:%Y-%m-%dT%H:%M:%SZ}"
    if keys is not None:
        wanted = pl.col("key").is_in(list(keys))
        if keys:  # lets a reader skip whole groups of rows
            wanted &= pl.col("key").is_between(pl.lit(min(keys)), pl.lit(max(keys)))
    if begin is not None:
        wanted &= pl.col("started_utc") >= f"{begin.isoformat()}Z"
    if modes is not None:
        wanted &= pl.col("mode").is_in(list(modes))
    return wanted


def sort_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Sort rows. Enumerated keys sort in a tenth of the time of texts."""
    ranks = pl.Enum(frame["key"].unique().sort())
    return frame.sort(pl.col("key").cast(ranks), *ORDER[1:])


NIGHT_COLUMNS = (
    *("key", "session", "started_utc", "mode", "verdict", "unit", "value", "judged"),
    *("reference", "lower", "upper", "mpi_library"),
)
FIRST = ("verdict", "unit", "judged", "reference", "lower", "upper", "mpi_library")


@dataclass(frozen=True)
class Night:
    """A case in one session."""

    day: str
    verdict: str
    unit: str
    value: float | None
    reference: float | None
    band: tuple[float, float] | None
    session: str = ""
    library: str = ""  #: the MPI's library version string


def read_nights(rows: Sequence[dict[str, Any]]) -> Iterator[Night]:
    for _, group in groupby(rows, key=lambda row: (row["started_utc"], row["session"])):
        launches = list(group)
        values = [launch["value"] for launch in launches if launch["value"] is not None]
        yield build_night(launches[0] | {"value": median(values) if values else None})


def build_night(row: dict[str, Any]) -> Night:
    """Build the night of a case from the shared columns of its launches and the median of their values."""
    limits = row["lower"], row["upper"]
    return Night(
        row["started_utc"][:10],
        row["verdict"],
        row["unit"],
        row["judged"] or row["value"],
        row["reference"],
        limits if None not in limits else None,
        row["session"],
        row["mpi_library"],
    )


def collect_nights(frame: pl.DataFrame, most: int) -> dict[str, tuple[Night, ...]]:
    """Collect the last nights of every case by key, in order of time.

    :param frame: headlines with :data:`NIGHT_COLUMNS`, sorted by key and time
    """
    nights = (
        frame.lazy()
        .group_by("key", "started_utc", "session", maintain_order=True)
        .agg(pl.col("value").median(), pl.col(*FIRST).first())
        .group_by("key", maintain_order=True)
        .tail(most)
        .collect()
    )
    by_case = group_pairs((row["key"], build_night(row)) for row in nights.iter_rows(named=True))
    return {key: tuple(case_nights) for key, case_nights in by_case.items()}
