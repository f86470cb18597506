"""What people read of drift in a terminal and in JSON; :mod:`postprocess.analyses.drift_page` has the page."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from postprocess.analyses import drift
from postprocess.analyses.drift_findings import Cluster, DriftChange, cluster_changes, day_before, read_nights
from postprocess.base.errors import UsageError
from postprocess.base.formats import TextTable, align_rows, format_signed, plural, size
from postprocess.base.sanitize import sanitize_line
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
