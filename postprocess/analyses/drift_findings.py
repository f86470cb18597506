"""From the results store to series of nights, and from their changes to one finding per common step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from postprocess.analyses.drift import CREEP, DriftFinding, NightSeries, Trend
from postprocess.model.case import Case
from postprocess.model.verdict import JUDGED
from postprocess.results.query import Say, read_headlines

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
            pl.col("verdict").is_in([str(verdict) for verdict in JUDGED]),
            pl.col("value") > 0,
            pl.col("reference") > 0,
        )
        .group_by("key", "started_utc", "session", *SAME)
        .agg(pl.col("value").median(), pl.col("lower", "upper").first())
        .sort("key", "started_utc", "session")
        # a night in another unit than the last one can be held against nothing
        .filter(pl.col("unit") == pl.col("unit").last().over("key"))
        .with_columns(alike=_of_last_epoch())
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


def _of_last_epoch() -> pl.Expr:
    """Return whether a night is of the same epoch as the last one of its case."""
    return pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).last().over("key")) for name in SAME)


def day_before(days: int) -> str:
    """Return the date so many days ago, UTC."""
    return (datetime.now(timezone.utc) - timedelta(days=days)).strftime("%Y-%m-%d")


FEWEST = 5  #: cases that make a common cause
SHARE = 0.5  #: of the cases of a place
NEAR = 2  #: nights by which the fit may place one step differently in two noisy series
#: What one cause can affect, the widest first.
PLACES: tuple[tuple[str, ...], ...] = (
    ("system", "partition"),
    ("system", "partition", "environment"),
    ("system", "partition", "program"),
    ("system", "partition", "environment", "program"),
)
Kind = tuple[tuple[str, ...], str, bool, bool]


class Shared(NamedTuple):
    """What cases of a common cause share: parts of a case, and their values."""

    parts: tuple[str, ...]
    values: tuple[str, ...]

    @classmethod
    def of(cls, case: Case, parts: tuple[str, ...]) -> Shared:
        """Return the values of these fields of a case."""
        return cls(parts, tuple(str(getattr(case, part)) for part in parts))


@dataclass(frozen=True, eq=False)
class DriftChange:
    """A finding with the case that it is of."""

    trend: Trend
    finding: DriftFinding

    @property
    def began(self) -> str:
        """Time of the first night of it, UTC."""
        return self.trend.nights.started[self.finding.begin]

    @property
    def ended(self) -> str:
        """Time of the first night on which it was over; empty if it lasts."""
        end = self.finding.end
        return "" if end is None else self.trend.nights.started[end]


@dataclass(frozen=True, eq=False)
class Cluster:
    """Changes that belong together, the worst first: of many cases of one place, or of one case."""

    changes: Sequence[DriftChange]
    place: tuple[str, ...]  #: of many cases what they have in common, else empty
    cases: int  #: of that place that were looked at

    @property
    def worst(self) -> DriftChange:
        """The largest of them."""
        return self.changes[0]

    @property
    def slow(self) -> bool:
        """Whether it is a slowdown that lasts: what exit status 1 stands for."""
        return self.worst.finding.slow and self.worst.finding.lasts

    @property
    def began(self) -> str:
        """When most of them began: of the middle one."""
        return sorted(change.began for change in self.changes)[len(self.changes) // 2]


def cluster_changes(trends: Sequence[Trend]) -> list[Cluster]:
    """Return all findings: first what is slow and lasts, then what is fast and lasts, then what is over."""
    left = [DriftChange(trend, finding) for trend in trends for finding in trend.findings]
    cases = [trend.nights.case for trend in trends]
    nights = {start: place for place, start in enumerate(sorted(_starts(trends)))}
    sizes = Counter(Shared.of(case, parts) for parts in PLACES for case in cases)
    found: list[Cluster] = []
    for parts in PLACES:
        for (values, *_), some in _groups(left, partial(_alike, parts=parts)):
            for together in _together(some, nights):
                if len(together) >= max(FEWEST, SHARE * sizes[Shared(parts, values)]):
                    shared = _narrowest(together)
                    found.append(Cluster(_worst_first(together), shared.values, sizes[shared]))
        told = {id(change) for cluster in found for change in cluster.changes}
        left = [change for change in left if id(change) not in told]
    found += [Cluster([change], (), 1) for change in left]
    return sorted(found, key=_rank)


def _narrowest(changes: Sequence[DriftChange]) -> Shared:
    """Return the narrowest place that holds all of them."""
    for parts in reversed(PLACES):
        places = {Shared.of(change.trend.nights.case, parts) for change in changes}
        if len(places) == 1:
            break
    return places.pop()


def _alike(change: DriftChange, parts: tuple[str, ...]) -> Kind:
    finding = change.finding
    shared = Shared.of(change.trend.nights.case, parts)
    return shared.values, finding.kind, finding.slow, finding.lasts


def _groups(
    changes: Iterable[DriftChange], key: Callable[[DriftChange], Kind]
) -> Iterable[tuple[Kind, list[DriftChange]]]:
    return [(found, list(some)) for found, some in groupby(sorted(changes, key=key), key=key)]


def _together(changes: Sequence[DriftChange], nights: dict[str, int]) -> Iterable[list[DriftChange]]:
    """Group changes that began within ``NEAR`` nights of the night on which most began; then the rest likewise.

    When a creep began is hardly known: all creeps of a place are one.
    """
    if changes[0].finding.kind == CREEP:
        yield list(changes)
        return
    left = list(changes)
    while left:
        commonest, _ = Counter(nights[change.began] for change in left).most_common(1)[0]
        near = [abs(nights[change.began] - commonest) <= NEAR for change in left]
        yield [change for change, is_near in zip(left, near, strict=True) if is_near]
        left = [change for change, is_near in zip(left, near, strict=True) if not is_near]


def _starts(trends: Sequence[Trend]) -> set[str]:
    return {start for trend in trends if trend.findings for start in trend.nights.started}


def _worst_first(changes: Iterable[DriftChange]) -> list[DriftChange]:
    return sorted(changes, key=lambda change: -abs(change.finding.size))


def _rank(cluster: Cluster) -> tuple[bool, bool, bool, int, float]:
    worst = cluster.worst.finding
    return (not cluster.slow, not worst.lasts, not worst.slow, -bool(cluster.place), -abs(worst.size))
