"""The sessions of cases as the store has them: by how much each was slower than its reference of that time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import polars as pl

from postprocess.base.formats import DATE_FORMAT, parse_utc
from postprocess.base.units import compute_slowdown
from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.model.verdict import JUDGED, CaseResult
from postprocess.references.catalog import ReferenceCatalog
from postprocess.results.query import NIGHTS, read_headlines
from postprocess.results.store import StoreError
from postprocess.stats.sequence import APART_MINUTES, LONGEST_RUN, is_leaning
from postprocess.stats.sessions import SessionValue, number_day

LOOK_BACK = timedelta(days=90)  #: sessions before that tell nothing of the machine as it is
COLUMNS = (
    "session",
    "started_utc",
    "key",
    "verdict",
    "unit",
    "judged",
    "judged_launches",
    "reference",
    "headline_judged",
    "headline_reference",
)
#: Sessions whose values count: nights, and what measures again what they left in doubt
JUDGING = (*NIGHTS, "confirm")


@dataclass(frozen=True)
class JudgedSession:
    """A case in a session, held against what its reference was then."""

    started_utc: str
    verdict: str
    value: SessionValue
    headline: SessionValue | None  #: the same of the headline, where there is one

    def of(self, by_headline: bool) -> SessionValue | None:
        """Return what one of the two says."""
        return self.headline if by_headline else self.value


@dataclass(frozen=True)
class SessionHistory:
    """The last sessions of each case, the newest first, by its key."""

    sessions: Mapping[str, list[JudgedSession]]

    def find_run(
        self, case: Case, reference: Reference, by_headline: bool = False, before: str = ""
    ) -> list[SessionValue]:
        """Find the last sessions of a case that count with the next one, the newest first.

        They lie :data:`APART_MINUTES` apart, and are younger than what their reference was calibrated with.

        :param before: when the next one started (UTC); empty for now
        """
        last = parse_utc(before) if before else datetime.now(timezone.utc)
        found: list[SessionValue] = []
        for each in self.sessions.get(case.key, ()):
            value, began = each.of(by_headline), parse_utc(each.started_utc)
            if value is None or each.started_utc <= reference.since:
                continue
            if last - began < timedelta(minutes=APART_MINUTES):
                continue
            found.append(value)
            last = began
            if len(found) == LONGEST_RUN:
                break
        return found

    def find_verdict(self, case: Case) -> str:
        """Find the verdict of the last session of a case; empty if there is none."""
        some = self.sessions.get(case.key)
        return some[0].verdict if some else ""


NO_HISTORY = SessionHistory({})


def read_history(store: Path, cases: Iterable[Case]) -> SessionHistory:
    """Read the last sessions in which these cases were judged.

    A store that is damaged tells of none, and hides nothing: a gross slowdown is called without it.
    """
    keys = sorted(each.key for each in cases)
    if not keys or not store.is_dir():
        return NO_HISTORY
    begin = (datetime.now(timezone.utc) - LOOK_BACK).strftime("%Y-%m-%d")
    try:
        history = read_headlines(store, keys=keys, since=begin, modes=JUDGING, columns=COLUMNS)
    except StoreError:
        return NO_HISTORY
    rows = (
        history.filter(
            pl.col("verdict").is_in([str(each) for each in JUDGED]),
            pl.col("judged") > 0,
            pl.col("reference") > 0,
        )
        .unique(("key", "session"))
        .sort("started_utc", "session", descending=True)
    )
    found: dict[str, list[JudgedSession]] = {}
    for row in rows.iter_rows(named=True):
        found.setdefault(row["key"], []).append(_read_session(row))
    return SessionHistory(found)


def _read_session(row: Mapping[str, Any]) -> JudgedSession:
    launches, day = max(row["judged_launches"], 1), number_day(row["started_utc"])

    def value(of: str, reference: str) -> SessionValue:
        return SessionValue(
            math.log(compute_slowdown(row[of], row[reference], row["unit"])), launches, day
        )

    headline = row["headline_judged"] and row["headline_reference"]
    return JudgedSession(
        row["started_utc"],
        row["verdict"],
        value("judged", "reference"),
        value("headline_judged", "headline_reference") if headline else None,
    )


def find_leaning(
    results: Iterable[CaseResult], history: SessionHistory, catalog: ReferenceCatalog
) -> set[Case]:
    """Find the cases whose last sessions, tonight's among them, lie to one side of their reference."""
    found = set()
    for each in results:
        reference = catalog.reference(each.case, each.core_latency)
        if reference is None or reference.exact or not each.slowdown:
            continue
        tonight = SessionValue(math.log(each.slowdown), max(each.launches, 1), number_day_of_now())
        if is_leaning(reference, [tonight, *history.find_run(each.case, reference)]):
            found.add(each.case)
    return found


def number_day_of_now() -> int:
    """Return the number of this day (UTC)."""
    return number_day(datetime.now(timezone.utc).strftime(DATE_FORMAT))
