"""What the nights before say of the cases of a session: the history of each, and what is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from postprocess.base.formats import plural
from postprocess.model.verdict import CaseResult, Verdict, is_healthy
from postprocess.report.overview import sort_by_severity
from postprocess.results.nights import Night
from postprocess.results.summary import SessionSummary

MOST_NIGHTS = 60  #: of a case, the last ones


@dataclass(frozen=True)
class Step:
    """A change of the level of a case that stays, or stayed for a while."""

    session: str  #: the first one on the new level
    text: str  #: such as ``+12.0% since 2026-11-03``


@dataclass(frozen=True)
class Past:
    """The nights of a session's cases, by key; the session itself is the last of them."""

    nights: Mapping[str, Sequence[Night]] = field(default_factory=dict)
    steps: Mapping[str, Sequence[Step]] = field(default_factory=dict)
    problem: str = ""  #: why there is none, or empty


@dataclass(frozen=True)
class NewsItem:
    """Cases of which the same is new."""

    tone: str  #: ``bad``, ``fair`` or ``good``
    what: str  #: such as ``not healthy any more``
    results: tuple[CaseResult, ...]


@dataclass(frozen=True)
class News:
    """What a session says that the night before it did not."""

    day: str  #: of the night before; empty if there is none
    items: tuple[NewsItem, ...]

    @property
    def line(self) -> str:
        """The whole in one line."""
        if not self.day:
            return "the first night of these cases: there is nothing to hold it against"
        told = [f"{plural(len(item.results), 'case')} {item.what}" for item in self.items]
        return f"since {self.day}: {', '.join(told) or 'nothing'}"


def find_news(summary: SessionSummary, past: Past) -> News:
    """Find what is new since the last night in which each case was measured."""
    before = {key: nights[-2] for key, nights in past.nights.items() if len(nights) > 1}
    kinds: dict[tuple[str, str], list[CaseResult]] = {}
    for result in sort_by_severity(summary.results):
        if kind := _find_change(result, before.get(result.case.key), summary.strict):
            kinds.setdefault(kind, []).append(result)
    unknown = [
        each for each in summary.results if before and each.value is not None and each.case.key not in before
    ]
    items = [NewsItem(tone, what, tuple(found)) for (tone, what), found in kinds.items()]
    if unknown:
        items.append(NewsItem("fair", "not in any night before", tuple(unknown)))
    return News(max((night.day for night in before.values()), default=""), tuple(items))


def _find_change(result: CaseResult, night: Night | None, strict: bool) -> tuple[str, str] | None:
    """Find how the verdict of a case changed: its tone and what to say of it; None if it says the same."""
    if night is None or night.verdict == result.verdict:
        return None
    was = is_healthy(night.verdict, strict)  # type: ignore[arg-type]
    now = result.counts_as_healthy(strict)
    if was and not now:
        return "bad", f"newly {result.verdict}"
    if result.verdict is Verdict.SUSPECT:
        return "fair", "newly suspect" if was else f"now suspect ({night.verdict} before)"
    if not now or (was and night.verdict != Verdict.SUSPECT):
        return None
    if result.verdict.tone == "good":
        return "good", f"no longer {night.verdict}"
    return "fair", f"now {result.verdict} ({night.verdict} before)"


def find_epochs(nights: Sequence[Night]) -> list[int]:
    """Find the nights from which another reference or another MPI library counts."""
    return [
        n
        for n in range(1, len(nights))
        if nights[n].library != nights[n - 1].library or _moved(nights[n - 1], nights[n])
    ]


def _moved(before: Night, after: Night) -> bool:
    """Return whether the reference of a night lies outside the band of the one before it."""
    if before.band is None or after.reference is None:
        return False
    return not before.band[0] <= after.reference <= before.band[1]
