"""Find the onset of a common cause: the last night that was not shifted, and the nodes it ran on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import takewhile
from pathlib import Path

import polars as pl

from postprocess.base.units import find_better_direction
from postprocess.judging.common_cause import CommonCause
from postprocess.model.verdict import JUDGED
from postprocess.results.query import NIGHTS, read_headlines
from postprocess.results.store import StoreError

LOOK_BACK = timedelta(days=60)  #: that history is searched for the onset
COLUMNS = ("session", "started_utc", "mode", "key", "verdict", "value", "unit", "hosts")


@dataclass(frozen=True)
class ShiftedNight:
    """How much slower the cases of a cause were in a night before, on the logarithm."""

    started_utc: str
    log: float
    hosts: tuple[str, ...]


def find_onset(cause: CommonCause, history: pl.DataFrame) -> str:
    """Find the onset of a cause, such as ``since 2026-11-20 (not yet 2026-11-19, on c, d)``; empty if unknown.

    :param history: earlier launches of these cases, as
        :func:`postprocess.results.query.read_headlines` gives them
    """
    past = list_shifted_nights(cause, history)
    half = math.log1p(cause.shift) / 2
    shifted = list(takewhile(lambda night: night.log >= half, reversed(past)))
    before = past[: len(past) - len(shifted)]
    if not before:
        return f"since {format_night_date(shifted[-1])} or before" if shifted else ""
    first = f"since {format_night_date(shifted[-1])}" if shifted else "since this night"
    last = before[-1]
    other = "" if not last.hosts or last.hosts == cause.hosts else f", on {', '.join(last.hosts)}"
    return f"{first} (not yet {format_night_date(last)}{other})"


def find_onset_in_store(store: Path, cause: CommonCause) -> str:
    """Find the onset in a store; empty if the store is damaged, which must not hide tonight's finding."""
    begin = (datetime.now(timezone.utc) - LOOK_BACK).strftime("%Y-%m-%d")
    keys = [case.key for case in cause.cases]
    try:
        return find_onset(cause, read_headlines(store, keys=keys, since=begin, columns=COLUMNS))
    except StoreError:
        return ""


def list_shifted_nights(cause: CommonCause, history: pl.DataFrame) -> list[ShiftedNight]:
    """List the nights that measured at least half of the cases of a cause, the oldest first.

    Values are held against today's references: what was the reference in a night is no matter here.
    """
    centers = pl.DataFrame(
        {
            "key": [each.case.key for each in cause.members],
            "unit": [each.result.unit for each in cause.members],
            "center": [each.result.reference for each in cause.members],
            "sign": [
                1.0 if find_better_direction(each.result.unit) == "lower" else -1.0
                for each in cause.members
            ],
        }
    )
    found = (
        history.filter(
            pl.col("mode").is_in(NIGHTS),
            pl.col("verdict").is_in([str(each) for each in JUDGED]),
            pl.col("value") > 0,
        )
        .join(centers, on=["key", "unit"])
        .with_columns((pl.col("sign") * (pl.col("value") / pl.col("center")).log()).alias("log"))
        .group_by("session")
        .agg(
            pl.col("started_utc").first(),
            pl.col("log").median(),
            pl.col("key").n_unique().alias("cases"),
            pl.col("hosts").unique(),
        )
        .filter(2 * pl.col("cases") >= len(cause.members))
        .sort("started_utc")
    )
    return [
        ShiftedNight(row["started_utc"], row["log"], list_node_names(row["hosts"]))
        for row in found.iter_rows(named=True)
    ]


def list_node_names(sets: list[str]) -> tuple[str, ...]:
    """List the nodes that are named in some node sets, each joined by commas."""
    return tuple(sorted({name for each in sets for name in (each or "").split(",") if name}))


def format_night_date(night: ShiftedNight) -> str:
    """Format the day on which a night began."""
    return night.started_utc[:10]
