"""The report of a session: ``report.md``, and ``report.html`` with its pictures in one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from postprocess.model.groups import count_lines
from postprocess.model.verdict import CaseResult, Verdict, count_verdicts, find_varying_fields
from postprocess.report import (
    document,
    legend,
    overview,
    panels,
    plots,
    session_document,
    templating,
    trial_selection,
)
from postprocess.report.case_table import build_case_table
from postprocess.report.curves import build_curves
from postprocess.report.first_screen import describe_sight, list_numbered_groups, propose_next
from postprocess.report.heat_map import build_limit_map, build_verdict_map
from postprocess.report.past import Past, find_news
from postprocess.report.sensitivity import CLASSES, assess_sensitivity
from postprocess.report.session_document import MOST_LAUNCHES, MOST_OF_ONE_GROUP, build_document
from postprocess.report.trial_selection import LaunchTrials
from postprocess.results.summary import SessionSummary

PLACES = ("system", "partition", "program")
CONDITIONS = ("cache", "sync")
MOST_OPEN = 15  #: entries of what failed that are not folded
MOST_PRINTED = 6  #: entries of what failed, and of what is to look at, that are printed


def build_report(
    session_dir: Path,
    summary: SessionSummary,
    trials: Mapping[str, Sequence[LaunchTrials]],
    past: Past | None = None,
) -> tuple[Path, Path]:
    """Write the report of a session beside its ``summary.json``.

    ``trials`` are those of the session, by the key of their case; without any the report has no pictures of
    trials. ``past`` are the nights of its cases. Returns the paths of ``report.md`` and ``report.html``, which
    appear whole or not at all.

    :raises UsageError: if a report cannot be written.
    """
    markdown, html = session_dir / "report.md", session_dir / "report.html"
    pages = {markdown: render_markdown(summary, past), html: render_html(summary, trials, past)}
    templating.write_pages(pages)
    return markdown, html


def render_markdown(summary: SessionSummary, past: Past | None = None) -> str:
    """Render the report without pictures, for a mail or an issue."""
    return document.render_markdown(build_document(summary, past or Past()))


def render_html(
    summary: SessionSummary, trials: Mapping[str, Sequence[LaunchTrials]], past: Past | None = None
) -> str:
    """Render the report as one page that needs nothing but itself."""
    past = past or Past()
    drawn, not_drawn = trial_selection.select_trials(summary, trials)
    names = panels.list_environments(summary.results)
    curves = build_curves(summary.results, summary.strict, names)
    table = build_case_table(summary.results, summary.strict, curves, past, drawn)
    groups = list_numbered_groups(summary)
    launches = sorted(summary.launches, key=lambda launch: (not launch.failed, launch.outcome))
    context: dict[str, Any] = {
        "summary": summary,
        "tone": overview.find_tone(summary),
        "session": summary.session,
        "headline": overview.format_headline(summary),
        "contradiction": overview.describe_contradiction(summary),
        "counts": count_verdicts(summary.results),
        "sight": describe_sight(summary.results),
        "news": find_news(summary, past),
        "proposals": propose_next(summary),
        "past": past,
        "notes": count_lines(summary.notes),
        "broken": [group for group in groups if group.failed],
        "doubtful": [group for group in groups if not group.failed],
        "most_open": MOST_OPEN,
        "most_printed": MOST_PRINTED,
        "most_groups": session_document.MOST_GROUPS,
        "most_of_one": MOST_OF_ONE_GROUP,
        "skipped": overview.count_reasons(summary.results, Verdict.SKIPPED),
        "maps": (build_verdict_map(summary.results, summary.strict), build_limit_map(summary.results)),
        "sensitivity": assess_sensitivity(summary),
        "classes": CLASSES,
        "curves": curves,
        "table": table,
        "anchors": {row.result.case.key: row.name for row in table.rows if row.name},
        "keys": legend.draw_sign_keys(),
        "not_drawn": not_drawn,
        "script": templating.read_script("cases.js"),
        "places": find_varying_fields(summary.results, PLACES),
        "qualifiers": _qualifiers(summary.results),
        "processes": sorted({r.case.processes for r in summary.results}),
        "launches": launches[:MOST_LAUNCHES],
        "launches_left_out": max(0, len(launches) - MOST_LAUNCHES),
        "launches_failed": sum(launch.failed for launch in launches),
        "launches_skipped": sum(launch.outcome == "skipped" for launch in launches),
    }
    return templating.render_html_template("report.html.j2", context, trials=plots.draw_trials)


def _qualifiers(results: Sequence[CaseResult]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return, by program and routine, the fields in which its cases differ, to be shown with each case."""
    everywhere = find_varying_fields(results, PLACES)
    found: dict[tuple[str, str], list[CaseResult]] = {}
    for result in results:
        found.setdefault((result.case.program, result.case.routine), []).append(result)
    return {place: everywhere + find_varying_fields(own, CONDITIONS) for place, own in found.items()}
