"""What became of each case night after night, read from the results store without its trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

from postprocess.results.index import Say
from postprocess.results.query import NIGHTS, read_headlines

COLUMNS = (
    *("key", "session", "started_utc", "mode", "verdict", "unit", "value", "judged"),
    *("reference", "lower", "upper", "mpi_library"),
)
FIRST = ("verdict", "unit", "judged", "reference", "lower", "upper", "mpi_library")


@dataclass(frozen=True)
class Night:
    """A case in one session."""

    day: str
    verdict: str
    unit: str
    value: float | None
    reference: float | None
    band: tuple[float, float] | None
    session: str = ""
    library: str = ""  #: what the MPI said of itself


def read_nights(rows: Sequence[dict[str, Any]]) -> Iterator[Night]:
    """Read the nights of a case from its rows, which are sorted by time."""
    for _, group in groupby(rows, key=lambda row: (row["started_utc"], row["session"])):
        launches = list(group)
        values = [each["value"] for each in launches if each["value"] is not None]
        yield build_night(launches[0] | {"value": median(values) if values else None})


def build_night(row: dict[str, Any]) -> Night:
    """Build the night of a case from what its launches share, and the median of their values."""
    limits = row["lower"], row["upper"]
    return Night(
        row["started_utc"][:10],
        row["verdict"],
        row["unit"],
        row["judged"] or row["value"],
        row["reference"],
        limits if None not in limits else None,
        row["session"],
        row["mpi_library"],
    )


def read_frame_until(
    store: Path, session: str, started: str, since: str, say: Say | None = None
) -> pl.DataFrame:
    """Read the headlines of a session and of the nights before it, from a time on.

    :raises StoreError: naming the first file that is damaged or foreign.
    """
    frame = read_headlines(store, since=since, modes=None, columns=COLUMNS, say=say)
    own = pl.col("session") == session
    earlier = pl.col("mode").is_in(NIGHTS) & (pl.col("started_utc") < started)
    return frame.filter(own | earlier)


def collect_nights(frame: pl.DataFrame, most: int) -> dict[str, tuple[Night, ...]]:
    """Collect the last nights of every case by its key, in order of time.

    :param frame: headlines with :data:`COLUMNS`, sorted by key and time
    """
    nights = (
        frame.lazy()
        .group_by("key", "started_utc", "session", maintain_order=True)
        .agg(pl.col("value").median(), pl.col(*FIRST).first())
        .group_by("key", maintain_order=True)
        .tail(most)
        .collect()
    )
    found: dict[str, list[Night]] = {}
    for row in nights.iter_rows(named=True):
        found.setdefault(row["key"], []).append(build_night(row))
    return {key: tuple(own) for key, own in found.items()}
