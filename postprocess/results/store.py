"""The results store: one immutable Parquet file per session, with a row per case and launch.

DuckDB and Polars read ``<directory>/*.parquet`` in place. Times are in seconds. The file's metadata has a
checksum, which reveals damage, and the version of the columns. Queries over many sessions are in
:mod:`postprocess.results.query`, which reads no trials.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import polars as pl

from postprocess.base import files
from postprocess.base.errors import UsageError, explaining
from postprocess.base.formats import SECONDS, UNITS
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch
from postprocess.model.measurement import TrialSummary
from postprocess.model.verdict import CaseResult, Verdict
from spack_envs.installation import UNKNOWN

SUFFIX = ".parquet"
VERSION = 3  #: version of the columns
METADATA = "schema"  #: the key of the version in the metadata
TYPES: dict[Any, Any] = {
    str: pl.String,
    int: pl.Int64,
    float: pl.Float64,
    float | None: pl.Float64,
    bool: pl.Boolean,
}
WORDS = {"verdict": [verdict.value for verdict in Verdict], "unit": [*UNITS]}  #: allowed texts of a column
SERIES = ("t_max", "t_min", "t_global", "skew")


class StoreError(UsageError):
    """A session that cannot be written or read: one line with file and fix."""


@dataclass(frozen=True)
class StoreRow:
    """One case in one launch: verdict, statistics and every trial. Times are in seconds."""

    session: str
    started_utc: str
    launch: int
    case: Case
    verdict: Verdict
    reason: str = ""
    reference: float | None = None
    lower: float | None = None
    upper: float | None = None
    q: float | None = None  #: these three as in :class:`postprocess.model.verdict.CaseResult`
    detectable: float | None = None
    expected: str = ""
    unit: str = SECONDS
    value: float | None = None  #: value of this launch, in ``unit``
    judged: float | None = None  #: median of the launches that were judged together
    judged_launches: int = 0  #: number of these launches
    headline_judged: float | None = None  #: the same for the headline
    headline_reference: float | None = None
    figures: str = "{}"  #: all that a reference benchmark printed for the case, as JSON
    summary: TrialSummary | None = None
    t_max: Sequence[float] | np.ndarray = ()
    t_min: Sequence[float] | np.ndarray = ()
    t_global: Sequence[float] | np.ndarray = ()
    skew: Sequence[float] | np.ndarray = ()
    late: Sequence[bool] | np.ndarray = ()
    dropped: int = 1  #: leading trials that no statistic uses
    mpi_library: str = ""
    suite_version: str = ""
    source_hash: str = ""
    spec_hash: str = ""
    compiler: str = UNKNOWN
    flags: str = UNKNOWN
    hosts: str = ""  #: the launch's nodes, sorted and joined by commas; empty if unknown
    mode: str = ""  #: mode of the session; empty if unknown
    provenance: str = ""  #: the run record as JSON


def _schema() -> pl.Schema:
    """Return the columns of the store in order; case and summary have a column per field."""
    columns: dict[str, Any] = {}
    for name, kind in get_type_hints(StoreRow).items():
        if name == "case":
            columns |= {part: TYPES[of] for part, of in get_type_hints(Case).items()}
            columns["key"] = pl.String
        elif name == "summary":
            columns |= {part: TYPES[of] for part, of in get_type_hints(TrialSummary).items()}
        elif name in SERIES:
            columns[name] = pl.List(pl.Float64)
        elif name == "late":
            columns[name] = pl.List(pl.Boolean)
        elif name == "verdict":
            columns[name] = pl.String
        else:
            columns[name] = TYPES[kind]
    return pl.Schema(columns)


SCHEMA = _schema()


def write_session(path: Path, rows: Sequence[StoreRow]) -> None:
    """Write a session whole or not at all; ``path`` is named after it, ``<session>.parquet``.

    Raises StoreError if the file exists, cannot be written, or a row is not of the session. Earlier files are
    never changed.
    """
    others = {row.session for row in rows} - {path.name.removesuffix(SUFFIX)}
    if others or path.suffix != SUFFIX:
        raise StoreError(f"{path}: is not named after its session {sorted(others)}; rename it")
    write_frame(path, pl.DataFrame([_flat(row) for row in rows], schema=SCHEMA, orient="row"))


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Write the rows of a session as columns of ``SCHEMA``: whole and sealed, or not at all.

    Raises StoreError if the file exists or cannot be written.
    """
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata={METADATA: str(VERSION), "seal": files.PLACEHOLDER})
    try:
        files.create_file(path, files.seal_data(buffer.getvalue()))
    except FileExistsError:
        message = f"{path}: the session is stored already and never overwritten; start a new one"
        raise StoreError(message) from None
    except OSError as error:
        message = f"{path}: cannot be written: {error.strerror}; make room or choose another folder"
        raise StoreError(message) from None


def read_sessions(directory: Path, sessions: Sequence[str] | None = None) -> pl.DataFrame:
    """Read the rows of the named sessions, or of all, in the order of their names.

    Raises StoreError naming the first file that is missing, unreadable or not of this schema.
    """
    if sessions is None:
        paths = list_sessions(directory)
    else:
        paths = [directory / f"{session}{SUFFIX}" for session in sessions]
    return pl.concat([SCHEMA.to_frame(), *(read_session(path) for path in paths)])


