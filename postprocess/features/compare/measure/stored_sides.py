"""What the store has of one side of an unpaired comparison: a session, or all nights of a day."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import msgspec

from postprocess.base.documents.records import is_measurable, parse_record
from postprocess.base.errors import UsageError
from postprocess.base.formats import first_of
from postprocess.base.workdir import WorkDirectory
from postprocess.features.compare.data import CaseValue
from postprocess.model.case import Case
from postprocess.model.options import OPTIONS
from postprocess.model.verdict import WITHOUT_VALUE, Verdict
from postprocess.results.query import read_headlines
from postprocess.results.store import SUFFIX, list_sessions, parse_run_json, read_session
from postprocess.results.summary import load_summary
from site_configs.schema.fields import PLATFORM_HASH

DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
COLUMNS = ("key", "launch", "verdict", "reason", "value", "unit", "hosts", "provenance")
NAMED = 3  #: sessions or environments that an error names


#: CPUs as Linux writes them: with longer numbers a range of them would fill the memory.
CpuList = Annotated[str, msgspec.Meta(pattern=r"\A(?!.*[0-9]{7})", max_length=10_000)]


@dataclass(frozen=True)
class ToldHost:
    """A node of a run record, as far as a comparison reads it."""

    name: str


@dataclass(frozen=True)
class ToldRank:
    """A process of a run record."""

    host: str
    cpus: CpuList = ""


@dataclass(frozen=True)
class ToldCache:
    """A cache of a run record, of any words."""

    level: Any
    type: Any
    bytes: Any
    shared_by: Any


@dataclass(frozen=True)
class ToldRun:
    """What a comparison reads of a run record, and of what type it must be."""

    mpi_library: str | None = None
    cpu_model: str | None = None
    environment: dict[str, Any] | None = None
    hosts: tuple[ToldHost, ...] | None = None
    ranks: tuple[ToldRank, ...] = ()
    caches: tuple[ToldCache, ...] | None = None


@cache  # the cases of a launch share it
def read_run(text: str) -> Mapping[str, Any]:
    """Read a run record; an empty one for what is none. Raises ValueError if its inside is another's."""
    run = parse_run_json(text)
    parse_record(run, ToldRun)
    return run


@dataclass(frozen=True)
class StoredCase:
    """A case in one launch of a stored session."""

    session: str
    case: Case
    launch: int
    value: CaseValue
    hosts: tuple[str, ...]
    provenance: str  #: the run record as JSON; empty if the launch left none

    @property
    def run(self) -> Mapping[str, Any]:
        """The run record."""
        return read_run(self.provenance)


@dataclass(frozen=True)
class StoredSide:
    """All launches of a side."""

    label: str  #: as the user named it
    rows: tuple[StoredCase, ...]

    @property
    def sessions(self) -> tuple[str, ...]:
        """Its sessions, the earliest first."""
        return tuple(sorted({row.session for row in self.rows}))

    @property
    def environments(self) -> set[str]:
        """Its environments."""
        return {row.case.environment for row in self.rows}

    @property
    def systems(self) -> set[str]:
        """The machines that it was measured on."""
        return {row.case.system for row in self.rows}


def read_side(work: WorkDirectory, word: str, choice: Mapping[str, Any]) -> StoredSide:
    """Read what a word names, as ``20261121T090000Z-1``, ``2026-11-21`` or either with ``:ENVIRONMENT``.

    :param choice: of cases, by variables of the checks
    :raises UsageError: if there is no such session or environment, or none of the chosen cases in it
    """
    named, _, environment = word.partition(":")
    rows = [row for session in find_sessions(work, named) for row in read_stored_session(work, session)]
    there = sorted({row.case.environment for row in rows})
    if environment and environment not in there:
        raise UsageError(f"{word}: has no such environment; it has {first_of(there, NAMED) or 'none'}")
    own = [row for row in rows if environment in ("", row.case.environment)]
    chosen = tuple(row for row in own if is_chosen(row.case, choice))
    if not chosen:
        raise UsageError(f"{word}: has no case of those chosen; choose others")
    return StoredSide(word, chosen)


def find_sessions(work: WorkDirectory, named: str) -> list[str]:
    """Find the session of a name, or the nights that began on a day (UTC).

    :raises UsageError: if there is none
    """
    if not DAY.fullmatch(named):
        if (work.store / f"{named}{SUFFIX}").exists():
            return [named]
        known = [path.name.removesuffix(SUFFIX) for path in list_sessions(work.store)]
        last = first_of(known[: -NAMED - 1 : -1], None) or "none"
        raise UsageError(f"{named}: no such session in {work.store}; the last ones are {last}")
    nights = read_headlines(work.store, since=named, columns=["session", "started_utc"]).unique()
    found = [name for name, start in nights.rows() if start.startswith(named)]
    if not found:
        raise UsageError(f"{named}: no night of that day in {work.store}; name a session")
    return sorted(found)


def read_stored_session(work: WorkDirectory, session: str) -> list[StoredCase]:
    """Read all launches of a session. Raises StoreError if its file is damaged."""
    path = work.store / f"{session}{SUFFIX}"
    frame = read_session(path, COLUMNS)
    again = read_rerun_commands(work, session)
    try:
        return [
            StoredCase(
                session,
                Case.from_key(row["key"]),
                row["launch"],
                read_row_value(row, again.get(row["key"], "")),
                tuple(filter(None, row["hosts"].split(","))),
                row["provenance"],
            )
            for row in frame.iter_rows(named=True)
        ]
    except ValueError as error:
        raise UsageError(f"{path}: {error}; move it elsewhere") from None


def read_rerun_commands(work: WorkDirectory, session: str) -> dict[str, str]:
    """Read the command that measures each case again, by its key; none if the session's folder is gone."""
    path = work.sessions / session / "summary.json"
    if not path.exists():
        return {}
    return {result.case.key: result.rerun for result in load_summary(path).results if result.rerun}


def read_row_value(row: Mapping[str, Any], rerun: str) -> CaseValue:
    """Read what a launch says of a case: its value, or why there is none. Its speed is not judged here.

    Raises ValueError if its run record is damaged.
    """
    verdict, value, unit = Verdict(row["verdict"]), row["value"], row["unit"]
    run = read_run(row["provenance"])
    if verdict in WITHOUT_VALUE or not is_measurable(value or 0.0):
        failed = verdict if value is None else Verdict.INCOMPLETE
        return CaseValue(None, unit, str(failed), row["reason"], rerun)
    exact = PLATFORM_HASH in (run.get("environment") or {})
    return CaseValue(value, unit, rerun=rerun, exact=exact)


def is_chosen(case: Case, choice: Mapping[str, Any]) -> bool:
    """Return whether options of the user leave a case in."""
    wanted = [(option, option.wanted(choice)) for option in OPTIONS if option.part]
    return all(not values or each.value_of(case) in values for each, values in wanted)
