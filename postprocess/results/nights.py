"""What became of each case night after night, read from the results store without its trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Any

import polars as pl

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
        values = [launch["value"] for launch in launches if launch["value"] is not None]
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
