"""What people read of drift: terminal table, last line, JSON, and a page with plots of the worst cases."""

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timezone
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from postprocess.analyses import drift
from postprocess.analyses.drift_findings import Cluster, DriftChange, cluster_changes, day_before, read_nights
from postprocess.base.errors import UsageError
from postprocess.base.formats import SHOWN, TextTable, align_rows, format_signed, plural, size
from postprocess.base.sanitize import sanitize_line
from postprocess.report import document
from postprocess.report import drawing as small
from postprocess.report.drawing import BAD, INK, MUTED, SERIES, apply_style, render_inline_svg
from postprocess.report.plots import BAND, LEVELS, Y_LABELS
from postprocess.results.store import list_sessions

MOST_ROWS = 200  #: of the table in a terminal
COLUMNS = ("change", "+-", "now", "p")
SHORT_HEAD = ("what", "how", "since", "change", "+-", "now")
SURE = 1e-6  #: smaller p-values are not reported: noise is not normal so far out


def format_drift(found: Sequence[Cluster]) -> list[str]:
    """Format each change as lines of a terminal: its numbers, and below them of which cases."""
    shown = found[:MOST_ROWS]
    head, *lines = align_rows([SHORT_HEAD, *map(format_short_row, shown)], texts=3)
    below = [format_cluster_lines(cluster) for cluster in shown]
    told = [text for line, more in zip(lines, below, strict=True) for text in (line, *more)]
    return [head, *told, *note_further_rows(found)]


def format_short_row(cluster: Cluster) -> tuple[str, ...]:
    """Format the numbers of a row, without p and the case."""
    direction, kind, period, _, *numbers, _ = format_cluster_row(cluster)
    short = (cell.replace("% to ", "..").replace(" to ", "..") for cell in (period, *numbers))
    return direction, kind, *short


def format_cluster_lines(cluster: Cluster) -> list[str]:
    """Format the case by its key; of many, what they have in common and the worst of them."""
    worst = cluster.worst.trend.nights.case.key
    if not cluster.place:
        return [f"  {worst}"]
    return [f"  {format_cluster_share(cluster)}", f"  worst: {worst}"]


def note_further_rows(found: Sequence[Cluster]) -> tuple[str, ...]:
    left = len(found) - MOST_ROWS
    return (f"{plural(left, 'further row')}: --json FILE has all",) if left > 0 else ()


def build_drift_table(found: Sequence[Cluster]) -> TextTable:
    """Build a row for each change, of many cases or of one, in the order given."""
    rows = tuple(format_cluster_row(cluster) for cluster in found[:MOST_ROWS])
    return TextTable("", ("what", "how", "since", "case"), COLUMNS, rows, note_further_rows(found))


def format_cluster_row(cluster: Cluster) -> tuple[str, ...]:
    """Format the cells of a row. Sizes and levels of many cases are shown from the least to the largest."""
    findings = [change.finding for change in cluster.changes]
    return (
        describe_direction(cluster.worst.finding),
        cluster.worst.finding.kind,
        format_drift_period(cluster),
        format_cluster_members(cluster),
        format_log_range(finding.size for finding in findings),
        f"{100 * max(finding.margin for finding in findings):.1f}%",
        format_log_range(change.trend.now for change in cluster.changes),
        format_probability_bound(max(finding.p for finding in findings)),
    )


def describe_direction(finding: drift.DriftFinding) -> str:
    """Describe the direction in which a case changed, and whether it came back."""
    way = "slower" if finding.slow else "faster"
    return way if finding.lasts else f"was {way}"


