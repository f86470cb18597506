"""The nights of cases as the store has them, and what of them tells how nights of a well case differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import groupby
from pathlib import Path

import polars as pl

from postprocess.base.units import compute_slowdown
from postprocess.model.case import Case
from postprocess.model.verdict import JUDGED, Verdict
from postprocess.results.query import NIGHTS, read_headlines
from postprocess.stats.night_spread import NightSpread, estimate_night_spread

LOOK_BACK = timedelta(days=90)  #: nights before that tell nothing of the machine as it is
COLUMNS = ("session", "started_utc", "mode", "key", "verdict", "value", "unit", "reference")
SUSPECTED = (Verdict.SUSPECT, Verdict.REGRESSED)


@dataclass(frozen=True)
class JudgedNight:
    """The value of a case in a night, held against what its reference was then."""

    verdict: str
    value: float  #: median of its launches
    unit: str
    reference: float
    launches: int

    @property
    def log(self) -> float:
        """By how much it was slower, on the logarithm."""
        return math.log(compute_slowdown(self.value, self.reference, self.unit))


def read_nights(
    store: Path, keys: Iterable[str], since: str | None = None
) -> dict[str, list[JudgedNight]]:
    """Read the nights in which these cases were judged, the newest first, by the key of the case.

    :raises postprocess.results.store.StoreError: if the store is damaged
    """
    history = read_headlines(store, keys=sorted(keys), since=since, columns=COLUMNS)
    nights = (
        history.filter(
            pl.col("mode").is_in(NIGHTS),
            pl.col("verdict").is_in([str(each) for each in JUDGED]),
            pl.col("value") > 0,
            pl.col("reference") > 0,
        )
        .group_by("key", "session")
        .agg(
            pl.col("started_utc", "verdict", "reference", "unit").first(),
            pl.col("value").median(),
            pl.len().alias("launches"),
        )
        .sort("started_utc", "session", descending=True)
    )
    found: dict[str, list[JudgedNight]] = {}
    for row in nights.iter_rows(named=True):
        told = JudgedNight(
            row["verdict"], row["value"], row["unit"], row["reference"], row["launches"]
        )
        found.setdefault(row["key"], []).append(told)
    return found


def collect_night_spreads(store: Path, cases: Iterable[Case]) -> dict[str, NightSpread]:
    """Collect what nights of the last months tell of the spread of each case, by its key.

    :raises postprocess.results.store.StoreError: if the store is damaged
    """
    begin = (datetime.now(timezone.utc) - LOOK_BACK).strftime("%Y-%m-%d")
    found = {}
    for key, nights in read_nights(store, {each.key for each in cases}, begin).items():
        well = list(select_well_nights(nights))
        told = estimate_night_spread([each.log for each in well], [each.launches for each in well])
        if told:
            found[key] = told
    return found


def select_well_nights(nights: Sequence[JudgedNight]) -> Iterator[JudgedNight]:
    """Select the nights in which a case was well.

    Nights in which it was suspect count once they have passed without a call: a slow hour tells how hours
    differ, and a slowdown that lasts must not widen the band that it is judged by.

    :param nights: the newest first
    """
    runs = groupby(nights, key=lambda each: each.verdict in SUSPECTED)
    for number, (suspected, run) in enumerate(runs):
        some = list(run)
        called = any(each.verdict == Verdict.REGRESSED for each in some)
        if not suspected or (number > 0 and not called):
            yield from some
