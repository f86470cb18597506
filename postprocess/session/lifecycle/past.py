"""Read the nights before a session for its report: each case's history, and where its level changed."""

from __future__ import annotations

import math
from datetime import timedelta

import polars as pl

from postprocess.analyses.drift.data import COLUMNS as DRIFT_COLUMNS
from postprocess.analyses.drift.data import build_series
from postprocess.analyses.drift.detect import DriftFinding, Trend, detect_trends
from postprocess.base.errors import UsageError
from postprocess.base.formats import format_signed, parse_utc
from postprocess.base.workdir import WorkDirectory
from postprocess.report.past import MOST_NIGHTS, Past, Step
from postprocess.results.nights import COLUMNS, collect_nights
from postprocess.results.query import NIGHTS, read_headlines
from postprocess.results.summary import SessionSummary

DAYS = 180  #: before the session


def read_past(work: WorkDirectory, summary: SessionSummary) -> Past:
    """Read the nights before a session. A store that cannot be read is told, and keeps nobody from a report."""
    try:
        frame = read_frame(work, summary)
    except (UsageError, ValueError, OverflowError) as error:
        return Past(problem=f"the nights before are not known: {error}")
    steps: dict[str, list[Step]] = {}
    for trend in detect_trends(build_series(frame)):
        if found := [describe_step(trend, finding) for finding in trend.findings]:
            steps[trend.nights.case.key] = found
    return Past(collect_nights(frame, MOST_NIGHTS), steps)


def read_frame(work: WorkDirectory, summary: SessionSummary) -> pl.DataFrame:
    """Read the headlines of a session and of the nights before it."""
    started = summary.started_utc
    since = parse_utc(started) - timedelta(days=DAYS)
    columns = list(dict.fromkeys([*COLUMNS, *DRIFT_COLUMNS]))
    frame = read_headlines(work.store, since=f"{since:%Y-%m-%d}", modes=None, columns=columns)
    own = pl.col("session") == summary.session
    earlier = pl.col("mode").is_in(NIGHTS) & (pl.col("started_utc") < started)
    keys = [result.case.key for result in summary.results]
    return frame.filter((own | earlier) & pl.col("key").is_in(keys))


def describe_step(trend: Trend, finding: DriftFinding) -> Step:
    """Describe a change of the level of a case."""
    nights = trend.nights
    size = format_signed(math.expm1(finding.size))
    until = "" if finding.end is None else f" to {nights.started[finding.end][:10]}"
    text = f"{finding.kind} of {size} in time from {nights.started[finding.begin][:10]}{until}"
    return Step(nights.sessions[finding.begin], text)
