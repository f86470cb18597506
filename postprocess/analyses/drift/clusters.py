"""Group simultaneous changes: report one finding per common step instead of one per case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import NamedTuple

from postprocess.analyses.drift.detect import CREEP, DriftFinding, Trend
from postprocess.model.case import Case

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
