"""The pages of a comparison: HTML with a heat map, Markdown, and JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from postprocess.base import files
from postprocess.base.documents.strict_json import parse_json
from postprocess.base.files import write_output
from postprocess.base.formats import size
from postprocess.base.same_values import is_same, is_same_page
from postprocess.base.text_table import TextTable
from postprocess.features.compare import text
from postprocess.features.compare.cases import (
    BAD,
    ComparedCase,
    ComparisonVerdict,
    describe_layout,
    group_cases,
    place_of,
)
from postprocess.features.compare.decision import SignedDecision, tell_waivers
from postprocess.features.compare.differences.facts import SHOWN_WHOLE
from postprocess.features.compare.differences.fingerprint import describe_fingerprint
from postprocess.features.compare.judge import Decision, JudgedComparison
from postprocess.features.compare.pictures import build_cards
from postprocess.report import templating
from postprocess.report.legend import draw_line_keys
from postprocess.report.plots import draw_lines

HTML, MARKDOWN, JSON = "comparison.html", "comparison.md", "comparison.json"
SCHEMA = 1
TONES = {Decision.SAFE: "good", Decision.UNDECIDED: "fair", Decision.NOT_SAFE: "bad", Decision.VOID: "bad"}
PILLS = {"slower": "bad", "faster": "good"}  #: of groups, by the tone of their verdict
FOLD = 12  #: routines from which on a heat map gives an overview
MOST_PRINTED, MOST_GROUPS = 150, 24  #: cases, and groups of them, that are printed
#: Steps of the heat map: its darkest colour is for twice as slow, or as fast, and beyond.
STEPS, FULL = 5, math.log(2)


@dataclass(frozen=True)
class HeatCell:
    """A cell of the heat map."""

    text: str
    tone: str  #: class of its colour
    title: str
    mark: str = ""  #: a sign where it is proven slower or faster


@dataclass(frozen=True)
class RatioHeatMap:
    """Ratios at one place: routines by sizes."""

    title: str
    sizes: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell | None, ...]], ...]


def write_comparison_page(
    directory: Path, judged: JudgedComparison, decided: SignedDecision | None = None
) -> Path:
    """Write all pages of a comparison; return that for people. The JSON comes last: with it, all is there.

    :param decided: what people have decided on it
    :raises UsageError: if they cannot be written
    """
    pages = render_comparison(judged, decided)
    told = pages.pop(JSON)
    templating.write_pages({directory / name: text for name, text in pages.items()})
    write_output(directory / JSON, told)
    return directory / HTML


def render_comparison(judged: JudgedComparison, decided: SignedDecision | None = None) -> dict[str, str]:
    """Render all pages of a comparison, by the names of the files."""
    context = {**build_comparison_context(judged), "decided": format_decided(decided) if decided else []}
    names = (f"old: {judged.header.old.label}", f"new: {judged.header.new.label}")
    legend = {"sides": draw_line_keys(names)}
    return {
        HTML: templating.render_html_template("compare.html.j2", context | legend, curve=draw_lines),
        MARKDOWN: templating.render_markdown_template("compare.md.j2", context),
        JSON: json.dumps(build_judged_json(judged), indent=1, allow_nan=False) + "\n",
    }


def find_changed_pages(folder: Path, judged: JudgedComparison, decided: SignedDecision) -> Iterator[str]:
    """Find the pages that do not say what the comparison and the decision do, a line each."""
    for name, ours in render_comparison(judged, decided).items():
        try:
            there = files.read_text(folder / name)
            same = is_same_text(name, ours, there)
        except (OSError, ValueError) as error:
            yield f"{name}: cannot be read: {error}"
            continue
        if not same:
            yield f"{name}: is not what its passes and its decision say; sign it anew"


def is_same_text(name: str, ours: str, theirs: str) -> bool:
    """Return whether two files of a name say the same. Raises ValueError for JSON that is none."""
    if name == JSON:
        return is_same(parse_json(ours), parse_json(theirs))
    return is_same_page(ours, theirs)


def build_comparison_context(judged: JudgedComparison) -> dict[str, Any]:
    """Build what the templates print."""
    ordered = text.order_by_badness(judged.measured)
    axis, cards = build_cards(judged.measured)
    return {
        "tone": TONES[judged.decision],
        "headline": text.format_decision(judged),
        "header": judged.header,
        "facts": text.format_comparison_facts(judged),
        "declared": text.list_declared_differences(judged),
        "differs": text.tabulate_differences(judged),
        "told": [each for each in judged.facts if each.kind in SHOWN_WHOLE],
        "fingerprint": text.tabulate_fingerprint(judged),
        "told_tables": text.tabulate_facts(judged.facts),
        "untold": judged.untold,
        "afterwards": text.format_afterwards(judged),
        "outdated": judged.effects.reasons if judged.effects else {},
        "groups": group_cases(judged.measured),
        "pills": PILLS,
        "deciding": judged.deciding,
        "settings": judged.settings,
        "axis": axis,
        "cards": cards,
        "maps": build_ratio_heat_maps(judged.measured),
        "map_tables": tabulate_heat_maps(judged),
        "every": text.tabulate_cases("Every case", ordered),
        "controls": text.tabulate_cases("Controls without MPI", judged.controls),
        "cases": ordered,
        "tones": {str(verdict): verdict.tone for verdict in ComparisonVerdict},
        "fold": FOLD,
        "most_printed": MOST_PRINTED,
        "most_groups": MOST_GROUPS,
        "how_to_read": text.select_how_to_read(judged),
    }


def format_decided(decided: SignedDecision) -> list[str]:
    """Format what people have decided, and what they waived."""
    said = f"{decided.decision} at {decided.decided_utc}"
    return [f"{said}: {decided.reason}" if decided.reason else said, *tell_waivers(decided)]


def build_ratio_heat_maps(cases: Sequence[ComparedCase]) -> list[RatioHeatMap]:
    """Build a heat map of each place, routine by size."""
    maps = []
    for place in sorted({place_of(case) for case in cases}):
        own = [case for case in cases if place_of(case) == place]
        sizes = sorted({each.case.bytes for each in own})
        found = {(each.case.label, each.case.bytes): each for each in own}
        rows = tuple(
            (label, tuple(build_cell(found.get((label, bytes_))) for bytes_ in sizes))
            for label in dict.fromkeys(each.case.label for each in own)
        )
        partition, program, variant, layout = place
        title = f"{program}, {describe_layout(layout)}, {variant}, {partition}"
        maps.append(RatioHeatMap(title, tuple(size(each) if each else DASH for each in sizes), rows))
    return maps


def tabulate_heat_maps(judged: JudgedComparison) -> list[TextTable]:
    """Tabulate the ratios of each place, routine by size, for where there are no colours."""
    return [
        TextTable(
            map_.title,
            ("routine",),
            map_.sizes,
            tuple((label, *(tell_cell(cell) for cell in cells)) for label, cells in map_.rows),
        )
        for map_ in build_ratio_heat_maps(judged.measured)
    ]


def tell_cell(cell: HeatCell | None) -> str:
    """Tell a cell in words: with a sign where it is proven slower or faster."""
    return f"{cell.text}{cell.mark}" if cell else ""


DASH = "–"


def build_cell(each: ComparedCase | None) -> HeatCell | None:
    """Build the cell of a case; None where there is no case."""
    if each is None:
        return None
    title = f"{each.case.words}: {each.verdict}, {text.format_interval(each)}"
    if each.ratio is None:
        return HeatCell(str(each.verdict), "failed" if each.verdict in BAD else "none", title)
    step = round(max(-1.0, min(1.0, math.log(each.ratio) / FULL)) * STEPS)
    mark = each.verdict.mark
    sign = mark if each.verdict == ComparisonVerdict.UNDECIDED else ""
    tone = f"{'slow' if step > 0 else 'fast'}{abs(step)}" if step else "even"
    tone += " proven" if mark else ""
    tone = "open" if sign else tone
    return HeatCell(f"{each.ratio:.2f}{sign}", tone, title, "" if sign else mark)


def build_judged_json(judged: JudgedComparison) -> dict[str, Any]:
    """Build the comparison for programs. A limit that is infinite is left out."""
    return {
        "schema": SCHEMA,
        "kind": "comparison",
        "paired": not judged.header.unpaired,
        "decision": str(judged.decision),
        "sentence": text.format_decision(judged),
        "skipped": judged.skipped,
        "deciding": [asdict(step) for step in judged.deciding],
        "settings_to_try": [asdict(setting) for setting in judged.settings],
        "exit_status": judged.decision.status,
        "counts": judged.counts,
        "header": asdict(judged.header),
        "facts": [asdict(each) for each in judged.facts],
        "untold": dict(judged.untold),
        "fingerprint": describe_fingerprint(judged.fingerprints),
        "explanation": judged.explanation,
        "references": asdict(judged.effects) if judged.effects else None,
        "looks": list(judged.looks),
        "pairs": judged.pairs,
        "seconds": round(judged.seconds, 1),
        "unchanged": asdict(judged.unchanged),
        "groups": [
            {"verdict": str(group.verdict), "words": group.words, "keys": [c.case.key for c in group.cases]}
            for group in group_cases(judged.cases)
        ],
        "how_to_read": list(text.select_how_to_read(judged)),
        "cases": [describe_entry(case) for case in judged.cases],
        "controls": [describe_entry(control) for control in judged.controls],
    }


def describe_entry(each: ComparedCase) -> dict[str, Any]:
    """Describe a case for programs."""
    return {
        "key": each.case.key,
        **each.case._asdict(),
        **{name: value for name, value in asdict(each).items() if name not in ("case", "verdict")},
        "verdict": str(each.verdict),
    }
