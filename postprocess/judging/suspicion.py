"""What one slow session means: regressed at once if it is gross, else ``suspect`` until several agree.

Fresh launches of the same session share its state: they show that a case is slow tonight, not that it has
become slow. It is called regressed if the session is farther out than sessions usually are, or if the mean of
several sessions is beyond its limit (:mod:`postprocess.stats.detection`). A case inside its band tonight may be
called regressed too: sums reveal what lies just beyond a limit.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import polars as pl

from postprocess.base.formats import DATE_FORMAT, compute_slowdown, format_slower, parse_utc, plural
from postprocess.base.grouping import group_pairs
from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.model.verdict import INSIDE, JUDGED, CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog
from postprocess.results.query import COUNTING, read_headlines
from postprocess.results.store import StoreError
from postprocess.stats import detection
from postprocess.stats.sessions import SessionValue, number_day

LOOK_BACK = timedelta(days=90)  #: older sessions say nothing about the machine as it is
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


@dataclass(frozen=True)
class JudgedSession:
    """A case in a session, compared with its reference at that time."""

    started_utc: str
    verdict: str
    value: SessionValue
    headline: SessionValue | None  #: the same for the headline, if there is one

    def of(self, by_headline: bool) -> SessionValue | None:
        """Return the headline's part, or the value's."""
        return self.headline if by_headline else self.value


@dataclass(frozen=True)
class SessionHistory:
    """The last sessions of each case, the newest first, by the case's key."""

    sessions: Mapping[str, list[JudgedSession]]

    def find_run(
        self, case: Case, reference: Reference, by_headline: bool = False, before: str = ""
    ) -> list[SessionValue]:
        """Find the last sessions of a case that count together with the next one, the newest first.

        They are :data:`APART_MINUTES` apart, and newer than the calibrations of their reference.

        :param before: when the next session started (UTC); empty for now
        """
        last = parse_utc(before) if before else datetime.now(timezone.utc)
        values: list[SessionValue] = []
        for session in self.sessions.get(case.key, ()):
            value, began = session.of(by_headline), parse_utc(session.started_utc)
            if value is None or session.started_utc <= reference.since:
                continue
            if last - began < timedelta(minutes=detection.APART_MINUTES):
                continue
            values.append(value)
            last = began
            if len(values) == detection.LONGEST_RUN:
                break
        return values


NO_HISTORY = SessionHistory({})


def read_history(store: Path, cases: Iterable[Case]) -> SessionHistory:
    """Read the last sessions in which these cases were judged.

    A damaged store yields none, and hides nothing: a gross slowdown is found without it.
    """
    keys = sorted(case.key for case in cases)
    if not keys or not store.is_dir():
        return NO_HISTORY
    begin = (datetime.now(timezone.utc) - LOOK_BACK).strftime("%Y-%m-%d")
    try:
        history = read_headlines(store, keys=keys, since=begin, modes=COUNTING, columns=COLUMNS)
    except StoreError:
        return NO_HISTORY
    rows = (
        history.filter(
            pl.col("verdict").is_in([str(verdict) for verdict in JUDGED]),
            pl.col("judged") > 0,
            pl.col("reference") > 0,
        )
        .unique(("key", "session"))
        .sort("started_utc", "session", descending=True)
    )
    return SessionHistory(group_pairs((row["key"], _read_session(row)) for row in rows.iter_rows(named=True)))


def _read_session(row: Mapping[str, Any]) -> JudgedSession:
    launches, day = max(row["judged_launches"], 1), number_day(row["started_utc"])

    def value(of: str, reference: str) -> SessionValue:
        return SessionValue(math.log(compute_slowdown(row[of], row[reference], row["unit"])), launches, day)

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
    """Find the cases whose last sessions, tonight's included, lie to one side of their reference."""
    leaning = set()
    for result in results:
        reference = catalog.reference(result.case, result.core_latency)
        if reference is None or reference.exact or not result.slowdown:
            continue
        tonight = SessionValue(math.log(result.slowdown), max(result.launches, 1), number_day_of_now())
        if detection.is_leaning(reference, [tonight, *history.find_run(result.case, reference)]):
            leaning.add(result.case)
    return leaning


def number_day_of_now() -> int:
    """Return the number of today's day (UTC)."""
    return number_day(datetime.now(timezone.utc).strftime(DATE_FORMAT))


