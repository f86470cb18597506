"""The pages of a comparison: HTML with pictures, Markdown, and JSON for programs.

The picture of a routine at a place is a card. It has the curves of both sides over bytes, and the ratio of each
size with its interval (a forest plot).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from postprocess.base import files, formats
from postprocess.base.formats import SECONDS, TextTable, compute_slowdown, factor, size
from postprocess.base.records import is_same, is_same_page
from postprocess.base.strict_json import parse_json
from postprocess.features.compare import text
from postprocess.features.compare.cases import BAD, ComparedCase, ComparisonVerdict, group_cases
from postprocess.features.compare.data import SIDES, CasePlace
from postprocess.features.compare.decision import SignedDecision, tell_waivers
from postprocess.features.compare.facts import describe_fingerprint
from postprocess.features.compare.judge import Decision, JudgedComparison
from postprocess.features.compare.next_steps import NextStep
from postprocess.report import document, rendering
from postprocess.report.document import Block, Commands, Document, Drawing, Lines, Role, Section, Tone, Toned
from postprocess.report.panels import Panel, PanelLine, Point
from postprocess.report.plots import draw_line_keys, draw_lines

HTML, MARKDOWN, JSON = "comparison.html", "comparison.md", "comparison.json"
SCHEMA = 1
SETTINGS = (
    "Each command holds the new side against itself, with one setting as the old side has it. If that is "
    "faster, the setting explains the change."
)
HEAT_MAP_KEY = Lines(Role.REMARK, ["Above 1 is slower. Proven: ▲ slower, ▼ faster. ?: undecided."])
TONES = {
    Decision.SAFE: Tone.GOOD,
    Decision.UNDECIDED: Tone.FAIR,
    Decision.NOT_SAFE: Tone.BAD,
    Decision.VOID: Tone.BAD,
}
COLOURS = {"slower": Tone.BAD, "faster": Tone.GOOD}  #: of groups, by the tone of their verdict; others are fair
MOST_PRINTED, MOST_GROUPS = 150, 24  #: cases, and groups of them, that are printed
MOST_STEPS = 3  #: that stand open; the further ones are folded
#: Steps of the heat map: its darkest colour is for twice as slow, or as fast, and beyond.
STEPS, FULL = 5, math.log(2)
PAGES = "on the screen's page, in comparison.md and comparison.json."


def write_comparison_page(
    directory: Path, judged: JudgedComparison, decided: SignedDecision | None = None
) -> Path:
    """Write all pages of a comparison; return that for people. The JSON comes last: with it, all is there.

    :raises UsageError: if they cannot be written
    """
    return rendering.write_document(build_document(judged, decided), directory / HTML)


def render_comparison(judged: JudgedComparison, decided: SignedDecision | None = None) -> dict[str, str]:
    """Render all pages of a comparison, by the names of their files."""
    pages = rendering.render_pages(build_document(judged, decided), Path(HTML))
    return {path.name: text for path, text in pages.items()}


def find_changed_pages(folder: Path, judged: JudgedComparison, decided: SignedDecision) -> Iterator[str]:
    """Find the pages that do not say what the comparison and the decision do, a line each."""
    for name, ours in render_comparison(judged, decided).items():
        try:
            there = files.read_text(folder / name)
            same = is_same(parse_json(ours), parse_json(there)) if name == JSON else is_same_page(ours, there)
        except (OSError, ValueError) as error:
            yield f"{name}: cannot be read: {error}"
            continue
        if not same:
            yield f"{name}: is not what its passes and its decision say; sign it anew"


def build_document(judged: JudgedComparison, decided: SignedDecision | None = None) -> Document:
    """Build the document of a comparison."""
    header = judged.header
    again = [NextStep("Its routines alone, both sides in turn", judged.again)] if judged.again else []
    return Document(
        kind="unpaired comparison" if header.unpaired else "comparison",
        where=(f"{header.old.label} → {header.new.label}", header.started_utc),
        tone=TONES[judged.decision],
        headline=text.format_decision(judged),
        facts=text.format_comparison_facts(judged),
        sections=[
            Section("Decided", [Lines(Role.REMARK, format_decided(decided) if decided else [])]),
            *show_groups(judged),
            Section("To compare again what is slower", show_steps(again)),
            Section("To decide what is undecided", show_steps(judged.deciding)),
            Section("To try a setting of the old side", [*show_settings(judged)]),
            show_cards(judged),
            *show_differences(judged),
            Section("Ratios, new over old", [HEAT_MAP_KEY, *tabulate_heat_maps(judged)], printed=""),
            *show_cases(judged),
            Section("Afterwards", [Lines(Role.ITEM, list_effects(judged, signed=decided is not None))]),
        ],
        how_to_read=text.select_how_to_read(judged),
        data=build_judged_json(judged),
        styles=["comparison.css"],
    )


def show_groups(judged: JudgedComparison) -> Iterator[Section]:
    """Show cases in groups: as many as are printed, then the others."""
    groups = group_cases(judged.measured)
    marks = [Toned(str(group.verdict), COLOURS.get(group.verdict.tone, Tone.FAIR)) for group in groups]
    words = [group.words for group in groups]
    yield Section("In groups", [Lines(Role.ITEM, words[:MOST_GROUPS], marks[:MOST_GROUPS])])
    further = Lines(Role.ITEM, words[MOST_GROUPS:], marks[MOST_GROUPS:])
    left = f"{formats.plural(len(further.lines), 'further group')}: {PAGES}"
    yield Section("Further groups", [further], printed=left)


def show_steps(steps: Sequence[NextStep]) -> list[Block]:
    """Show what to do, with the commands that do it; the first few stand open."""
    return [
        Commands(each.words, [each.command] if each.command else [], folded=number >= MOST_STEPS)
        for number, each in enumerate(steps)
    ]


def show_settings(judged: JudgedComparison) -> Iterator[Block]:
    """Show the settings to try, and what that proves."""
    if judged.settings:
        yield Lines(Role.REMARK, [SETTINGS])
        yield from show_steps(judged.settings)


def show_cards(judged: JudgedComparison) -> Section:
    """Show a card of each routine at each place."""
    axis, cards = build_cards(judged.measured)
    header = judged.header
    names = (f"old: {header.old.label}", f"new: {header.new.label}")
    left = sum(not card.printed for card in cards)
    context = {
        "axis": axis,
        "cards": cards,
        "sides": draw_line_keys(names),
        "left": f"{formats.plural(left, 'further routine')}: on the screen's page." if left else "",
    }
    draw = partial(rendering.render_fragment, "comparison_cards.html.j2", context, curve=draw_lines)
    return Section("Old and new, routine by routine", [Drawing(draw)] if cards else [])


def show_differences(judged: JudgedComparison) -> Iterator[Section]:
    """Show in what both sides differ: as declared, as their MPIs tell, and by measurement."""
    differs = replace(text.tabulate_differences(judged), title="")
    silent = [f"No facts of the MPI on the {s} side: {why}" for s, why in judged.untold.items()]
    nothing = [] if differs.rows else ["Nothing: a control."]
    yield Section("What differs", [differs, Lines(Role.REMARK, [*nothing, *silent])])
    for table in text.tabulate_facts(judged.facts):
        yield replace(document.table_section(table), folded=True, printed="")
    yield document.table_section(text.tabulate_fingerprint(judged))


def show_cases(judged: JudgedComparison) -> Iterator[Section]:
    """Show all cases and controls, and what measures each again."""
    ordered = text.order_by_badness(judged.measured)
    left = f"{formats.plural(len(ordered), 'case')}: {PAGES}" if len(ordered) > MOST_PRINTED else None
    every = document.table_section(text.tabulate_cases("Every case", ordered), new_page=True)
    yield replace(every, printed=left)
    controls = document.table_section(text.tabulate_cases("Controls without MPI", judged.controls))
    yield replace(controls, printed=left and "")
    yield Section("Each case again", [_show_rerun(case) for case in ordered], printed="")


def list_effects(judged: JudgedComparison, signed: bool = False) -> list[str]:
    """List what becomes of references, and the commands that make new ones and sign the decision."""
    steps = [*text.propose_references(judged.effects), *([] if signed else text.propose_signing(judged))]
    return text.format_effects(judged.effects) + [f"{step.words}: {step.command}" for step in steps]


def _show_rerun(each: ComparedCase) -> Commands:
    """Show the commands that measure just this case, of each side."""
    case = each.case
    what = f"{case.words} {case.layout} {case.program}: {each.verdict}"
    return Commands(f"{what}: {each.reason}" if each.reason else what, list(dict.fromkeys(each.rerun.values())))


def format_decided(decided: SignedDecision) -> list[str]:
    """Format what people have decided, and what they waived."""
    said = f"{decided.decision} at {decided.decided_utc}"
    return [f"{said}: {decided.reason}" if decided.reason else said, *tell_waivers(decided)]


def tabulate_heat_maps(judged: JudgedComparison) -> list[TextTable]:
    """Tabulate the ratios of each place: routines by sizes, shaded by how far they are from 1."""
    maps = []
    for place in sorted({case.case.place for case in judged.measured}):
        own = [case for case in judged.measured if case.case.place == place]
        sizes = sorted({each.case.bytes for each in own})
        found = {(each.case.label, each.case.bytes): shade_ratio(each) for each in own}
        rows = tuple(
            (label, *(found.get((label, bytes_), "") for bytes_ in sizes))
            for label in dict.fromkeys(each.case.label for each in own)
        )
        columns = tuple(size(each) if each else "–" for each in sizes)
        maps.append(TextTable(place.words, ("routine",), columns, rows))
    return maps


def shade_ratio(each: ComparedCase) -> Toned:
    """Return the ratio of a case, with a sign where it is proven slower or faster; without one its verdict."""
    if each.ratio is None:
        return Toned(str(each.verdict), Tone.BAD if each.verdict in BAD else Tone.PLAIN)
    mark = each.verdict.mark
    if each.verdict == ComparisonVerdict.UNDECIDED:
        return Toned(f"{each.ratio:.2f}{mark}", "open")
    step = round(max(-1.0, min(1.0, math.log(each.ratio) / FULL)) * STEPS)
    shade = f"{'slow' if step > 0 else 'fast'}{abs(step)}" if step else ""
    return Toned(f"{each.ratio:.2f}{mark}", f"{shade} proven" if mark else shade)


def build_judged_json(judged: JudgedComparison) -> dict[str, Any]:
    """Build the comparison for programs. A limit that is infinite is left out."""
    return {
        "schema": SCHEMA,
        "kind": "comparison",
        "paired": not judged.header.unpaired,
        "decision": str(judged.decision),
        "sentence": text.format_decision(judged),
        "skipped": judged.skipped,
        "not_compared": [
            {"side": side, "program": program, "reason": reason, "cases": number}
            for (side, program, reason), number in judged.not_compared.items()
        ],
        "again": judged.again,
        "deciding": [asdict(step) for step in judged.deciding],
        "settings_to_try": [asdict(setting) for setting in judged.settings],
        "exit_status": judged.decision.status,
        "counts": judged.counts,
        "header": asdict(judged.header),
        "facts": [asdict(fact) for fact in judged.facts],
        "untold": dict(judged.untold),
        "fingerprint": describe_fingerprint(judged.fingerprints),
        "explanation": judged.explanation,
        **({"shared_program": judged.shared_program} if judged.shared_program else {}),
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


DRAWN = 60  #: curves of a page, those of the worst routines: a curve takes 10 kB
PRINTED = 16  #: cards of a printed page
#: Ends of the axis of ratios that are never passed: what lies beyond is drawn at the edge
NARROWEST, WIDEST = math.log(1.1), math.log(8.0)
#: Ratios that may be written at the axis
TICKS = (1 / 8, 1 / 4, 1 / 2, 1 / 1.5, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 4.0, 8.0)
APART = 0.2  #: of two labels, as a share of the axis


@dataclass(frozen=True)
class RatioAxis:
    """The logarithmic axis that all intervals of a page share."""

    low: float  #: ln of its left end, below 0
    high: float  #: ln of its right end, above 0

    def locate(self, ratio: float) -> float:
        """Return where a ratio lies, in per cent of the width; at an edge if it is beyond."""
        share = (math.log(ratio) - self.low) / (self.high - self.low)
        return round(100 * min(max(share, 0.02), 0.98), 1)

    @property
    def one(self) -> float:
        """Where nothing changed."""
        return self.locate(1.0)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Ratios that are written, each with its place: 1, and outwards those for which there is room."""
        room = 0.03 * (self.high - self.low)
        inside = [tick for tick in TICKS if self.low + room < math.log(tick) < self.high - room]
        kept = [1.0]
        for tick in sorted(inside, key=lambda ratio: -abs(math.log(ratio))):
            if all(abs(self.locate(tick) - self.locate(k)) >= 100 * APART for k in kept):
                kept.append(tick)
        return [(self.locate(value), f"{value:.3g}") for value in sorted(kept)]


