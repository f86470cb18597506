"""What people read of a history: a line for each version, and each case over the versions."""

from __future__ import annotations

from collections.abc import Sequence

from postprocess.base.formats import DASH, factor, first_of, format_signed, number, plural, quantity
from postprocess.base.text_table import TextTable, render_text
from postprocess.features.compare.cases import describe_layout
from postprocess.features.compare.history.steps import CaseHistory, JudgedHistory
from postprocess.features.compare.text import format_controls
from postprocess.report.judged_value import JUDGED
from postprocess.stats.comparison.paired_verdicts import ERROR, PairedVerdict

FEW = 40  #: cases that a terminal shows
NAMED = 4
SIGNS = {PairedVerdict.SLOWER: "▲", PairedVerdict.FASTER: "▼"}
FAILED = "✗"
HOW_TO_READ = (
    "Each round launches every version once, in a drawn order. A value is the median of its launches. "
    f"{JUDGED}",
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
    what = f"{plural(len(judged.cases), 'case')} over {plural(len(labels), 'version')}"
    what += f", {labels[0]} to {labels[-1]}"
    if judged.moved:
        moved = first_of([each.case.label for each in judged.moved], NAMED)
        return f"Void: {moved} changed, and no MPI has a part in it: {what}"
    steps = [step for case in judged.cases for step in case.found]
    slower = sum(each.verdict == PairedVerdict.SLOWER for each in steps)
    failing = sum(bool(case.failures) for case in judged.cases)
    words = [f"{plural(slower, 'step')} to slower", f"{len(steps) - slower} to faster"]
    words += [f"{plural(failing, 'case')} failing with some version"] if failing else []
    return f"{what}: {', '.join(words)}"


def format_history_facts(judged: JudgedHistory) -> list[str]:
    """Format what stands below the headline."""
    header = judged.header
    left_out = [f"left out: {label}: {why}" for label, why in header.left_out.items()]
    return [
        f"{plural(judged.rounds, 'round')} of all versions, in an order drawn with seed {header.seed}",
        format_controls(len(judged.controls), len(judged.moved)),
        *left_out,
    ]


def format_steps(judged: JudgedHistory) -> list[str]:
    """Format what each version changed, in a line each."""
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
        return DASH
    return f"{number(each.value, case.unit)}{SIGNS[step.verdict] if step else ''}"


def describe_place(case: CaseHistory) -> str:
    """Describe where and how a case was measured."""
    told = case.case
    return f"{told.program}, {describe_layout(told.layout)}, {told.variant}, {told.partition}"


def rank_case(case: CaseHistory) -> tuple[bool, float, str]:
    """Rank a case: failures first, then by its largest step."""
    largest = max((abs((step.ratio or 1.0) - 1) for step in case.found), default=0.0)
    return not case.failures, -largest, case.case.key


def order_cases(cases: Sequence[CaseHistory]) -> list[CaseHistory]:
    """Order cases: those that fail, then those that step most, then the others."""
    return sorted(cases, key=rank_case)


def tabulate_history(title: str, judged: JudgedHistory, cases: Sequence[CaseHistory]) -> TextTable:
    """Tabulate cases, a column for each version."""
    versions = [version.label.rpartition("@")[2] for version in judged.header.versions]
    rows = tuple(
        (
            history.case.words,
            history.case.where,
            "us" if history.unit == "s" else history.unit,
            *(format_cell(history, n) for n in range(len(versions))),
        )
        for history in cases
    )
    return TextTable(title, ("case", "where", "unit"), tuple(versions), rows)


def describe_steps(case: CaseHistory, judged: JudgedHistory) -> list[str]:
    """Describe the steps of a case, in a line each."""
    lines = []
    for step in case.found:
        label = judged.header.versions[step.after].label
        old, new = (case.versions[n].value for n in (step.before, step.after))
        ends = [factor(limit) for limit in step.limits] if step.limits else []
        limits = f", {' to '.join(dict.fromkeys(ends))} times" if ends else ""
        change = format_signed(step.ratio - 1) if step.ratio else DASH
        lines.append(
            f"{label}: {step.verdict}, {change} ({quantity(old, case.unit)} to "
            f"{quantity(new, case.unit)}{limits})"
        )
    return lines


def format_history_text(judged: JudgedHistory) -> str:
    """Format a history for a terminal."""
    lines = ["", format_headline(judged), *(f"  {each}" for each in format_history_facts(judged)), ""]
    text = "".join(f"{line}\n" for line in [*lines, *format_steps(judged)])
    ordered = order_cases(judged.cases)
    shown = [history for history in ordered if history.found or history.failures][:FEW] or ordered[:FEW]
    text += "\n" + render_text(tabulate_history("cases", judged, shown))
    if len(ordered) > len(shown):
        text += f"{plural(len(ordered) - len(shown), 'more case')} on the pages\n"
    return text
