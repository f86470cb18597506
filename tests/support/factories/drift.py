"""Made-up series of nights for the tests of drift."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np

from postprocess.analyses.drift import NightSeries
from postprocess.base.formats import SECONDS, find_better_direction
from postprocess.model.case import Case
from postprocess.model.verdict import Verdict
from postprocess.results.store import StoreRow, write_session

FIRST = datetime(2026, 9, 1, 2, 0, tzinfo=timezone.utc)
REFERENCE = 20e-6
CASE = Case("laptop", "cpu", "mpich-5.0.2", "mpicost", "bcast", 0, "evict", "window", 4, 4, 8)


def started(night: int) -> str:
    """When a night began, counted from ``FIRST``."""
    return (FIRST + timedelta(days=night)).strftime("%Y-%m-%dT%H:%M:%SZ")


def session(night: int) -> str:
    return (FIRST + timedelta(days=night)).strftime("%Y%m%dT%H%M%SZ-4711")


def noise(nights: int = 60, spread: float = 0.01, seed: int = 1) -> np.ndarray:
    """ln of how many times as slow as its reference each night is, on a healthy machine."""
    return np.random.default_rng(seed).normal(0, spread, nights)


def stepped(at: int, by: float, until: int | None = None, **how: float) -> np.ndarray:
    """The same of a machine that is slower by a share from a night on, or until another."""
    logs = noise(**how)
    logs[at:until] += math.log1p(by)
    return logs


def nights(logs: Sequence[float], case: Case = CASE, unit: str = SECONDS, epoch: int = 0) -> NightSeries:
    """A series whose logarithms are these."""
    count = len(logs)
    sign = 1.0 if find_better_direction(unit) == "lower" else -1.0
    return NightSeries(
        case,
        unit,
        [session(night) for night in range(count)],
        [started(night) for night in range(count)],
        REFERENCE * np.exp(sign * np.asarray(logs, dtype=float)),
        np.full(count, REFERENCE),
        np.full(count, 0.95 * REFERENCE),
        np.full(count, 1.05 * REFERENCE),
        epoch,
    )


def row(case: Case, night: int, value: float | None, **more) -> StoreRow:
    known = {"launch": 1, "verdict": Verdict.PASS if value else Verdict.CRASHED}
    known |= {"reference": REFERENCE, "lower": 0.95 * REFERENCE, "upper": 1.05 * REFERENCE}
    known |= {"value": value, "mpi_library": "MPICH Version: 5.0.2", "mode": "nightly"}
    return StoreRow(session(night), started(night), case=case, **known | more)


def write_nights(store: Path, cases: Mapping[Case, Sequence[float]]) -> None:
    """A store with a session for each night; logarithms are nan where a case has no value."""
    for night in range(max(map(len, cases.values()))):
        rows = [
            row(case, night, None if np.isnan(log) else REFERENCE * float(np.exp(log)))
            for case, logs in cases.items()
            for log in np.array(logs[night : night + 1], dtype=float)
        ]
        write_session(store / f"{session(night)}.parquet", rows)