@dataclass(frozen=True)
class ForestRow:
    """The ratio of a case with its interval, in places on the axis in per cent."""

    name: str  #: the size
    verdict: str
    tone: str
    told: str  #: the ratio with its interval, or why there is none
    title: str
    center: float | None
    ends: tuple[float, float] | None
    margin: tuple[float, float]
    pairs: tuple[float, ...] = ()  #: of each pair, where the medians contradict them
    settled: bool = True  #: whether the center is that of a look, and not of the pairs until now


@dataclass(frozen=True)
class RoutineCard:
    place: str
    title: str
    curve: Panel | None
    rows: tuple[ForestRow, ...]
    printed: bool


def build_cards(cases: Sequence[ComparedCase]) -> tuple[RatioAxis, list[RoutineCard]]:
    """Build a card of each routine at each place, those with the worst cases first at their place."""
    found: dict[tuple[CasePlace, str], list[ComparedCase]] = {}
    for case in text.order_by_badness(cases):
        found.setdefault((case.case.place, case.case.label), []).append(case)
    axis = build_axis(cases)
    drawn = list(found)[:DRAWN]
    printed = set(list(found)[:PRINTED])
    cards = [
        RoutineCard(
            place.words,
            label,
            build_curve(label, own) if (place, label) in drawn else None,
            tuple(build_row(axis, case) for case in sorted(own, key=lambda e: e.case.bytes)),
            (place, label) in printed,
        )
        for (place, label), own in sorted(found.items(), key=lambda item: item[0][0])
    ]
    return axis, cards


