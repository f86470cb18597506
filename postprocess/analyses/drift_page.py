"""The page of drift: every change, with plots of its worst cases."""

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timezone
from functools import partial
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from postprocess.analyses import drift
from postprocess.analyses.drift_findings import Cluster, DriftChange
from postprocess.analyses.drift_report import (
    build_drift_table,
    describe_direction,
    format_caption,
    format_case_title,
    format_cluster_share,
    format_drift_period,
    format_drift_title,
    format_log_range,
    percent,
    summarise_drift,
)
from postprocess.base.formats import SHOWN, plural
from postprocess.base.grouping import group_pairs
from postprocess.report import document, drawing
from postprocess.report.plots import BAND, REFERENCE, Y_LABELS

EXTENT = (420, 230)  #: in CSS pixels
TICKS = 5  #: dates under the axis, at most
SECONDS_OF_A_DAY = 86_400
INSIDE = (2.0, 98.0)  #: percentiles of the values that are surely inside the picture
ROOM = 0.6  #: beyond them, as a share of their distance
NIGHT: dict[str, Any] = {"marker": "o", "color": drawing.SERIES[0], "markersize": 3.6, "markeredgewidth": 0}
EARLIER = NIGHT | {"color": drawing.MUTED}
BEYOND: dict[str, Any] = {
    "marker": "^",
    "markersize": 5,
    "markeredgewidth": 0,
    "color": drawing.BAD,
    "clip_on": False,
}
LEVEL: dict[str, Any] = {"color": drawing.INK, "linewidth": 1.8, "solid_capstyle": "butt"}
BEGIN: dict[str, Any] = {"color": drawing.BAD, "linewidth": 1.1, "linestyle": (0, (4, 2))}
EPOCH: dict[str, Any] = {"color": drawing.MUTED, "linewidth": 1.0}


@drawing.apply_style
def draw_drift_plot(trend: drift.Trend) -> str:
    """Draw one ``<svg>`` element. Nights far out of line are triangles at the edge."""
    nights = trend.nights
    figure, axes = drawing.draw_panel(format_case_title(trend), "night", Y_LABELS[nights.unit], EXTENT)
    x = np.array([_day(start) for start in nights.started])
    scale = SHOWN[nights.unit][0]
    values = scale * nights.values
    drawing.set_linear_y(axes, *_range(nights, scale))
    _references(axes, nights, x, scale)
    _points(axes, values, x, nights.epoch)
    _levels(axes, trend, x, scale)
    for finding in trend.findings:
        axes.axvline(x[finding.begin], **BEGIN)
    _dates(axes, x)
    said = "; ".join(f"{f.kind} of {percent(f.size)}" for f in trend.findings)
    return drawing.render_inline_svg(figure, f"{nights.case.key}: {len(x)} nights; {said}")


