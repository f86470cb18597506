"""What people read of guidelines: which are violated, by how much, and what setting of the MPI helps."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

from postprocess.base.formats import (
    NOT_PRINTED,
    TextTable,
    factor,
    microseconds,
    plural,
    render_text,
    size,
    wrap_all,
)
from postprocess.features.guidelines import judge
from postprocess.model.routines.guidelines import Guideline, Measured, Rule
from postprocess.model.session import Session
from postprocess.report.document import BESIDE, NOT_STEADY, Document, Lines, Role, Section, Tone, table_section
from postprocess.stats.paired_verdicts import ERROR

WHY = {
    Rule.COMPOSITION: "other calls with the same result are faster",
    Rule.SPECIALISATION: "a call that does more is faster",
    Rule.MONOTONY: "more bytes take less time",
    Rule.SPLITTING: "the same bytes in parts, one after the other, take less time",
}
HOW_TO_READ = (
    f"Times are medians of the trials of a launch, {NOT_STEADY}. "
    "Ratio: operation over its alternative, which should not be "
    "faster, within one launch (Hodges-Lehmann over launches), with its 90% interval. "
    f"Violated: proven, by {judge.MARGIN / 2:.0%} or more. Holds: proven to be slower by no more than "
    f"{judge.MARGIN:.0%}. Open: neither.",
    f"Of the guidelines called violated, {ERROR:.0%} at most are false on average (Benjamini and Hochberg).",
    "A setting is advised only if launches with it and without it in turn, after it was chosen, prove it "
    "faster. It is for the operation at this size: other sizes may lose by it.",
)


@dataclass(frozen=True)
class GuidelineResult:
    """All guidelines of a session, and what overrides do for what loses."""

    judged: tuple[judge.JudgedGuideline, ...]
    overrides: tuple[judge.JudgedOverride, ...]
    failures: tuple[str, ...] = ()  #: ways in which launches failed, in a line each
    notes: tuple[str, ...] = ()  #: what was noticed of the machine meanwhile

    @property
    def caveats(self) -> list[str]:
        """What the places cannot show, and what spoils the times."""
        return [*list_caveats(self.places), *self.notes]

    @property
    def violated(self) -> list[judge.JudgedGuideline]:
        return judge.select_violated(self.judged)

    @property
    def places(self) -> list[judge.Place]:
        return sorted({guideline.place for guideline in self.judged})

    def count(self, standing: judge.Standing) -> int:
        return sum(guideline.standing is standing for guideline in self.judged)


def summarise(found: GuidelineResult) -> str:
    words = [
        f"{found.count(standing)} {name}"
        for standing, name in (
            (judge.Standing.VIOLATED, "violated"),
            (judge.Standing.OPEN, "open (more --launches decide)"),
            (judge.Standing.UNJUDGED, f"unjudged (fewer than {judge.FEWEST_LAUNCHES} launches)"),
            (judge.Standing.HOLDS, "hold"),
        )
        if found.count(standing)
    ]
    line = f"{plural(len(found.judged), 'guideline')}: {', '.join(words) or 'none to judge'}"
    if found.overrides:
        helped = sum(override.helps for override in found.overrides)
        line += f"; a setting helps {helped} of {plural(len(found.overrides), 'operation')} that lose"
    return line


def format_title(found: GuidelineResult) -> str:
    violated = len(found.violated)
    if not found.judged:
        return "No guideline was measured"
    if violated:
        return f"{violated} of {plural(len(found.judged), 'guideline')} violated"
    return f"None of {plural(len(found.judged), 'guideline')} is shown to be violated"


def format_guidelines(found: GuidelineResult) -> str:
    """Format what is violated, what helps, and the counts of each rule, in 80 columns."""
    parts = [*list_violations(found.violated), *list_overrides(found.overrides)]
    parts += [render_text(table).rstrip("\n") for table in build_rule_tables(found.judged)]
    lines = [*describe_rules(found.judged), *found.failures, *found.caveats, summarise(found)]
    return "".join(f"{part}\n\n" for part in parts) + "".join(f"{line}\n" for line in wrap_all(lines))


def list_violations(violated: Iterable[judge.JudgedGuideline]) -> Iterator[str]:
    """List what is violated at each place, the worst first: two lines each."""
    ordered = sorted(violated, key=lambda each: (each.place, -(each.ratio or 0)))
    for place, group in groupby(ordered, key=lambda each: each.place):
        lines = [f"{place}: violated"]
        for each in group:
            rule = each.guideline
            what = f"{format_measured(rule.special)} is slower than {format_other_side(rule)} ({rule.rule})"
            times = f"{microseconds(each.special)} us against {microseconds(each.general)} us"
            ratio = f"ratio {format_ratio(each.ratio, each.limits)}"
            launches = plural(each.launches, "launch", "es")
            lines += [*wrap_all([what], "  "), *wrap_all([f"{times}: {ratio}, {launches}"], "    ")]
        yield "\n".join(lines)


def list_overrides(overrides: Iterable[judge.JudgedOverride]) -> Iterator[str]:
    """List what the settings of the MPI do for what loses; what nothing helps is in a line together."""
    for place, group in groupby(sort_overrides(overrides), key=lambda each: each.place):
        lines = [f"{place}: settings of the MPI"]
        others: dict[str, list[str]] = {}
        for each in group:
            tried = f"{describe_effect(each)}, {each.tried} tried" if each.tried else describe_effect(each)
            operation = format_measured(each.operation)
            if each.limits is None:
                others.setdefault(tried, []).append(operation)
                continue
            ratio = f"time with it / without {format_ratio(each.ratio, each.limits)}"
            lines += wrap_all([f"{operation}: {tried}: {ratio}"], "  ")
            lines.append(f"    {format_variables(each)}")
        lines += wrap_all([f"{', '.join(some)}: {tried}" for tried, some in others.items()], "  ")
        yield "\n".join(lines)


def sort_overrides(overrides: Iterable[judge.JudgedOverride]) -> list[judge.JudgedOverride]:
    return sorted(overrides, key=lambda each: (each.place, each.operation))


def list_caveats(places: Iterable[judge.Place]) -> list[str]:
    lines = []
    for place in places:
        if place.processes == 2:
            lines.append(
                f"{place}: with 2 processes every algorithm is one message: violations show overheads and "
                "copies, not algorithms; choose more --processes"
            )
        elif place.processes <= place.per_node:
            lines.append(f"{place}: all processes are on one node: nothing is said of a network")
    return lines


def format_measured(measured: Measured) -> str:
    return f"{measured.routine} {size(measured.bytes)}" if measured.bytes else measured.routine


def format_other_side(guideline: Guideline) -> str:
    calls = f"{guideline.times} x " if guideline.times > 1 else ""
    return calls + format_measured(guideline.general)


def format_ratio(ratio: float | None, limits: tuple[float, float] | None) -> str:
    """Format a ratio with its interval; of simulated time, which repeats, there is none."""
    if ratio is None or limits is None:
        return NOT_PRINTED
    if limits[0] == limits[1]:
        return factor(ratio)
    return f"{factor(ratio)} ({factor(limits[0])} to {factor(limits[1])})"


def build_violation_tables(violated: Sequence[judge.JudgedGuideline]) -> list[TextTable]:
    return [
        TextTable(
            str(place),
            ("operation", "slower than", "rule"),
            ("us", "other us", "ratio", "launches"),
            tuple(
                (
                    format_measured(guideline.guideline.special),
                    format_other_side(guideline.guideline),
                    str(guideline.guideline.rule),
                    microseconds(guideline.special),
                    microseconds(guideline.general),
                    format_ratio(guideline.ratio, guideline.limits),
                    str(guideline.launches),
                )
                for guideline in sorted(group, key=lambda one: -(one.ratio or 0))
            ),
        )
        for place, group in groupby(sorted(violated, key=lambda each: each.place), key=lambda each: each.place)
    ]


def build_override_tables(overrides: Sequence[judge.JudgedOverride]) -> list[TextTable]:
    return [
        TextTable(
            f"{place}: settings of the MPI",
            ("operation", "setting", "verdict"),
            ("time with it / without", "tried"),
            tuple(
                (
                    format_measured(override.operation),
                    format_variables(override) or NOT_PRINTED,
                    describe_effect(override),
                    format_ratio(override.ratio, override.limits),
                    str(override.tried),
                )
                for override in group
            ),
        )
        for place, group in groupby(sort_overrides(overrides), key=lambda each: each.place)
    ]


def format_variables(override: judge.JudgedOverride) -> str:
    """Format the variables of an override as a shell takes them."""
    return " ".join(f"{name}={value}" for name, value in sorted(override.variables.items()))


def describe_effect(override: judge.JudgedOverride) -> str:
    if override.helps:
        return "advised"
    if not override.tried:
        return "none is known here"
    return "not advised: not proven faster" if override.setting else "none looked faster"


def build_rule_tables(judged: Sequence[judge.JudgedGuideline]) -> list[TextTable]:
    """Build a table of each place: how all guidelines stand, by rule."""
    tables = []
    for place, group in groupby(sorted(judged, key=lambda each: each.place), key=lambda each: each.place):
        counts = Counter((guideline.guideline.rule, guideline.standing) for guideline in group)
        rules = [rule for rule in Rule if any(rule is known for known, _ in counts)]
        rows = tuple((str(rule), *(str(counts[rule, each]) for each in judge.Standing)) for rule in rules)
        tables.append(TextTable(str(place), ("rule",), tuple(map(str, judge.Standing)), rows))
    return tables


def describe_rules(judged: Iterable[judge.JudgedGuideline]) -> list[str]:
    """Describe where each rule is violated, of those that were judged."""
    there = {guideline.guideline.rule for guideline in judged}
    return [f"{rule}: violated where {why}" for rule, why in WHY.items() if rule in there]


PAGE = "guidelines.html"


def build_guideline_document(session: Session, found: GuidelineResult) -> Document:
    """Build what the pages say: what is violated, what helps, and every guideline."""
    good = not found.failures and bool(found.judged) and not found.violated
    return Document(
        "guidelines",
        (session.site, session.name),
        Tone.GOOD if good else Tone.BAD,
        format_title(found),
        (summarise(found), BESIDE),
        (
            Section("", [Lines(Role.CAVEAT, found.caveats)]),
            Section("Violated", build_violation_tables(found.violated)),
            Section("Settings that were tried", build_override_tables(found.overrides)),
            Section(
                "All guidelines",
                [*build_rule_tables(found.judged), Lines(Role.DETAIL, describe_rules(found.judged))],
            ),
            replace(table_section(build_full_table(found.judged)), folded=True),
        ),
        HOW_TO_READ,
        build_guideline_json(found, session.name),
        found.failures,
    )


def build_full_table(judged: tuple[judge.JudgedGuideline, ...]) -> TextTable:
    return TextTable(
        "Every guideline",
        ("place", "operation", "not slower than", "standing"),
        ("ratio",),
        tuple(
            (
                str(guideline.place),
                format_measured(guideline.guideline.special),
                format_other_side(guideline.guideline),
                str(guideline.standing),
                format_ratio(guideline.ratio, guideline.limits),
            )
            for guideline in judged
        ),
    )


def build_guideline_json(found: GuidelineResult, session: str) -> dict[str, Any]:
    """Build guidelines and overrides as data; times in seconds."""
    return {
        "session": session,
        "summary": summarise(found),
        "failures": list(found.failures),
        "caveats": found.caveats,
        "guidelines": [
            {
                **asdict(guideline.place),
                "rule": str(guideline.guideline.rule),
                "special": [guideline.guideline.special.routine, guideline.guideline.special.bytes],
                "general": [guideline.guideline.general.routine, guideline.guideline.general.bytes],
                "times": guideline.guideline.times,
                "standing": str(guideline.standing),
                "launches": guideline.launches,
                "special_seconds": guideline.special,
                "general_seconds": guideline.general,
                "ratio": guideline.ratio,
                "limits": guideline.limits,
                "q": guideline.q,
            }
            for guideline in found.judged
        ],
        "overrides": [
            {
                **asdict(override.place),
                "operation": [override.operation.routine, override.operation.bytes],
                "setting": override.setting,
                "variables": dict(override.variables),
                "tried": override.tried,
                "advised": override.helps,
                "ratio": override.ratio,
                "limits": override.limits,
                "q": override.q,
            }
            for override in found.overrides
        ],
    }