def list_sessions(directory: Path) -> list[Path]:
    """List all session files of a folder. Leftovers of a killed writer have another suffix.

    :raises StoreError: if the folder cannot be read.
    """
    with explaining(directory, "run a session or name another", StoreError):
        return sorted(path for path in directory.iterdir() if path.suffix == SUFFIX)


def read_session(path: Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Read the rows of one file, with all columns or some of them.

    Nothing is used before the checksum over all bytes is verified. Raises StoreError naming the file if it is
    missing, damaged, of another version or of another session.
    """
    data = _intact(path)
    try:
        version = pl.read_parquet_metadata(io.BytesIO(data)).get(METADATA)
        if version != str(VERSION):
            other = f"is of version {version!r} of the store, and this Plumbline knows {VERSION}"
            raise StoreError(f"{path}: {other}; read it with the Plumbline that wrote it")
        if pl.read_parquet_schema(io.BytesIO(data)) != SCHEMA:
            raise ValueError("columns")
        needed = None if columns is None else {*columns, "session"}
        chosen = None if needed is None else [name for name in SCHEMA if name in needed]
        frame = pl.read_parquet(io.BytesIO(data), columns=chosen)
    except pl.exceptions.PolarsError:
        raise StoreError(f"{path}: is not a Parquet file; restore or remove it") from None
    except ValueError:
        other = "its columns are not those of its version"
        raise StoreError(f"{path}: {other}; move it elsewhere") from None
    if (frame["session"] != path.name.removesuffix(SUFFIX)).any():
        raise StoreError(f"{path}: holds another session; give it back its name")
    if impossible := _find_impossible_column(frame):
        raise StoreError(f"{path}: {impossible}: holds what no session has; move it elsewhere")
    return frame if columns is None else frame.select(columns)


def _find_impossible_column(frame: pl.DataFrame) -> str:
    """Find a text column with a missing or disallowed value; empty if there is none."""
    for name in frame.select(pl.col(pl.String)).columns:
        words = WORDS.get(name)
        if frame[name].has_nulls() or (words and not frame[name].is_in(words).all()):
            return name
    return ""


def _intact(path: Path) -> bytes:
    """Read a file, and check that it is intact."""
    with explaining(path, "restore the file or name another", StoreError):
        data = files.read_regular(path)
    if not files.is_intact(data):
        raise StoreError(f"{path}: is damaged, its checksum is wrong; restore or remove it")
    return data


def _flat(row: StoreRow) -> dict[str, Any]:
    """Return the values of a row by column."""
    values: dict[str, Any] = {}
    for field in fields(StoreRow):
        value = getattr(row, field.name)
        if field.name == "case":
            values |= {part.name: getattr(value, part.name) for part in fields(Case)}
            values["key"] = value.key
        elif field.name == "summary":
            values |= {part.name: getattr(value, part.name, None) for part in fields(TrialSummary)}
        elif field.name in SERIES:
            values[field.name] = [float(time) for time in value]
        elif field.name == "late":
            values[field.name] = [bool(flag) for flag in value]
        else:
            values[field.name] = _storable(value)
    return values


def _storable(value: Any) -> Any:
    """Convert text to valid UTF-8: a program's broken name must not cost the night's data."""
    if isinstance(value, str):
        return str(value).encode("utf-8", "backslashreplace").decode()
    return value


def build_rows(
    session: str,
    started: str,
    finished: Sequence[FinishedLaunch],
    results: Sequence[CaseResult],
    mode: str = "",
) -> list[StoreRow]:
    """Build a row for every planned case of every launch, with its trials if there are any."""
    by_case = {result.case: result for result in results}
    rows = []
    for launched in finished:
        provenance = json.dumps(launched.run)
        for case in launched.launch.cases:
            row = build_row(session, started, launched, by_case[case])
            rows.append(replace(row, mode=mode, provenance=provenance))
    return rows


def build_row(session: str, started: str, finished: FinishedLaunch, result: CaseResult) -> StoreRow:
    """Build the row of one case in one launch, without its mode and provenance."""
    run = finished.run
    built = finished.binary
    measured = finished.measurements.get(result.case.variable)
    lower, upper = result.band or (None, None)
    base = StoreRow(
        session=session,
        started_utc=started,
        launch=finished.launch.number,
        case=result.case,
        verdict=result.verdict,
        reason=result.reason,
        reference=result.reference,
        lower=lower,
        upper=upper,
        q=result.q,
        detectable=result.detectable,
        expected=result.expected,
        judged=result.value,
        judged_launches=result.launches,
        headline_judged=result.headline,
        headline_reference=result.headline_reference,
        dropped=run.get("dropped", 1),
        mpi_library=run.get("mpi_library", ""),
        suite_version=run.get("suite_version", ""),
        source_hash=run.get("source_hash", ""),
        spec_hash=finished.spec,
        compiler=built.compiler,
        flags=built.flags,
        hosts=",".join(sorted(str(host["name"]) for host in run.get("hosts") or [])),
    )
    if measured is None:
        return base
    record = measured.record
    return replace(
        base,
        unit=measured.unit,
        value=measured.value,
        figures=json.dumps(dict(measured.figures)),
        summary=measured.summary,
        **({name: getattr(record, name) for name in (*SERIES, "late")} if record else {}),
    )


def parse_run_json(text: str) -> Mapping[str, Any]:
    """Parse the run record of a row; return an empty one if it is malformed."""
    try:
        record = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
