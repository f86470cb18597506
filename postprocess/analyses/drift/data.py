"""Convert the results store to series of nights: the median launch of each, and the age of its reference."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import polars as pl

from postprocess.analyses.drift.detect import NightSeries
from postprocess.model.case import Case
from postprocess.model.verdict import JUDGED
from postprocess.results.index import Say
from postprocess.results.query import read_headlines

MOST_NIGHTS = 365  #: of a case, the last ones
PARTS = tuple(field.name for field in fields(Case))
NIGHT = ("value", "reference", "lower", "upper")
COLUMNS = ("key", "session", "started_utc", *PARTS, "verdict", "unit", *NIGHT, "mpi_library")
SAME = ("reference", "unit", "mpi_library")  #: within an epoch


def read_nights(store: Path, since: str | None, say: Say | None = None) -> list[NightSeries]:
    """Read every case of a store with its judged nights from ``since`` on, by key.

    :raises StoreError: naming the first file that is damaged or foreign.
    :raises UsageError: if ``since`` is no time.
    """
    return build_series(read_headlines(store, since=since, columns=COLUMNS, say=say))


def build_series(frame: pl.DataFrame) -> list[NightSeries]:
    """Build the series of all cases.

    :param frame: headlines in any order, with ``COLUMNS`` at least
    """
    ordered = pl.Enum(frame["key"].unique().sort())  # sorts in a tenth of the time that text does
    nights = (
        frame.lazy()
        .with_columns(pl.col("key").cast(ordered))
        .filter(
            pl.col("verdict").is_in([str(each) for each in JUDGED]),
            pl.col("value") > 0,
            pl.col("reference") > 0,
        )
        .group_by("key", "started_utc", "session", *SAME)
        .agg(pl.col("value").median(), pl.col("lower", "upper").first())
        .sort("key", "started_utc", "session")
        # a night in another unit than the last one can be held against nothing
        .filter(pl.col("unit") == pl.col("unit").last().over("key"))
        .with_columns(alike=_alike())
        .collect()
    )
    cases = frame.unique("key").select("key", *PARTS)
    known = {key: Case(*parts) for key, *parts in cases.iter_rows()}
    numbers = {name: nights[name].to_numpy() for name in (*NIGHT, "alike")}
    texts = {name: nights[name].to_list() for name in ("session", "started_utc")}
    found, begin = [], 0
    for key, unit, count in (
        nights.group_by("key", maintain_order=True).agg(pl.col("unit").last(), pl.len()).iter_rows()
    ):
        some = slice(begin + max(0, count - MOST_NIGHTS), begin + count)
        begin += count
        strange = np.flatnonzero(~numbers["alike"][some])
        values, references, lower, upper = (numbers[name][some] for name in NIGHT)
        found.append(
            NightSeries(
                known[key],
                unit,
                texts["session"][some],
                texts["started_utc"][some],
                values,
                references,
                lower,
                upper,
                epoch=int(strange[-1]) + 1 if len(strange) else 0,
            )
        )
    return found


def _alike() -> pl.Expr:
    """Return whether a night is of the same epoch as the last one of its case."""
    return pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).last().over("key")) for name in SAME)


def day_before(days: int) -> str:
    """Return the date so many days ago, UTC."""
    return (datetime.now(timezone.utc) - timedelta(days=days)).strftime("%Y-%m-%d")
