"""The pages of a history: HTML with a picture of each case over the versions, Markdown, JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from postprocess.base.files import write_summary
from postprocess.base.formats import SHOWN, plural
from postprocess.features.compare.history import text
from postprocess.features.compare.history.steps import CaseHistory, JudgedHistory
from postprocess.report import axes as small
from postprocess.report import templating
from postprocess.report.plots import Y_LABELS
from postprocess.report.svg import BAD, GOOD, INK, MUTED, apply_style, render_inline_svg
from postprocess.stats.comparison.paired_verdicts import PairedVerdict

HTML, MARKDOWN, JSON = "history.html", "history.md", "history.json"
SCHEMA = 1
EXTENT = (420, 230)  #: of a picture, in CSS pixels
DRAWN = 60  #: cases, those with the largest steps first: a picture takes 10 kB
LINE: dict[str, Any] = {"color": INK, "linewidth": 1.6, "marker": "o", "markersize": 4.5, "markeredgewidth": 0}
STEP: dict[str, Any] = {"linestyle": "none", "markersize": 8, "markeredgewidth": 0}


def write_history(directory: Path, judged: JudgedHistory) -> Path:
    """Write all pages of a history; return that for people. The JSON comes last: with it, all is there.

    :raises UsageError: if they cannot be written
    """
    context = build_history_context(judged)
    drawn = templating.render_html_template(
        "history.html.j2", context, series=lambda case: draw_history(case, judged)
    )
    page = directory / HTML
    markdown = templating.render_markdown_template("history.md.j2", context)
    templating.write_pages({page: drawn, directory / MARKDOWN: markdown})
    write_summary(directory / JSON, build_history_json(judged))
    return page


def build_history_context(judged: JudgedHistory) -> dict[str, Any]:
    """Build what the templates print."""
    ordered = text.order_cases(judged.cases)
    stepping = [history for history in ordered if history.found or history.failures]
    drawn = (stepping or ordered)[:DRAWN]
    left = len(stepping) - len(drawn)
    return {
        "good": judged.status == 0,
        "headline": text.format_headline(judged),
        "header": judged.header,
        "facts": text.format_history_facts(judged),
        "versions": text.format_steps(judged),
        "pictures": [
            {
                "case": history,
                "place": text.describe_place(history),
                "lines": text.describe_steps(history, judged),
            }
            for history in drawn
        ],
        "left_out": f"{plural(left, 'more case')} with steps not drawn" if left > 0 else "",
        "every": text.tabulate_history("Every case", judged, ordered),
        "controls": text.tabulate_history("Controls without MPI", judged, judged.controls),
        "rerun": [
            (history.case.words, text.describe_place(history), list(dict.fromkeys(history.rerun.values())))
            for history in drawn
        ],
        "how_to_read": text.HOW_TO_READ,
    }


@apply_style
def draw_history(case: CaseHistory, judged: JudgedHistory) -> str:
    """Draw one ``<svg>`` element: the value of each version, with the proven steps."""
    labels = [version.label.rpartition("@")[2] for version in judged.header.versions]
    figure, axes = small.draw_panel(f"{case.case.words}, {case.case.layout}", "", Y_LABELS[case.unit], EXTENT)
    scale = SHOWN[case.unit][0]
    known = [(n, scale * each.value) for n, each in enumerate(case.versions) if each.value is not None]
    most = max((value for _, value in known), default=1.0)
    small.set_linear_y(axes, 0.0, 1.15 * most)
    axes.plot([n for n, _ in known], [value for _, value in known], **LINE)
    for step in case.found:
        slower = step.verdict == PairedVerdict.SLOWER
        value = scale * (case.versions[step.after].value or 0.0)
        how = {"marker": "^" if slower else "v", "color": BAD if slower else GOOD}
        axes.plot([step.after], [value], **STEP | how)
    failed = case.failures
    axes.plot(failed, [0.0] * len(failed), **STEP | {"marker": "X", "color": BAD, "clip_on": False})
    axes.set_xlim(-0.4, len(labels) - 0.6)
    small.set_ticks_x(axes, list(range(len(labels))), labels)
    if max(map(len, labels)) * len(labels) > 45:
        axes.tick_params(axis="x", labelrotation=35)
    axes.tick_params(axis="x", color=MUTED)
    said = "; ".join(text.describe_steps(case, judged)) or "no proven step"
    return render_inline_svg(figure, f"{case.case.key}: {said}")


def build_history_json(judged: JudgedHistory) -> dict[str, Any]:
    """Build the history for programs."""
    return {
        "schema": SCHEMA,
        "kind": "history",
        "sentence": text.format_headline(judged),
        "exit_status": judged.status,
        "header": asdict(judged.header),
        "rounds": judged.rounds,
        "seconds": round(judged.seconds, 1),
        "cases": describe_entries(judged.cases),
        "controls": describe_entries(judged.controls),
    }


def describe_entries(cases: Sequence[CaseHistory]) -> list[dict[str, Any]]:
    """Describe cases for programs."""
    return [
        {"key": history.case.key, **history.case._asdict(), **asdict(history), "case": history.case.key}
        for history in cases
    ]