def build_axis(cases: Sequence[ComparedCase]) -> RatioAxis:
    ratios = [math.log(ratio) for case in cases if (ratio := find_ratio(case))]
    limits = sorted(math.log(limit) for case in cases for limit in case.limits or () if limit > 0)
    cut = len(limits) // 20
    inner = limits[cut : len(limits) - cut]
    low, high = min([*ratios, *inner, -NARROWEST]), max([*ratios, *inner, NARROWEST])
    room = 0.06 * (high - low)
    return RatioAxis(max(low - room, -WIDEST), min(high + room, WIDEST))


def find_ratio(each: ComparedCase) -> float | None:
    """Find the ratio of a case; before the first look that of the medians, None without any."""
    if each.ratio is None and each.old and each.new and each.pairs:
        return compute_slowdown(each.new, each.old, each.unit)
    return each.ratio


def build_row(axis: RatioAxis, each: ComparedCase) -> ForestRow:
    ratio = find_ratio(each)
    margin = 1 + each.margin
    return ForestRow(
        name=size(each.case.bytes) if each.case.bytes else formats.DASH,
        verdict=str(each.verdict),
        tone=each.verdict.tone,
        told=tell_row(each),
        title=f"{each.case.words}: {each.verdict}, {text.format_interval(each)}",
        center=axis.locate(ratio) if ratio and not each.unclear else None,
        ends=(axis.locate(each.limits[0]), axis.locate(each.limits[1])) if each.limits else None,
        margin=(axis.locate(1 / margin), axis.locate(margin)),
        pairs=tuple(map(axis.locate, each.contradiction.pairs)) if each.contradiction else (),
        settled=each.ratio is not None,
    )


