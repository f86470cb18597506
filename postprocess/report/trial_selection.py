"""The trials behind a value: of a session's launches, or read from the results store; chosen for a picture.

Programs that print one value for a case have none; their cases are left out here by that.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from postprocess.base.errors import UsageError
from postprocess.model.launch import FinishedLaunch
from postprocess.model.verdict import CaseResult
from postprocess.report.overview import sort_by_severity
from postprocess.results.summary import SessionSummary
from postprocess.stats.launches import mark_removed_trials, summarise_trials

COLUMNS = ("session", "key", "launch", "t_max", "late", "dropped", "headline")
MOST_FAILED = 60  #: pictures of failed cases: a report of a very bad night must still open
MOST_DRAWN = 12  #: pictures of all kinds, unless more failed
MOST_LAUNCHES = 6  #: launches in one picture, the latest


@dataclass(frozen=True, eq=False)
class LaunchTrials:
    """One launch of one case. Times in seconds; arrays of shape (trials,)."""

    launch: int
    times: NDArray[np.float64]  #: per trial, the maximum over ranks
    late: NDArray[np.bool_]
    dropped: int
    headline: float

    @property
    def steady(self) -> float:
        """The mean of the fastest quarter, which is judged."""
        return summarise_trials(self.times, self.late, self.dropped).steady

    def masks(self) -> dict[str, NDArray[np.bool_]]:
        """Return which trials are the dropped ``first``, ``late``, a removed ``spike``, or ``kept``."""
        out = mark_removed_trials(self.times, self.late, self.dropped)
        first = np.arange(self.times.size) < self.dropped
        late = self.late & ~first
        return {"first": first, "late": late, "spike": out & ~first & ~late, "kept": ~out}


@dataclass(frozen=True, eq=False)
class CaseTrials:
    """What a picture of trials shows, and why this case was chosen (empty for a failed one)."""

    result: CaseResult
    launches: tuple[LaunchTrials, ...]
    why: str = ""


def read_trials(frame: pl.DataFrame, session: str) -> dict[str, tuple[LaunchTrials, ...]]:
    """Read trials of every case of a session by the case's key, launches in order.

    Cases without trials, or without whole ones, are left out. Raises UsageError if the store lacks a column.
    """
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing and not frame.is_empty():
        raise UsageError(f"results store: {missing[0]}: no such column; read it by this version")
    found: dict[str, list[LaunchTrials]] = {}
    if frame.is_empty():
        return {}
    with_trials = (pl.col("session") == session) & (pl.col("t_max").list.len() > 0)
    rows = frame.filter(with_trials).select(COLUMNS).sort("key", "launch")
    for row in rows.iter_rows(named=True):
        trials = _trials(row)
        if trials:
            found.setdefault(row["key"], []).append(trials)
    return _latest(found)


def select_launch_trials(finished: Sequence[FinishedLaunch]) -> dict[str, tuple[LaunchTrials, ...]]:
    """Take the trials of a session's launches, as the store will hold them."""
    found: dict[str, list[LaunchTrials]] = {}
    for launched in sorted(finished, key=lambda one: one.launch.number):
        for case in launched.launch.cases:
            if record := launched.records.get(case.variable):
                dropped, told = launched.run["dropped"], record.summary
                trials = LaunchTrials(launched.launch.number, record.t_max, record.late, dropped, told.headline)
                found.setdefault(case.key, []).append(trials)
    return _latest(found)


def _latest(found: Mapping[str, Sequence[LaunchTrials]]) -> dict[str, tuple[LaunchTrials, ...]]:
    return {key: tuple(launches[-MOST_LAUNCHES:]) for key, launches in found.items()}


def select_failed(
    summary: SessionSummary, trials: Mapping[str, Sequence[LaunchTrials]]
) -> tuple[list[CaseTrials], int]:
    """Select failed cases that have trials, the worst first; return how many more are not drawn, too."""
    having = [r for r in sort_by_severity(summary.failed) if _has_trials(r, trials)]
    chosen = [CaseTrials(r, tuple(trials[r.case.key])) for r in having[:MOST_FAILED]]
    return chosen, len(having) - len(chosen)


def select_trials(
    summary: SessionSummary, trials: Mapping[str, Sequence[LaunchTrials]]
) -> tuple[dict[str, CaseTrials], int]:
    """Select the cases whose trials a page draws, by key; return how many failed ones are not drawn, too.

    The failed ones come first, then those that are worth a look, then the others while there is room.
    """
    failed, not_drawn = select_failed(summary, trials)
    chosen = {shown.result.case.key: shown for shown in failed}
    for shown in select_representative(summary, trials):
        chosen.setdefault(shown.result.case.key, shown)
    for result in sort_by_severity(r for r in summary.results if _has_trials(r, trials)):
        if len(chosen) >= MOST_DRAWN:
            break
        key = result.case.key
        chosen.setdefault(key, CaseTrials(result, tuple(trials[key])))
    return chosen, not_drawn


def select_representative(
    summary: SessionSummary, trials: Mapping[str, Sequence[LaunchTrials]]
) -> list[CaseTrials]:
    """Select a few healthy cases, each with the reason why it is worth a look."""
    rest = [r for r in summary.results if r.counts_as_healthy(summary.strict) and _has_trials(r, trials)]
    chosen: dict[str, CaseTrials] = {}
    for why, worth in _WORTH_A_LOOK:
        candidates = [r for r in rest if r.case.key not in chosen and worth(r) > 0]
        if candidates:
            best = max(candidates, key=worth)
            chosen[best.case.key] = CaseTrials(best, tuple(trials[best.case.key]), why)
    return list(chosen.values())


def _has_trials(result: CaseResult, trials: Mapping[str, Sequence[LaunchTrials]]) -> bool:
    """Return whether a case can be drawn trial by trial: its statistics are of trials, and these were kept."""
    return result.summary is not None and result.case.key in trials


def _trials(row: dict[str, Any]) -> LaunchTrials | None:
    """Return one row of the store, or None where no whole series of trials was kept."""
    times = np.array(row["t_max"] or [], dtype=np.float64)
    late = np.array(row["late"] or [False] * times.size, dtype=bool)
    dropped = row["dropped"] or 0
    whole = late.shape == times.shape and np.isfinite(times).all() and bool((times > 0).all())
    if not whole or not np.any(~late[dropped:]) or row["headline"] is None:
        return None
    return LaunchTrials(row["launch"], times, late, dropped, row["headline"])


#: What makes a healthy case worth a look, and how much of it a case has.
_WORTH_A_LOOK: Sequence[tuple[str, Callable[[CaseResult], float]]] = (
    ("closest to the upper end of its band", lambda r: r.value / r.band[1] if r.value and r.band else 0.0),
    ("most spikes", lambda r: r.summary.candidates if r.summary else 0.0),
    ("two modes", lambda r: r.summary.p90 / r.summary.minimum if r.summary and r.summary.bimodal else 0.0),
    ("fastest against its reference", lambda r: 1 / r.slowdown - 1 if r.slowdown else 0.0),
    ("steadiest", lambda r: r.summary.median / r.summary.p99 if r.summary else 0.0),
    ("longest", lambda r: r.value or 0.0),
)
