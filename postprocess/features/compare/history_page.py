"""What people and programs read of a history: each case over the versions, as text, pictures and JSON."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from markupsafe import Markup

from postprocess.base import formats
from postprocess.features.compare.history import CaseHistory, JudgedHistory
from postprocess.features.compare.text import format_controls, join_lines
from postprocess.report import document, rendering
from postprocess.report import drawing as small
from postprocess.report.drawing import BAD, GOOD, INK, MUTED, apply_style, render_inline_svg
from postprocess.report.plots import Y_LABELS
from postprocess.stats.paired_verdicts import ERROR, PairedVerdict

FEW = 40  #: cases that a terminal shows
NAMED = 4
SIGNS = {PairedVerdict.SLOWER: "▲", PairedVerdict.FASTER: "▼"}
FAILED = "✗"
HOW_VALUES = "Each round launches every version once, in a drawn order. A value is the median of its launches."
HOW_TO_READ = (
    "▲ slower, ▼ faster than the version before: proven by at least half the margin from paired differences "
    "(Hodges-Lehmann, Wilcoxon). No sign: the same, or not proven.",
    f"Of all steps called slower (or faster), {ERROR:.0%} at most are false on average, over all cases and "
    "versions (Benjamini and Hochberg).",
    "✗: fails with this version. -: this version does not measure it. A step after a gap is from the last "
    "version that has a value.",
    "If a control, in which no MPI has a part, steps too, the machine changed and nothing here counts.",
)


def format_headline(judged: JudgedHistory) -> str:
    """Format the history in one sentence."""
    labels = [version.label for version in judged.header.versions]
    what = f"{formats.plural(len(judged.cases), 'case')} over {formats.plural(len(labels), 'version')}"
    what += f", {labels[0]} to {labels[-1]}"
    if judged.moved:
        moved = formats.first_of([history.case.label for history in judged.moved], NAMED)
        return f"Void: {moved} changed, and no MPI has a part in it: {what}"
    steps = [step for case in judged.cases for step in case.found]
    slower = sum(each.verdict == PairedVerdict.SLOWER for each in steps)
    failing = sum(bool(case.failures) for case in judged.cases)
    words = [f"{formats.plural(slower, 'step')} to slower", f"{len(steps) - slower} to faster"]
    words += [f"{formats.plural(failing, 'case')} failing with some version"] if failing else []
    return f"{what}: {', '.join(words)}"


def format_history_facts(judged: JudgedHistory) -> list[str]:
    """Format what stands below the headline."""
    header = judged.header
    left_out = [f"left out: {label}: {why}" for label, why in header.left_out.items()]
    return [
        f"{formats.plural(judged.rounds, 'round')} of all versions, in an order drawn with seed {header.seed}",
        format_controls(len(judged.controls), [tell_largest_step(control) for control in judged.moved]),
        *left_out,
    ]


def tell_largest_step(case: CaseHistory) -> str:
    """Tell by how much a case changed where it changed most."""
    ratio = max((step.ratio or 1.0 for step in case.found), key=lambda each: abs(math.log(each)))
    return f"{case.case.label} by {formats.format_signed(ratio - 1)}"


def format_steps(judged: JudgedHistory) -> list[str]:
    versions = judged.header.versions
    lines = []
    for after in range(1, len(versions)):
        counts = ", ".join(f"{n} {verdict}" for verdict, n in judged.count_steps(after).items())
        lines.append(f"{versions[after].label}: {counts or 'no case to judge'}")
    return lines


def format_cell(case: CaseHistory, version: int) -> str:
    """Format the value of a version, with a sign if it is a step."""
    each = case.versions[version]
    step = next((each for each in case.found if each.after == version), None)
    if each.failed:
        return FAILED
    if each.value is None:
        return formats.DASH
    return f"{formats.number(each.value, case.unit)}{SIGNS[step.verdict] if step else ''}"


def order_cases(cases: Sequence[CaseHistory]) -> list[CaseHistory]:
    """Order cases: those that fail, then those that step most, then the others."""

    def rank(case: CaseHistory) -> tuple[bool, float, str]:
        largest = max((abs((step.ratio or 1.0) - 1) for step in case.found), default=0.0)
        return not case.failures, -largest, case.case.key

    return sorted(cases, key=rank)


def tabulate_history(title: str, judged: JudgedHistory, cases: Sequence[CaseHistory]) -> formats.TextTable:
    """Tabulate cases, a column for each version."""
    rows = tuple(
        (
            history.case.words,
            history.case.where,
            "us" if history.unit == "s" else history.unit,
            *(format_cell(history, n) for n in range(len(judged.releases))),
        )
        for history in cases
    )
    return formats.TextTable(title, ("case", "where", "unit"), tuple(judged.releases), rows)


def describe_steps(case: CaseHistory, judged: JudgedHistory) -> list[str]:
    """Describe the steps of a case, in a line each."""
    lines = []
    for step in case.found:
        label = judged.header.versions[step.after].label
        old, new = (case.versions[n].value for n in (step.before, step.after))
        ends = [formats.factor(limit) for limit in step.limits] if step.limits else []
        limits = f", {' to '.join(dict.fromkeys(ends))} times" if ends else ""
        change = formats.format_signed(step.ratio - 1) if step.ratio else formats.DASH
        lines.append(
            f"{label}: {step.verdict}, {change} ({formats.quantity(old, case.unit)} to "
            f"{formats.quantity(new, case.unit)}{limits})"
        )
    return lines


def format_history_text(judged: JudgedHistory) -> str:
    facts = formats.wrap_all(format_history_facts(judged), formats.INDENT)
    text = join_lines(["", *formats.wrap_all([format_headline(judged)]), *facts, "", *format_steps(judged)])
    ordered = order_cases(judged.cases)
    shown = [history for history in ordered if history.found or history.failures][:FEW] or ordered[:FEW]
    text += "\n" + formats.render_narrow_text(tabulate_history("cases", judged, shown))
    if len(ordered) > len(shown):
        text += f"{formats.plural(len(ordered) - len(shown), 'more case')} on the pages\n"
    return text


PAGE, JSON = "history.html", "history.json"
SCHEMA = 1
EXTENT = (420, 230)  #: of a picture, in CSS pixels
DRAWN = 60  #: cases, those with the largest steps first: a picture takes 10 kB
LINE: dict[str, Any] = {"color": INK, "linewidth": 1.6, "marker": "o", "markersize": 4.5, "markeredgewidth": 0}
STEP: dict[str, Any] = {"linestyle": "none", "markersize": 8, "markeredgewidth": 0}
LEGEND = document.Legend(
    [(Markup("▲"), "a step to slower"), (Markup("▼"), "a step to faster"), (Markup("✗"), "fails")]
)


def write_history(directory: Path, judged: JudgedHistory) -> Path:
    """Write all pages of a history; return that for people. Raises UsageError if they cannot be written."""
    return rendering.write_document(build_history_document(judged), directory / PAGE)


def build_history_document(judged: JudgedHistory) -> document.Document:
    """Build what the pages say: what each version changed, pictures of the cases that step, and every case."""
    header = judged.header
    ordered = order_cases(judged.cases)
    stepping = [history for history in ordered if history.found or history.failures]
    drawn = (stepping or ordered)[:DRAWN]
    left = len(stepping) - len(drawn)
    left_out = [f"{formats.plural(left, 'more case')} with steps not drawn"] if left > 0 else []
    names = [f"{history.case.words}, {history.case.place.words}" for history in drawn]
    pictures = [
        document.Picture(partial(draw_history, history, judged), "", describe_steps(history, judged), name)
        for name, history in zip(names, drawn, strict=True)
    ]
    again = [
        document.Commands(name, list(dict.fromkeys(history.rerun.values())))
        for name, history in zip(names, drawn, strict=True)
    ]
    judged_by = document.describe_judged(case.case.program for case in judged.cases)
    return document.Document(
        "history",
        (f"{header.old.label} → {header.new.label}", header.started_utc),
        document.Tone.GOOD if judged.status == 0 else document.Tone.BAD,
        format_headline(judged),
        format_history_facts(judged),
        [
            document.Section(
                "What each version changed", [document.Lines(document.Role.ITEM, format_steps(judged))]
            ),
            document.Section(
                "Cases over versions", [LEGEND, *pictures, document.Lines(document.Role.CAVEAT, left_out)]
            ),
            document.table_section(tabulate_history("Every case", judged, ordered)),
            document.table_section(tabulate_history("Controls without MPI", judged, judged.controls)),
            document.Section("Each case again", again),
        ],
        (f"{HOW_VALUES} {judged_by}", *HOW_TO_READ),
        build_history_json(judged),
    )


@apply_style
def draw_history(case: CaseHistory, judged: JudgedHistory) -> str:
    """Draw one ``<svg>`` element: the value of each version, with the proven steps."""
    labels = judged.releases
    figure, axes = small.draw_panel(f"{case.case.words}, {case.case.layout}", "", Y_LABELS[case.unit], EXTENT)
    scale = formats.SHOWN[case.unit][0]
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
    said = "; ".join(describe_steps(case, judged)) or "no proven step"
    return render_inline_svg(figure, f"{case.case.key}: {said}")


def build_history_json(judged: JudgedHistory) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "kind": "history",
        "sentence": format_headline(judged),
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