def tell_row(each: ComparedCase) -> str:
    """Tell the ratio of a case with its interval; without one its verdict."""
    if each.ratio is None:
        few = each.verdict == ComparisonVerdict.UNDECIDED and each.pairs
        return formats.plural(each.pairs, "pair") if few else str(each.verdict)
    if each.unclear:
        return each.unclear
    interval = f" ({factor(each.limits[0])}–{factor(each.limits[1])})" if each.limits else ""
    return f"{factor(each.ratio)}{interval}"


def build_curve(label: str, cases: Sequence[ComparedCase]) -> Panel | None:
    """Build the curves of both sides over bytes, shaded by what launches scatter; None of a single size."""
    own = sorted((case for case in cases if case.old or case.new), key=lambda each: each.case.bytes)
    if len({each.case.bytes for each in own}) < 2:
        return None
    unit = next((case.unit for case in own), SECONDS)
    lines = tuple(
        PanelLine(name, number, tuple(build_point(case, number) for case in own))
        for number, name in enumerate(SIDES)
    )
    return Panel(label, "bytes", lines, unit)


def build_point(each: ComparedCase, side: int) -> Point:
    """Build the point of a side: its median, and one spread to either side."""
    value = (each.old, each.new)[side]
    band = None
    if value is not None and each.spreads:
        apart = math.exp(each.spreads[side])
        band = value / apart, value * apart
    return Point(each.case.bytes, value, band, value is None and side == 1)
