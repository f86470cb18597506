"""The report of a session: ``report.md``, and ``report.html`` with its pictures in one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from postprocess.model.groups import CaseGroup, count_lines
from postprocess.model.verdict import CaseResult, Verdict, count_verdicts, find_varying_fields
from postprocess.report import legend, overview, panels, plots, templating, trial_selection
from postprocess.report.case_table import build_case_table
from postprocess.report.curves import build_curves
from postprocess.report.first_screen import describe_sight, list_numbered_groups, propose_next
from postprocess.report.heat_map import build_limit_map, build_verdict_map
from postprocess.report.past import Past, find_news
from postprocess.report.sensitivity import BOUNDS, CLASSES, TARGET, assess_sensitivity
from postprocess.report.trial_selection import LaunchTrials
from postprocess.report.verdict_grid import build_grid
from postprocess.results.summary import SessionSummary

PLACES = ("system", "partition", "program")
CONDITIONS = ("cache", "sync")
MOST_FAILURE_GROUPS = 150  #: entries of what failed
MOST_OF_ONE_GROUP = 30  #: cases that are named of those that share a cause
MOST_OPEN = 15  #: entries of what failed that are not folded
MOST_PRINTED = 6  #: entries of what failed, and of what is to look at, that are printed
MOST_OUTLIERS = 60
MOST_LAUNCHES = 400


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
    shared = build_context(summary)
    pages = {markdown: render_markdown(summary, shared), html: render_html(summary, trials, shared, past)}
    templating.write_pages(pages)
    return markdown, html


def render_markdown(summary: SessionSummary, shared: Mapping[str, Any] | None = None) -> str:
    """Render the report without pictures, for a mail or an issue.

    :param shared: what :func:`build_context` has built; None to build it
    """
    return templating.render_markdown_template("report.md.j2", dict(shared or build_context(summary)))


def render_html(
    summary: SessionSummary,
    trials: Mapping[str, Sequence[LaunchTrials]],
    shared: Mapping[str, Any] | None = None,
    past: Past | None = None,
) -> str:
    """Render the report as one page that needs nothing but itself.

    :param shared: what :func:`build_context` has built; None to build it
    """
    past = past or Past()
    drawn, not_drawn = trial_selection.select_trials(summary, trials)
    names = panels.list_environments(summary.results)
    curves = build_curves(summary.results, summary.strict, names)
    table = build_case_table(summary.results, summary.strict, curves, past, drawn)
    groups = list_numbered_groups(summary)
    context = dict(shared or build_context(summary)) | {
        "sight": describe_sight(summary.results),
        "news": find_news(summary, past),
        "proposals": propose_next(summary),
        "past": past,
        "broken": [group for group in groups if group.failed],
        "doubtful": [group for group in groups if not group.failed],
        "maps": (build_verdict_map(summary.results, summary.strict), build_limit_map(summary.results)),
        "curves": curves,
        "table": table,
        "anchors": {row.result.case.key: row.name for row in table.rows if row.name},
        "keys": legend.draw_sign_keys(),
        "not_drawn": not_drawn,
        "script": templating.read_script("cases.js"),
    }
    return templating.render_html_template("report.html.j2", context, trials=plots.draw_trials)


def build_context(summary: SessionSummary) -> dict[str, Any]:
    """Return what both templates of the report need."""
    failure_groups = overview.group_failures(summary.failed)
    chosen = overview.sample_each_verdict([group.results[0] for group in failure_groups], MOST_FAILURE_GROUPS)
    named = {result.case for result in chosen}
    failure_groups = [group for group in failure_groups if group.results[0].case in named]
    outliers = overview.sample_each_verdict(summary.outliers, MOST_OUTLIERS)
    launches = sorted(summary.launches, key=lambda launch: (not launch.failed, launch.outcome))
    return {
        "summary": summary,
        "tone": overview.find_tone(summary),
        "session": summary.session,
        "headline": overview.format_headline(summary),
        "last_line": overview.format_last_line(summary),
        "contradiction": overview.describe_contradiction(summary),
        "counts": count_verdicts(summary.results),
        "failure_groups": failure_groups,
        "most_open": MOST_OPEN,
        "most_printed": MOST_PRINTED,
        "most_groups": MOST_FAILURE_GROUPS,
        "most_of_one": MOST_OF_ONE_GROUP,
        "reruns": [f"./plumbline run --failed {summary.session}", *_list_reruns(failure_groups)],
        "notes": count_lines(summary.notes),
        "failed_not_named": len(summary.failed) - sum(len(group.results) for group in failure_groups),
        "outliers": outliers,
        "outliers_not_named": len(summary.outliers) - len(outliers),
        "skipped": overview.count_reasons(summary.results, Verdict.SKIPPED),
        "whole_grid": build_grid(summary),
        "sensitivity": assess_sensitivity(summary),
        "classes": CLASSES,
        "classes_seen": BOUNDS.index(TARGET) + 1,
        "places": find_varying_fields(summary.results, PLACES),
        "qualifiers": _qualifiers(summary.results),
        "processes": sorted({r.case.processes for r in summary.results}),
        "launches": launches[:MOST_LAUNCHES],
        "launches_left_out": max(0, len(launches) - MOST_LAUNCHES),
        "launches_failed": sum(launch.failed for launch in launches),
        "launches_skipped": sum(launch.outcome == "skipped" for launch in launches),
    }


def _list_reruns(groups: Sequence[CaseGroup]) -> list[str]:
    """List the commands that measure the named cases of groups again, each once."""
    named = (result.rerun for group in groups for result in group.results[:MOST_OF_ONE_GROUP])
    return list(dict.fromkeys(filter(None, named)))


def _qualifiers(results: Sequence[CaseResult]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return, by program and routine, the fields in which its cases differ, to be shown with each case."""
    everywhere = find_varying_fields(results, PLACES)
    found: dict[tuple[str, str], list[CaseResult]] = {}
    for result in results:
        found.setdefault((result.case.program, result.case.routine), []).append(result)
    return {place: everywhere + find_varying_fields(own, CONDITIONS) for place, own in found.items()}