def format_drift_period(cluster: Cluster) -> str:
    """Format the day of its first night, and of the first one after it if it is over."""
    ended = sorted(change.ended for change in cluster.changes)[len(cluster.changes) // 2]
    return format_date(cluster.began) + (f" to {format_date(ended)}" if ended else "")


def format_date(started: str) -> str:
    """Format the date of a time such as ``2026-11-03T01:30:00Z``."""
    return started[:10]


def format_cluster_members(cluster: Cluster) -> str:
    """Format the case by its key; of many, what they have in common."""
    worst = cluster.worst.trend.nights.case.key
    if not cluster.place:
        return worst
    return f"{format_cluster_share(cluster)}, such as {worst}"


def format_cluster_share(cluster: Cluster) -> str:
    """Format how many cases of which place."""
    system, partition, *more = cluster.place
    place = " ".join([f"{system}:{partition}", *more])
    return f"{len(cluster.changes)} of {plural(cluster.cases, 'case')} of {place}"


def percent(log: float) -> str:
    """Format a change of the logarithm in percent: ``+9.8%`` is slower, ``-4.0%`` faster."""
    return format_signed(math.expm1(log))


def format_log_range(logs: Iterable[float]) -> str:
    """Format the least and the largest change, or the only one, from natural logarithms to percent."""
    words = [percent(log) for log in sorted(logs)]
    return words[0] if words[0] == words[-1] else f"{words[0]} to {words[-1]}"


def format_probability_bound(p: float) -> str:
    """Format the bound on the probability that noise alone made the change."""
    return f"{p:.1g}" if p > SURE else f"<{SURE:.0e}"


def format_caption(change: DriftChange) -> str:
    finding, nights = change.finding, change.trend.nights
    began = nights.started[finding.begin]
    said = f"{percent(finding.size)} (±{100 * finding.margin:.1f}%)"
    if finding.kind == "creep":
        said = f"{said} against its reference, since about {format_date(began)}"
    elif finding.lasts:
        before = nights.started[finding.begin - 1]
        said = f"{said} since {format_date(began)}; the last night before it was {format_date(before)}"
    else:
        said = f"{said} from {format_date(began)} until {format_date(change.ended)}"
    return f"{describe_direction(finding)}, {finding.kind}: {said}"


def format_case_title(trend: drift.Trend) -> str:
    """Format the case as a picture's title has it."""
    case = trend.nights.case
    payload = f" {size(case.bytes)}" if case.bytes else ""
    return f"{case.label}{payload}, {case.layout}"


def format_drift_title(found: Sequence[Cluster]) -> str:
    slow = list_changed_cases(found, slow=True)
    if not slow:
        return "No case became slower over the nights"
    return f"{plural(slow, 'case')} became slower over the nights"


def summarise_drift(trends: Sequence[drift.Trend], found: Sequence[Cluster]) -> str:
    """Summarise the last line: what was looked at, and what was found."""
    known = [trend for trend in trends if trend.known]
    nights = {start for trend in known for start in trend.nights.started}
    words = [f"{list_changed_cases(found, slow=True)} slower"]
    if faster := list_changed_cases(found, slow=False):
        words.append(f"{faster} faster (their references may be stale)")
    if over := {
        key for cluster in found for key in list_cluster_keys(cluster) if not cluster.worst.finding.lasts
    }:
        words.append(f"{len(over)} for a while only")
    said = f"drift: of {plural(len(known), 'case')} in {plural(len(nights), 'night')} {', '.join(words)}"
    if unknown := len(trends) - len(known):
        said += f"; {plural(unknown, 'case')} not looked at: {explain_too_few_nights()}"
    return said


def explain_too_few_nights() -> str:
    return f"fewer than {drift.ENOUGH_NIGHTS} nights since the reference or the MPI library changed"


def list_changed_cases(found: Sequence[Cluster], slow: bool) -> int:
    """List cases with a change that lasts, to the slow or to the fast side."""
    lasting = [cluster for cluster in found if cluster.worst.finding.lasts]
    return len(
        {key for cluster in lasting if cluster.worst.finding.slow == slow for key in list_cluster_keys(cluster)}
    )


def list_cluster_keys(cluster: Cluster) -> list[str]:
    return [change.trend.nights.case.key for change in cluster.changes]


def drift_as_data(trends: Sequence[drift.Trend], found: Sequence[Cluster], since: str) -> dict[str, Any]:
    """Return the findings as data. Changes are fractions: 0.1 is a tenth slower."""
    return {
        "since": since,
        "cases": len(trends),
        "looked_at": sum(trend.known for trend in trends),
        "slower": list_changed_cases(found, slow=True),
        "faster": list_changed_cases(found, slow=False),
        "changes": [
            {
                "slow": cluster.worst.finding.slow,
                "lasts": cluster.worst.finding.lasts,
                "kind": cluster.worst.finding.kind,
                "place": list(cluster.place),
                "cases_of_place": cluster.cases,
                "cases": [change_as_data(change) for change in cluster.changes],
            }
            for cluster in found
        ],
    }


def change_as_data(change: DriftChange) -> dict[str, Any]:
    finding, nights = change.finding, change.trend.nights
    return {
        "key": nights.case.key,
        "began": change.began,
        "session": nights.sessions[finding.begin],
        "ended": change.ended or None,
        "change": math.expm1(finding.size),
        "margin": finding.margin,
        "now": math.expm1(change.trend.now),
        "p": finding.p,
    }


DAYS = 60  #: that are read, which costs a night a second or two


def drift_note(store: Path) -> str:
    """Return the line on drift at the end of a night; empty if there is nothing to say.

    Looks at ``DAYS`` days, once there are nights enough. A store that cannot be read gets a message, and
    does not end the night.
    """
    try:
        if len(list_sessions(store)) < drift.ENOUGH_NIGHTS:
            return ""
        trends = drift.detect_trends(read_nights(store, day_before(DAYS)))
    except UsageError as error:
        return sanitize_line(f"drift: not looked for: {error}")
    return format_drift_note(trends)


def format_drift_note(trends: Sequence[drift.Trend]) -> str:
    """Format that line: of slowdowns only."""
    found = [cluster for cluster in cluster_changes(trends) if cluster.slow]
    if not found:
        return ""
    worst = max(found, key=lambda each: each.worst.finding.size).worst
    return (
        f"drift: {format_drift_title(found)}, by {percent(worst.finding.size)} at worst "
        f"({worst.trend.nights.case.key}): ./plumbline drift"
    )


EXTENT = (420, 230)  #: in CSS pixels
TICKS = 5  #: dates under the axis, at most
SECONDS_OF_A_DAY = 86_400
INSIDE = (2.0, 98.0)  #: percentiles of the values that are surely inside the picture
ROOM = 0.6  #: beyond them, as a share of their distance
NIGHT: dict[str, Any] = {"marker": "o", "color": SERIES[0], "markersize": 3.6, "markeredgewidth": 0}
EARLIER = NIGHT | {"color": MUTED}
BEYOND: dict[str, Any] = {"marker": "^", "markersize": 5, "markeredgewidth": 0, "color": BAD, "clip_on": False}
LEVEL: dict[str, Any] = {"color": INK, "linewidth": 1.8, "solid_capstyle": "butt"}
BEGIN: dict[str, Any] = {"color": BAD, "linewidth": 1.1, "linestyle": (0, (4, 2))}
EPOCH: dict[str, Any] = {"color": MUTED, "linewidth": 1.0}


@apply_style
def draw_drift_plot(trend: drift.Trend) -> str:
    """Draw one ``<svg>`` element. Nights far out of line are triangles at the edge."""
    nights = trend.nights
    figure, axes = small.draw_panel(format_case_title(trend), "night", Y_LABELS[nights.unit], EXTENT)
    x = np.array([_day(start) for start in nights.started])
    scale = SHOWN[nights.unit][0]
    values = scale * nights.values
    small.set_linear_y(axes, *_range(nights, scale))
    _references(axes, nights, x, scale)
    _points(axes, values, x, nights.epoch)
    _levels(axes, trend, x, scale)
    for finding in trend.findings:
        axes.axvline(x[finding.begin], **BEGIN)
    _dates(axes, x)
    said = "; ".join(f"{f.kind} of {percent(f.size)}" for f in trend.findings)
    return render_inline_svg(figure, f"{nights.case.key}: {len(x)} nights; {said}")


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
        axes.plot(ends, [center, center], **LEVELS["reference"])
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
    small.set_ticks_x(axes, days.tolist(), labels)


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
    "with the least absolute deviation; a creep is told where a cumulative sum of what lies above the "
    "reference says so and no step does: a slow change, or one that was there on the reference's first night "
    f"already. Both are told from {drift.LEAST:.0%} on.",
    "Of 1,000 healthy cases of 60 nights fewer than two are told; where the machine itself wanders over days, "
    "some 25. p bounds the probability that such noise does it anywhere in the series.",
    "Faster is no failure: look whether the reference is stale. A new reference, or a new MPI library, begins "
    "a new epoch.",
)


def build_drift_document(
    trends: Sequence[drift.Trend], found: Sequence[Cluster], since: str
) -> document.Document:
    """Build what the pages say: every change with pictures of its worst cases, and all changes as a table."""
    drawn = found[:MOST_SECTIONS]
    left = len(found) - len(drawn)
    left_out = [f"{plural(left, 'further change')} not drawn: --json FILE has all"] if left else []
    judged_by = document.describe_judged(each.nights.case.program for each in trends)
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
        if alone := [each.worst for each in together if not each.place]:
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
    by_case: dict[str, list[DriftChange]] = {}
    for change in changes:
        by_case.setdefault(change.trend.nights.case.key, []).append(change)
    return [
        document.Picture(
            partial(draw_drift_plot, some[0].trend), captions=list(map(format_caption, some)), subject=key
        )
        for key, some in by_case.items()
    ]
