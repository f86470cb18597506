"""What people read of a comparison: the decision in one sentence, groups, the worst cases, every case."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from postprocess.base import formats
from postprocess.base.formats import INDENT, PIPE_COLUMNS, wrap, wrap_all
from postprocess.base.sanitize import quote_words, sanitize_line
from postprocess.features.compare.cases import APART, BAD, SHOWN, ComparedCase, ComparisonVerdict, group_cases
from postprocess.features.compare.data import NEW, OLD, ReferenceEffects
from postprocess.features.compare.facts import (
    KINDS,
    MPI,
    SHOWN_WHOLE,
    FactDifference,
    rank_verbosity,
    tell_fingerprint,
)
from postprocess.features.compare.judge import Decision, JudgedComparison, select_moved
from postprocess.features.compare.next_steps import NextStep
from postprocess.model.options import BYTES
from postprocess.report.document import Toned, describe_judged
from postprocess.stats.paired_verdicts import ERROR

MOST_CASES = 25  #: that a terminal names, the worst first
TRIED = 3  #: settings that a terminal proposes
REASONS = 3  #: why cases were skipped, or references do not hold
FEW_MAPS = 4  #: tables of ratios that a terminal shows
PAGE = "comparison.html"
#: What people do with a decision, and the options of the command that does it
SIGNED = {
    Decision.SAFE: ("sign that the new side may be used", "--accept --key FILE"),
    Decision.NOT_SAFE: (
        "sign that it may not; or accept it with waivers (./plumbline dossier sign --help)",
        "--reject --reason TEXT --key FILE",
    ),
}
LIBRARY = "MPI library"  #: among what a site declares
HOW_CALLED = (
    f"Of the cases called slower (or faster), {ERROR:.0%} at most are false on average (Benjamini and Hochberg)"
)
HOW_MISSING = (
    "broken, only old, failed: fails or is missing on the new side, on purpose or not; mended, only new: "
    "the other way round."
)
HOW_VALUES = "old, new: median of the launches that count, ± their spread."
HOW_MODES = (
    "two modes, contradictory: the medians of both sides say another thing than the pairs, "
    "by more than the margin."
)
HOW_TO_READ = (
    "Ratio: slowdown of the new side (Hodges-Lehmann over pairs of launches taken in turn). The interval "
    "covers the true one in at least 90% of cases.",
    "same: proven, the whole interval is within the margin. not slower: proven no worse than the margin. "
    "slower, faster: proven different, by half the margin or more. undecided: none of these is proven. "
    "4x2 is 4 processes, 2 on each node.",
    f"Safe means that every case that is compared is proven not worse than its margin. If one is in truth, "
    f"that happens in {ERROR:.0%} of comparisons at most.",
    f"{HOW_CALLED}.",
    HOW_MODES,
    f"{HOW_MISSING} None of them is ever left out. not compared: of a program that one side cannot have, known "
    "before anything was tried.",
)


HOW_TO_READ_UNPAIRED = (
    "The sides are stored sessions, not taken in turn: what else changed on the machine in between is in every "
    "ratio, too. Nothing here is ever called the same, and no comparison of this kind safe.",
    "Ratio: slowdown of the new side, by session means. The interval covers the true one in 90% of cases if "
    "the machine varies between sessions as before.",
    "slower, faster: beyond what two sessions differ by, by half the margin or more. undecided: all else. "
    "4x2 is 4 processes, 2 on each node.",
    f"{HOW_CALLED}, unless something slowed one side as a whole.",
    f"{HOW_MISSING} ./plumbline compare OLD NEW measures in turn, and can prove a case the same.",
)


def select_how_to_read(judged: JudgedComparison) -> tuple[str, ...]:
    values = f"{HOW_VALUES} {describe_judged(case.case.program for case in judged.measured)}"
    return (values, *(HOW_TO_READ_UNPAIRED if judged.header.unpaired else HOW_TO_READ))


def format_decision(judged: JudgedComparison) -> str:
    """Format the decision in one sentence."""
    unpaired, counts = judged.header.unpaired, judged.counts
    old, new = judged.header.old.label, judged.header.new.label
    cases = f"{formats.plural(len(judged.measured), 'case')} measured"
    of = f"of {cases} from {old} to {new}"
    if judged.decision == Decision.VOID:
        moved = formats.first_of([case.case.label for case in select_moved(judged.controls)], 3)
        void = f"{moved} changed, and no MPI has a part in it"
        if unpaired:
            return f"Unpaired and void: {void}"
        return f"Void: {void}: the machine differed between the sides"
    if judged.decision == Decision.NOT_SAFE:
        bad = ", ".join(f"{counts[each]} {each}" for each in map(str, BAD) if each in counts)
        return f"{'Unpaired, not' if unpaired else 'Not'} safe: {of}, {bad}"
    if unpaired:
        return f"Unpaired, so never proven safe: {of}, none is shown to be slower"
    if judged.decision == Decision.SAFE:
        margin = format_margins(judged.header.margins)
        return f"Safe: going from {old} to {new} makes none of {cases} slower by more than {margin}"
    left = counts.get(ComparisonVerdict.UNDECIDED, 0)
    return f"Undecided: {left} {of} {'needs' if left == 1 else 'need'} more pairs"


def format_margins(margins: Sequence[float]) -> str:
    """Format the margins: one if all classes of sizes have the same."""
    shown = [formats.format_percent(margin) for margin in margins]
    return shown[0] if len(set(shown)) == 1 else f"{shown[0]} (small), {shown[1]}, {shown[2]} (large)"


def format_verdict_counts(judged: JudgedComparison) -> str:
    counts = judged.counts.items()
    found = [f"{n} {verdict}" for verdict, n in counts if verdict not in APART]
    return ", ".join(found) or "no case"


def format_skipped(judged: JudgedComparison) -> list[str]:
    """Format what both sides skip on purpose, in a line; none if they skip nothing."""
    if not judged.skipped:
        return []
    reasons = [f"{n} {reason or 'without a reason'}" for reason, n in judged.skipped.items()]
    number = formats.plural(sum(judged.skipped.values()), "further case")
    return [f"{number} skipped on both sides: {formats.first_of(reasons, REASONS)}"]


def format_not_compared(judged: JudgedComparison) -> Iterator[str]:
    """Format what one side cannot have, a line for each program and reason."""
    for (side, program, reason), number in judged.not_compared.items():
        label = judged.header.sides[side].label
        cases = formats.plural(number, "further case")
        yield f"{cases} of {program} not compared, as the {side} side ({label}) cannot have it: {reason}"


def format_unchanged(judged: JudgedComparison) -> str:
    """Format what the rules say of pairs that are unchanged."""
    control = judged.unchanged
    if not control.cases:
        return "one side against itself: too few launches to compare"
    alike = control.verdicts.get(ComparisonVerdict.SAME, 0) / control.cases
    return (
        f"one side against itself: of {formats.plural(control.cases, 'case')}, the same rules called "
        f"{control.accused} slower and {control.verdicts.get(ComparisonVerdict.FASTER, 0)} faster, and proved "
        f"{formats.format_percent(alike)} the same"
    )


def format_comparison_facts(judged: JudgedComparison) -> list[str]:
    """Format what stands below the decision."""
    header = judged.header
    margin = f"margin {format_margins(header.margins)}"
    lines = [format_verdict_counts(judged), *format_not_compared(judged), *format_skipped(judged)]
    if header.unpaired:
        lines.append(
            "unpaired: the sides were not measured in turn; a difference counts only beyond what two "
            f"sessions differ by anyway; {margin}"
        )
    else:
        looks = ", ".join(map(str, judged.looks)) or "none yet"
        lines.append(
            f"up to {formats.plural(judged.pairs, 'pair')} of launches count for a case; blocks "
            f"ABBA or BAAB drawn with seed {header.seed}; looks after {looks}; {margin}"
        )
        lines += filter(None, [judged.explanation, judged.shared_program])
        lines.append(format_unchanged(judged))
    moved = [f"{case.case.label} by {format_change(case)}" for case in select_moved(judged.controls)]
    return [*lines, format_controls(len(judged.controls), moved)]


def format_controls(controls: int, moved: Sequence[str]) -> str:
    """Format what the controls say of the machine, and what they are.

    :param moved: those that changed, and by how much
    """
    what = "controls, which call no MPI"
    if not controls:
        return f"{what}: none was measured, so a change of the machine would not be noticed"
    if not moved:
        return f"{what}: none of {controls} changed, so nothing says that the machine did"
    named = formats.first_of(moved, 3)
    blame = "so no other change of time can be blamed on the MPI"
    return f"{what}: {len(moved)} of {controls} changed, {named}, {blame}"


def format_effects(effects: ReferenceEffects | None) -> list[str]:
    """Format what becomes of references with the new side, in a few lines; none if that was not looked up."""
    if effects is None:
        return []
    gone, all_ = len(effects.outdated), len(effects.outdated) + effects.holding
    if not all_:
        return [f"references: {effects.environment} has none of these cases"]
    return [
        f"references of {effects.environment}: {gone} of {all_} become not-comparable with the new side",
        *(
            f"{formats.plural(len(keys), 'reference')}: {reason}: {formats.first_of(keys, 2)}"
            for reason, keys in list(effects.reasons.items())[:REASONS]
        ),
    ]


def propose_references(effects: ReferenceEffects | None, directory: Path | None = None) -> list[NextStep]:
    """Propose to make references of what the new side measured, where it has none.

    :param directory: of the comparison; None in its pages, which say the same wherever they lie
    """
    if effects is None or not effects.without:
        return []
    cases = f"{formats.plural(effects.without, 'case')} of the new side without a comparable reference"
    words = ["./plumbline", "references", "propose", "--compare", directory or "DIR"]
    return [NextStep(cases, quote_words(words))]


def propose_signing(judged: JudgedComparison, directory: Path | None = None) -> list[NextStep]:
    """Propose to sign what was decided of two different sides as they are; parameters as above."""
    header = judged.header
    planted = any(side.plant for side in (header.old, header.new))
    if header.unpaired or planted or header.control or judged.decision not in SIGNED:
        return []
    why, options = SIGNED[judged.decision]
    words = ["./plumbline", "dossier", "sign", directory or "DIR"]
    return [NextStep(why, f"{quote_words(words)} {options}")]


def tabulate_facts(facts: Sequence[FactDifference]) -> list[formats.TextTable]:
    """Tabulate in what MPIs differ: a table each for libraries, settings, and variables of each verbosity."""
    tables = []
    for kind in KINDS:
        own = [difference for difference in facts if difference.kind == kind and kind not in SHOWN_WHOLE]
        for verbosity in sorted({difference.verbosity for difference in own}, key=rank_verbosity):
            some = sorted(
                (difference for difference in own if difference.verbosity == verbosity),
                key=lambda e: (e.old is None, e.new is None, e.name),
            )
            rows = tuple((difference.name, *difference.texts) for difference in some)
            what = f"{kind}, {verbosity}" if verbosity else kind
            title = f"{what}: {len(rows)} {'differs' if len(rows) == 1 else 'differ'}"
            tables.append(formats.TextTable(title, ("name",), ("old", "new"), rows))
    return tables


def tabulate_fingerprint(judged: JudgedComparison) -> formats.TextTable:
    rows = tuple(row for pair in judged.fingerprints for row in tell_fingerprint(pair))
    launches = min(
        (fingerprint.launches for pair in judged.fingerprints for fingerprint in (pair.old, pair.new)),
        default=0,
    )
    note = (
        f"Ping-pong with warm buffers: median of {formats.plural(launches, 'separate launch', 'es')}. A switch "
        "is a step in time over size, as a protocol change makes.",
    )
    return formats.TextTable("Fingerprint by measurement", ("",), ("old", "new"), rows, note)


def order_by_badness(cases: Sequence[ComparedCase]) -> list[ComparedCase]:
    """Order cases: those that matter most first, and of one verdict the largest ratio."""
    rank = {verdict: number for number, verdict in enumerate(ComparisonVerdict)}
    return sorted(cases, key=lambda each: (rank[each.verdict], -(each.ratio or 0.0), each.case))


def list_declared_differences(judged: JudgedComparison) -> list[tuple[str, str, str]]:
    """List what the declarations of both sides differ in, without what the MPIs tell themselves."""
    told = any(fact.kind == MPI for fact in judged.facts)
    return [difference for difference in judged.header.differences if not (told and difference[0] == LIBRARY)]


def tabulate_differences(judged: JudgedComparison) -> formats.TextTable:
    """Tabulate in what the declarations of both sides, and the MPIs themselves, differ."""
    told = [(fact.name, *fact.texts) for fact in judged.facts if fact.kind in SHOWN_WHOLE]
    rows = (*list_declared_differences(judged), *told)
    return formats.TextTable("What differs", ("what",), ("old", "new"), rows)


def format_value(each: ComparedCase, new: bool) -> str:
    """Format the median of a side with what its launches scatter by."""
    value = each.new if new else each.old
    if value is None:
        return formats.DASH
    spread = f" ± {formats.format_percent(each.spreads[new])}" if each.spreads else ""
    return f"{formats.quantity(value, each.unit)}{spread}"


def format_interval(each: ComparedCase) -> str:
    return (
        f"{formats.factor(each.limits[0])} to {formats.factor(each.limits[1])}" if each.limits else formats.DASH
    )


def format_change(each: ComparedCase) -> str:
    """Format by how much a case changed; where its medians contradict that, it says so."""
    if each.ratio is None:
        return formats.DASH
    return each.unclear or formats.format_signed(each.ratio - 1)


def count_launches(each: ComparedCase) -> str:
    return f"n={each.pairs}" if each.unpaired is None else "n={}, {} unpaired".format(*each.unpaired)


def tabulate_cases(title: str, cases: Sequence[ComparedCase]) -> formats.TextTable:
    rows = [
        (
            each.case.words,
            each.case.where,
            Toned(str(each.verdict), each.verdict.tone),
            format_value(each, new=False),
            format_value(each, new=True),
            format_change(each),
            format_interval(each),
            count_launches(each),
        )
        for each in cases
    ]
    unpaired = any(case.unpaired is not None for case in cases)
    columns = ("old", "new", "change", "ratio", "launches" if unpaired else "pairs")
    return formats.TextTable(title, ("case", "where", "verdict"), columns, tuple(rows))


def format_comparison_text(
    judged: JudgedComparison, maps: Sequence[formats.TextTable] = (), directory: Path | None = None
) -> str:
    """Format a comparison for a terminal: what is proven the same stands in the maps alone.

    :param maps: ratios of each place, routine by size; many are left to the pages
    :param directory: in which it lies, as commands have to name it
    """
    text = "\n" + wrap_lines([format_decision(judged)])
    text += wrap_lines(format_comparison_facts(judged), INDENT) + "\n"
    text += wrap_lines(f"{group.verdict}: {group.words}" for group in group_cases(judged.cases))
    text += join_lines(format_cases(judged))
    parts = [part for table in maps for part in fold_columns(table)] if len(maps) <= FEW_MAPS else []
    text += "".join(f"\n{formats.render_text(part)}" for part in parts)
    text += format_steps("to decide", judged.deciding)
    text += format_steps("settings of the old side to try on the new one", judged.settings[:TRIED])
    left = len(judged.settings) - TRIED
    text += f"  and {left} more in {PAGE}\n" if left > 0 else ""
    text += "\n" + wrap_lines(format_effects(judged.effects)) if judged.effects else ""
    steps = [*propose_references(judged.effects, directory), *propose_signing(judged, directory)]
    text += format_steps("afterwards", steps)
    return text + "\nHow to read this:\n" + wrap_lines(select_how_to_read(judged), INDENT)


def format_cases(judged: JudgedComparison) -> Iterator[str]:
    """Format the cases to look at, the worst first, those of one verdict and reason together.

    Each has what it is, why, and what measures it again. What is undecided is decided by further pairs:
    :func:`propose_deciding` has their command.
    """
    ordered = order_by_badness([case for case in judged.measured if case.verdict in SHOWN])
    groups: dict[tuple[ComparisonVerdict, str], list[ComparedCase]] = {}
    for case in ordered[:MOST_CASES]:
        groups.setdefault((case.verdict, case.reason), []).append(case)
    for (verdict, reason), cases in groups.items():
        single = len(cases) == 1
        yield ""
        yield f"{verdict}  {tell_case(cases[0])}" if single else f"{verdict}  {len(cases)} cases"
        for case in [] if single else cases:
            yield f"    {tell_case(case)}"
            yield from wrap_sentence(tell_values(case), "      ")
        yield from wrap_sentence(
            "; ".join(filter(None, [tell_values(cases[0]) if single else "", reason])), "  why: "
        )
        again = [command for case in cases for command in list_again(judged, case)]
        yield from (f"  again: {command}" for command in join_sizes(again))
    if left := len(ordered) - MOST_CASES:
        yield from ["", f"and {left} more in {PAGE}"] if left > 0 else []


def list_again(judged: JudgedComparison, case: ComparedCase) -> Iterable[str]:
    """List what measures a bad case again: both sides in turn; what failed on each; what one lacks on that."""
    if case.verdict not in BAD:
        return []
    if case.verdict == ComparisonVerdict.ONLY_OLD:
        return [case.rerun[NEW]] if NEW in case.rerun else []
    return [judged.again] if case.verdict == ComparisonVerdict.SLOWER and judged.again else case.rerun.values()


def join_sizes(commands: Iterable[str]) -> list[str]:
    """Join commands that differ in their sizes alone into one with all of these, in the order of the first."""
    joined: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for command in commands:
        words = shlex.split(command)
        at = words.index(BYTES.flag) + 1 if BYTES.flag in words else len(words)
        joined.setdefault((tuple(words[:at]), tuple(words[at + 1 :])), []).extend(words[at : at + 1])
    return [
        quote_words([*before, *filter(None, [",".join(dict.fromkeys(sizes))]), *behind])
        for (before, behind), sizes in joined.items()
    ]


def tell_case(each: ComparedCase) -> str:
    return f"{each.case.words}, {each.case.where}"


def tell_values(each: ComparedCase) -> str:
    """Tell what both sides took, and by how much that differs; empty if neither was measured."""
    values = [
        f"{side} {format_value(each, side == NEW)}"
        for side, value in ((OLD, each.old), (NEW, each.new))
        if value is not None
    ]
    if not values:
        return ""
    ratio = [format_change(each)] if each.ratio is not None else []
    ratio += [f"ratio {format_interval(each)}"] if each.limits else []
    launches = f"n={each.pairs}" if each.unpaired is None else "n={}, {}".format(*each.unpaired)
    return ", ".join([*values, *ratio, launches])


def fold_columns(table: formats.TextTable) -> Iterator[formats.TextTable]:
    """Fold a table that is wider than a sentence into several with some of its columns each."""
    rows = [(*table.labels, *table.columns), *table.rows]
    labels = len(table.labels)
    cell = max(len(text) for row in rows for text in row[labels:]) + 3
    room = PIPE_COLUMNS - sum(max(len(row[n]) for row in rows) + 3 for n in range(labels))
    some = max(1, room // cell)
    for first in range(0, len(table.columns), some):
        own = slice(labels + first, labels + first + some)
        columns = table.columns[first : first + some]
        kept = tuple((*row[:labels], *row[own]) for row in table.rows)
        yield replace(table, columns=columns, rows=kept)


def wrap_sentence(text: str, label: str) -> list[str]:
    """Wrap a sentence behind its label, as those of a session are; into no line if there is none."""
    return wrap(sanitize_line(text), PIPE_COLUMNS, label, indent=" " * len(label)) if text else []


def wrap_lines(sentences: Iterable[str], label: str = "") -> str:
    """Join sentences, each wrapped as those of a session are."""
    return join_lines(wrap_all(sentences, label))


def join_lines(lines: Iterable[str]) -> str:
    """Join lines without what a terminal would obey: a folder may be another's."""
    return "".join(f"{sanitize_line(line)}\n" for line in lines)


def format_steps(title: str, steps: Sequence[NextStep]) -> str:
    """Format things to do below a title, each command on a line of its own; nothing if there are none."""
    text = f"\n{title}:\n" if steps else ""
    for step in steps:
        text += wrap_lines([step.words], INDENT) + join_lines(
            [f"{INDENT * 2}{step.command}"] if step.command else []
        )
    return text
