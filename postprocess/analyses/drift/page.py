"""HTML page of drift: a section for each change, a plot for each of its worst cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from postprocess.analyses.drift import text as words
from postprocess.analyses.drift.clusters import Change, Cluster
from postprocess.analyses.drift.detect import LEAST, LEAST_NIGHTS, Trend
from postprocess.analyses.drift.plot import draw
from postprocess.base.formats import plural
from postprocess.report import templating

PAGE = "drift.html"
MOST_SECTIONS = 100  #: changes that are drawn: a picture takes a twentieth of a second and 10 kB
MOST_OF_ONE = 6  #: of many cases that changed at once


@dataclass(frozen=True, eq=False)
class Picture:
    """A case, and what is said below it."""

    trend: Trend
    key: str
    captions: Sequence[str]


@dataclass(frozen=True, eq=False)
class Section:
    """A part of the page. Empty words are left out."""

    what: str
    slow: bool
    title: str
    text: str
    pictures: Sequence[Picture]
    more: str


def write_page(
    directory: Path, trends: Sequence[Trend], found: Sequence[Cluster], since: str
) -> Path:
    """Write ``drift.html``; its path.

    :raises UsageError: if it cannot be written.
    """
    page = directory / PAGE
    templating.write({page: render(trends, found, since)})
    return page


def render(trends: Sequence[Trend], found: Sequence[Cluster], since: str) -> str:
    """The page as one HTML file that needs nothing but itself."""
    drawn = found[:MOST_SECTIONS]
    left = len(found) - len(drawn)
    context = {
        "good": not any(each.slow for each in found),
        "headline": words.headline(found),
        "summary": words.summary(trends, found),
        "since": since,
        "sections": list(sections(drawn)),
        "left_out": f"{plural(left, 'further change')} not drawn: --json FILE has all"
        if left
        else "",
        "least": f"{LEAST:.0%}",
        "least_nights": LEAST_NIGHTS,
    }
    return templating.html("drift.html.j2", context, series=draw)


def sections(found: Sequence[Cluster]) -> Iterator[Section]:
    """One for each change of many cases, and one for all cases that went one way by themselves."""
    for way, some in groupby(found, key=lambda each: words.becoming(each.worst.finding)):
        together = list(some)
        for each in together:
            if each.place:
                yield of_many(way, each)
        if alone := [each.worst for each in together if not each.place]:
            yield Section(way, together[0].slow, "", "", pictures(alone), "")


def of_many(way: str, cluster: Cluster) -> Section:
    """A change of many cases at once: its worst."""
    sizes = words.span(each.finding.size for each in cluster.changes)
    left = len(cluster.changes) - MOST_OF_ONE
    return Section(
        way,
        cluster.slow,
        words.share(cluster),
        f"{cluster.worst.finding.kind}, {sizes}, since {words.since(cluster)}: one cause is likely",
        pictures(cluster.changes[:MOST_OF_ONE]),
        f"{plural(left, 'more case')} like these" if left > 0 else "",
    )


def pictures(changes: Sequence[Change]) -> list[Picture]:
    """One for each case, in the order of the worst change of each."""
    by_case: dict[str, list[Change]] = {}
    for each in changes:
        by_case.setdefault(each.trend.nights.case.key, []).append(each)
    return [
        Picture(some[0].trend, key, [words.caption(each) for each in some])
        for key, some in by_case.items()
    ]
