"""HTML page of drift: a section for each change, a plot for each of its worst cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from postprocess.analyses.drift import text
from postprocess.analyses.drift.clusters import Cluster, DriftChange
from postprocess.analyses.drift.detect import LEAST, LEAST_NIGHTS, Trend
from postprocess.analyses.drift.plot import draw_drift_plot
from postprocess.base.formats import plural
from postprocess.report import templating
from postprocess.report.judged_value import JUDGED

PAGE = "drift.html"
MOST_SECTIONS = 100  #: changes that are drawn: a picture takes a twentieth of a second and 10 kB
MOST_OF_ONE = 6  #: of many cases that changed at once


@dataclass(frozen=True, eq=False)
class DriftPicture:
    """The picture of a case, and its captions."""

    trend: Trend
    key: str
    captions: Sequence[str]


@dataclass(frozen=True, eq=False)
class DriftSection:
    """A section of the page. Empty texts are left out."""

    what: str
    slow: bool
    title: str
    text: str
    pictures: Sequence[DriftPicture]
    more: str


def write_drift_page(
    directory: Path, trends: Sequence[Trend], found: Sequence[Cluster], since: str
) -> Path:
    """Write ``drift.html``; its path.

    :raises UsageError: if it cannot be written.
    """
    page = directory / PAGE
    templating.write_pages({page: render_drift_page(trends, found, since)})
    return page


def render_drift_page(trends: Sequence[Trend], found: Sequence[Cluster], since: str) -> str:
    """Render the page as one HTML file that needs nothing but itself."""
    drawn = found[:MOST_SECTIONS]
    left = len(found) - len(drawn)
    context = {
        "good": not any(each.slow for each in found),
        "headline": text.format_drift_title(found),
        "summary": text.summarise_drift(trends, found),
        "since": since,
        "sections": list(build_drift_sections(drawn)),
        "left_out": f"{plural(left, 'further change')} not drawn: --json FILE has all"
        if left
        else "",
        "least": f"{LEAST:.0%}",
        "least_nights": LEAST_NIGHTS,
        "judged": JUDGED,
    }
    return templating.render_html_template("drift.html.j2", context, series=draw_drift_plot)


def build_drift_sections(found: Sequence[Cluster]) -> Iterator[DriftSection]:
    """Build a section for each change of many cases, and one for all single changes in a direction."""
    for way, some in groupby(found, key=lambda each: text.describe_direction(each.worst.finding)):
        together = list(some)
        for each in together:
            if each.place:
                yield build_cluster_section(way, each)
        if alone := [each.worst for each in together if not each.place]:
            yield DriftSection(way, together[0].slow, "", "", build_drift_pictures(alone), "")


def build_cluster_section(way: str, cluster: Cluster) -> DriftSection:
    """Build the section of a change of many cases, with the worst of them."""
    sizes = text.format_log_range(each.finding.size for each in cluster.changes)
    left = len(cluster.changes) - MOST_OF_ONE
    return DriftSection(
        way,
        cluster.slow,
        text.format_cluster_share(cluster),
        f"{cluster.worst.finding.kind}, {sizes}, since {text.format_drift_period(cluster)}: "
        "one cause is likely",
        build_drift_pictures(cluster.changes[:MOST_OF_ONE]),
        f"{plural(left, 'more case')} like these" if left > 0 else "",
    )


def build_drift_pictures(changes: Sequence[DriftChange]) -> list[DriftPicture]:
    """Build a picture of each case, in the order of its worst change."""
    by_case: dict[str, list[DriftChange]] = {}
    for each in changes:
        by_case.setdefault(each.trend.nights.case.key, []).append(each)
    return [
        DriftPicture(some[0].trend, key, [text.format_caption(each) for each in some])
        for key, some in by_case.items()
    ]