def decide_suspicion(
    result: CaseResult,
    fresh: Sequence[float],
    reference: Reference | None,
    history: SessionHistory,
    confirmed: bool = True,
) -> CaseResult:
    """Return a slow result that was confirmed as regressed, or as suspect if one session is not enough.

    :param fresh: values of its confirmation runs, each a median of as many launches; headlines if it is slow by
    its headline
    :param confirmed: whether fresh launches decided; if not, only several sessions make it regressed
    """
    if result.verdict != Verdict.REGRESSED or not fresh or reference is None or reference.exact:
        return result
    judged = reference.headline if result.by_headline else reference
    if judged is None:
        return result
    logs = [math.log(compute_slowdown(value, judged.center, result.unit)) for value in fresh]
    tonight = SessionValue(sum(logs) / len(logs), max(result.launches, 1) * len(logs), number_day_of_now())
    slower = f"{_name_trials(result)} {format_slower(math.exp(tonight.log))} in fresh launches"
    if confirmed and is_gross(result, judged, tonight, min(logs)):
        return replace(result, reason=f"{slower}: more than sessions bring; {result.reason}")
    before = history.find_run(result.case, reference, result.by_headline)
    if run := detection.find_slow_run(judged, [tonight, *before]):
        return replace(result, reason=f"{_describe_run(run.sessions, run.mean)}; {result.reason}")
    missing = max(detection.LEAST_SESSIONS - 1 - len(before), 1)
    decide = "decides" if missing == 1 else "decide"
    rest = f"{plural(missing, 'more session')} {decide}: ./plumbline confirm, or the next nights"
    parts = [slower, result.reason, rest] if confirmed else [result.reason, rest]
    return replace(result, verdict=Verdict.SUSPECT, reason="; ".join(parts))


def is_gross(result: CaseResult, reference: Reference, tonight: SessionValue, fastest: float) -> bool:
    """Return whether a case is slower tonight than a usual session is.

    If the mean is slow while the fast trials are as ever, it must be twice as slow: another process can cause a
    few slow trials. Few launches know little of the machine's bad moments: then even the fastest trial must be
    that slow or, for a program that prints means and for a single value, even the fastest fresh launch.

    :param fastest: fastest of the fresh values, as a deviation of the logarithm
    """
    least = math.log1p(detection.BLIND) if result.by_headline else 0.0
    distance = detection.compute_gross_distance(reference, tonight.launches, least)
    if tonight.log <= distance or not reference.few_launches:
        return tonight.log > distance
    if result.summary is None:
        return fastest > detection.compute_gross_distance(reference, max(result.launches, 1))
    best = result.summary.minimum
    return best > 0 and math.log(best / reference.center) > distance


def call_slow_sums(
    results: Sequence[CaseResult], catalog: ReferenceCatalog, history: SessionHistory
) -> list[CaseResult]:
    """Mark cases inside their bands as regressed if their last sessions together are too slow for chance."""
    return [_call_slow_sum(result, catalog, history) for result in results]


def _call_slow_sum(result: CaseResult, catalog: ReferenceCatalog, history: SessionHistory) -> CaseResult:
    reference = catalog.reference(result.case, result.core_latency)
    if result.verdict not in INSIDE or reference is None or reference.exact:
        return result
    if not result.value or not result.reference or not result.slowdown:
        return result
    tonight = SessionValue(math.log(result.slowdown), max(result.launches, 1), number_day_of_now())
    run = detection.find_slow_run(reference, [tonight, *history.find_run(result.case, reference)])
    if run is None:
        return result
    limit = f"each beyond {math.expm1(run.limit):.1%}, as chance makes none"
    reason = f"{_describe_run(run.sessions, run.mean)}; {limit}"
    return replace(result, verdict=Verdict.REGRESSED, reason=reason)


def _describe_run(sessions: int, mean: float) -> str:
    return f"{format_slower(math.exp(mean))} in the mean of {plural(sessions, 'session')}"


def _name_trials(result: CaseResult) -> str:
    return "the mean of the trials" if result.by_headline else "all trials"


def list_suspects(results: Sequence[CaseResult]) -> list[Case]:
    return [result.case for result in results if result.verdict == Verdict.SUSPECT]