def _day(started: str) -> float:
    """Return the days since 1970, with their fraction."""
    when = datetime.strptime(started, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    return when.timestamp() / SECONDS_OF_A_DAY


def _range(nights: drift.NightSeries, scale: float) -> tuple[float, float]:
    """Return the range of the axis: nearly all values and every reference; a wide band is cut off."""
    low, high = np.percentile(nights.values, INSIDE)
    low, high = min(low, nights.references.min()), max(high, nights.references.max())
    room = max(ROOM * (high - low), 0.02 * high)
    ends = max(low - room, nights.values.min()), min(high + room, nights.values.max())
    return scale * min(low, ends[0]), scale * max(high, ends[1])


def _references(axes: Axes, nights: drift.NightSeries, x: drift.Floats, scale: float) -> None:
    """Draw center and band from each change of reference to the next; the change to today's has a line."""
    same = np.flatnonzero(np.diff(nights.references)) + 1
    bounds = sorted({0, *(int(place) for place in same), nights.epoch, len(x)})
    low, high = axes.get_ylim()
    for begin, end in pairwise(bounds):
        ends = [x[begin], x[min(end, len(x) - 1)]]
        center = scale * nights.references[begin]
        axes.plot(ends, [center, center], **REFERENCE)
        limits = scale * nights.lower[begin], scale * nights.upper[begin]
        if np.isfinite(limits).all():
            axes.fill_between(ends, *np.clip(limits, low, high), **BAND)
    if nights.epoch:
        axes.axvline(x[nights.epoch], **EPOCH)


def _points(axes: Axes, values: drift.Floats, x: drift.Floats, epoch: int) -> None:
    """Draw a dot for each night, pale before today's epoch, a triangle at the edge for what is beyond it."""
    low, high = axes.get_ylim()
    inside = (values >= low) & (values <= high)
    now = np.arange(len(x)) >= epoch
    for some, how in ((inside & now, NIGHT), (inside & ~now, EARLIER)):
        axes.plot(x[some], values[some], **how | {"linestyle": "none"})
    for some, edge, sign in ((values > high, high, "^"), (values < low, low, "v")):
        axes.plot(x[some], np.full(some.sum(), edge), **BEYOND | {"linestyle": "none", "marker": sign})


def _levels(axes: Axes, trend: drift.Trend, x: drift.Floats, scale: float) -> None:
    """Draw the fitted levels of today's epoch."""
    nights = trend.nights
    for begin, end in pairwise([nights.epoch, *trend.changes, len(x)]):
        level = scale * float(np.median(nights.values[begin:end]))
        axes.plot([x[begin], x[min(end, len(x) - 1)]], [level, level], **LEVEL)


def _dates(axes: Axes, x: drift.Floats) -> None:
    """Draw a few dates under the axis, evenly apart."""
    room = 0.02 * (x[-1] - x[0]) + 0.5
    axes.set_xlim(x[0] - room, x[-1] + room)
    days = np.unique(np.floor(np.linspace(x[0], x[-1], TICKS)))
    epoch = date(1970, 1, 1).toordinal()
    long = x[-1] - x[0] > 300
    form = "%Y-%m" if long else "%m-%d"
    labels = [date.fromordinal(epoch + int(day)).strftime(form) for day in days]
    drawing.set_ticks_x(axes, days.tolist(), labels)


PAGE = "drift.html"
MOST_SECTIONS = 100  #: changes that are drawn: a picture takes a twentieth of a second and 10 kB
MOST_OF_ONE = 6  #: of many cases that changed at once
LEGEND = document.Legend(
    (
        (document.css_key("key"), "fitted level"),
        (document.css_key("key begin"), "a change begins"),
        (document.css_key("key reference"), "reference"),
        (document.css_key("key band"), "its band"),
        (document.css_key("key epoch"), "reference or MPI library changed"),
        (Markup(), "pale: nights before that; triangles: beyond the picture"),
    )
)
HOW_TO_READ = (
    f"A step is a change of the level that lasted at least {drift.LEAST_NIGHTS} nights, by the fit of levels "
    "with the least absolute deviation. A creep is reported if the cumulative sum of the excess over the "
    "reference shows it and no step does: a slow change, or one that was already there on the reference's "
    f"first night. Both are reported from {drift.LEAST:.0%} on.",
    "Of 1,000 healthy cases over 60 nights, fewer than two are reported; some 25 if the machine itself drifts "
    "over days. p bounds the probability that such noise causes a change anywhere in the series.",
    "Faster is not a failure: look whether the reference is stale. A new reference or MPI library begins a new "
    "epoch.",
)


def build_drift_document(
    trends: Sequence[drift.Trend], found: Sequence[Cluster], since: str
) -> document.Document:
    """Build what the pages say: every change with pictures of its worst cases, and all changes as a table."""
    drawn = found[:MOST_SECTIONS]
    left = len(found) - len(drawn)
    left_out = [f"{plural(left, 'further change')} not drawn: --json FILE has all"] if left else []
    judged_by = document.describe_judged(trend.nights.case.program for trend in trends)
    return document.Document(
        "drift",
        [f"nights since {since}"],
        document.Tone.BAD if any(cluster.slow for cluster in found) else document.Tone.GOOD,
        format_drift_title(found),
        [summarise_drift(trends, found)],
        [
            *([document.Section("", [LEGEND])] if found else []),
            *build_drift_sections(drawn),
            document.Section("", [document.Lines(document.Role.CAVEAT, left_out)]),
            document.Section("Every change", [build_drift_table(found)], folded=True),
        ],
        (f"One dot is the median launch of a night. {judged_by}", *HOW_TO_READ),
    )


def build_drift_sections(found: Sequence[Cluster]) -> Iterator[document.Section]:
    """Build a section for each change of many cases, and one for all single changes in a direction."""
    for way, some in groupby(found, key=lambda each: describe_direction(each.worst.finding)):
        together = list(some)
        mark = document.Toned(way, document.Tone.BAD if together[0].slow else document.Tone.FAIR)
        for each in together:
            if each.place:
                yield build_cluster_section(mark, each)
        if alone := [cluster.worst for cluster in together if not cluster.place]:
            yield document.Section("", build_drift_pictures(alone), mark=mark)


def build_cluster_section(mark: document.Toned, cluster: Cluster) -> document.Section:
    """Build the section of a change of many cases, with the worst of them."""
    sizes = format_log_range(change.finding.size for change in cluster.changes)
    period = f"{cluster.worst.finding.kind}, {sizes}, since {format_drift_period(cluster)}"
    left = len(cluster.changes) - MOST_OF_ONE
    more = [f"{plural(left, 'more case')} like these"] if left > 0 else []
    blocks: list[document.Block] = [
        document.Lines(document.Role.REMARK, [f"{period}: one cause is likely"]),
        *build_drift_pictures(cluster.changes[:MOST_OF_ONE]),
        document.Lines(document.Role.REMARK, more),
    ]
    return document.Section(format_cluster_share(cluster), blocks, mark=mark)


def build_drift_pictures(changes: Sequence[DriftChange]) -> list[document.Picture]:
    return [
        document.Picture(
            partial(draw_drift_plot, some[0].trend), captions=list(map(format_caption, some)), subject=key
        )
        for key, some in group_pairs((change.trend.nights.case.key, change) for change in changes).items()
    ]
