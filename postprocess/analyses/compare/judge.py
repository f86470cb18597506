"""Judge a comparison: a verdict for each case, the controls, and the decision."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from postprocess.analyses.compare.data import (
    NEW,
    OLD,
    ComparisonHeader,
    SharedCase,
    StoredComparison,
)
from postprocess.analyses.compare.facts import FactDifference, compare_facts
from postprocess.analyses.compare.pairs import CasePairs, collect_pairs
from postprocess.base.formats import first_of, plural
from postprocess.stats.band import LARGE_BYTES
from postprocess.stats.paired_verdicts import PairedCase, PairedResult, PairedVerdict, judge_pairs
from postprocess.stats.shrinkage import SMALL_BYTES


class Comparison(str, Enum):
    """The verdict on a case. The order is that in which people need to see them."""

    BROKEN = "broken"  #: fails on the new side alone
    ONLY_OLD = "only old"  #: the new side does not measure it
    FAILED = "failed"  #: fails on both sides
    SLOWER = "slower"
    UNDECIDED = "undecided"
    NOT_SLOWER = "not slower"
    SAME = "same"
    FASTER = "faster"
    MENDED = "mended"  #: failed on the old side alone
    ONLY_NEW = "only new"
    SKIPPED = "skipped"  #: on purpose, on both sides

    def __str__(self) -> str:
        return self.value


BAD = (Comparison.BROKEN, Comparison.ONLY_OLD, Comparison.FAILED, Comparison.SLOWER)


class Decision(str, Enum):
    """The decision of a comparison."""

    SAFE = "safe"
    NOT_SAFE = "not safe"
    UNDECIDED = "undecided"
    VOID = "void"  #: the machine itself changed between the sides

    def __str__(self) -> str:
        return self.value

    @property
    def status(self) -> int:
        """The exit status."""
        return {Decision.SAFE: 0, Decision.NOT_SAFE: 1}.get(self, 3)


@dataclass(frozen=True)
class ComparedCase:
    """A case with its verdict, and what the verdict rests on. Values are in ``unit``."""

    case: SharedCase
    verdict: Comparison
    reason: str
    unit: str
    old: float | None  #: median of the launches that count
    new: float | None
    spreads: tuple[float, float] | None  #: standard deviation of ln value between launches, by side
    pairs: int
    ratio: float | None  #: of new to old; above 1 is worse in every unit
    limits: tuple[float, float] | None
    q: float | None
    pairs_more: int | None
    margin: float  #: as a fraction
    void: dict[str, int]  #: pairs that do not count, by reason
    rerun: dict[str, str]  #: command that measures just this case, by side


@dataclass(frozen=True)
class UnchangedControl:
    """The verdicts of the same rules on launches of one side against each other: pairs of unchanged cases."""

    cases: int
    verdicts: dict[str, int]

    @property
    def accused(self) -> int:
        """How many unchanged cases they call slower."""
        return self.verdicts.get(Comparison.SLOWER, 0)


@dataclass(frozen=True)
class JudgedComparison:
    """A comparison as it is shown and kept."""

    header: ComparisonHeader
    looks: tuple[int, ...]
    pairs: int
    seconds: float
    cases: tuple[ComparedCase, ...]
    controls: tuple[ComparedCase, ...]  #: what no MPI has a part in
    unchanged: UnchangedControl
    decision: Decision
    facts: tuple[FactDifference, ...] = ()  #: what the MPIs tell of themselves that differs
    untold: Mapping[str, str] = field(default_factory=dict)  #: why a side tells nothing

    @property
    def counts(self) -> dict[str, int]:
        """Number of cases by verdict, in the order of verdicts, without zeros."""
        counted = Counter(each.verdict for each in self.cases)
        return {str(verdict): counted[verdict] for verdict in Comparison if counted[verdict]}


def judge_comparison(stored: StoredComparison) -> JudgedComparison:
    """Judge a comparison by what was measured until now."""
    found = collect_pairs(stored.passes, stored.header.seed)
    looks = stored.looks or (6,)
    cases = {key: SharedCase.from_key(key) for key in found}
    own = [key for key in found if not cases[key].is_control]
    controls = [key for key in found if cases[key].is_control]
    judged = judge_cases(stored.header, [found[key] for key in own], looks)
    moved = judge_cases(stored.header, [found[key] for key in controls], looks)
    unchanged = judge_unchanged(stored.header, [found[key] for key in own], looks)
    return JudgedComparison(
        stored.header,
        stored.looks,
        max((len(found[key].differences) for key in found), default=0),
        sum(each.seconds for each in stored.passes),
        tuple(judged),
        tuple(moved),
        unchanged,
        decide_comparison(judged, moved),
        tuple(list_fact_differences(stored)),
        {side: told.problem for side, told in stored.told.items() if told.problem},
    )


def list_fact_differences(stored: StoredComparison) -> list[FactDifference]:
    """List in what the MPIs of both sides differ, by what they tell of themselves."""
    old, new = (stored.told[side].facts if side in stored.told else None for side in (OLD, NEW))
    return compare_facts(old, new) if old and new else []


def decide_comparison(cases: Sequence[ComparedCase], controls: Sequence[ComparedCase]) -> Decision:
    """Decide: safe is only what is proven for every case that was planned."""
    verdicts = {each.verdict for each in cases}
    if verdicts & {Comparison.BROKEN, Comparison.ONLY_OLD, Comparison.FAILED}:
        return Decision.NOT_SAFE  # whatever the machine did meanwhile
    if select_moved(controls):
        return Decision.VOID
    if Comparison.SLOWER in verdicts:
        return Decision.NOT_SAFE
    proven = {Comparison.SAME, Comparison.FASTER, Comparison.NOT_SLOWER}
    if Comparison.UNDECIDED in verdicts or not verdicts & proven:
        return Decision.UNDECIDED
    return Decision.SAFE


def select_moved(controls: Sequence[ComparedCase]) -> list[ComparedCase]:
    """Select the controls that changed: what no MPI has a part in cannot, unless the machine did."""
    return [each for each in controls if each.verdict in (Comparison.SLOWER, Comparison.FASTER)]


def margin_of(case: SharedCase, margins: Sequence[float]) -> float:
    """Return the margin of a case's class of sizes, as a fraction."""
    return margins[(case.bytes >= SMALL_BYTES) + (case.bytes >= LARGE_BYTES)]


def group_of_sizes(case: SharedCase) -> tuple[str, int]:
    """Return program and class of sizes: cases of one group scatter alike."""
    return case.program, (case.bytes >= SMALL_BYTES) + (case.bytes >= LARGE_BYTES)


def paired(header: ComparisonHeader, pairs: CasePairs, differences: Sequence[float]) -> PairedCase:
    """Return a case for the statistics."""
    case = SharedCase.from_key(pairs.key)
    margin = math.log1p(margin_of(case, header.margins))
    return PairedCase(tuple(differences), margin, group_of_sizes(case), pairs.exact)


def judge_cases(
    header: ComparisonHeader, some: Sequence[CasePairs], looks: Sequence[int]
) -> list[ComparedCase]:
    """Judge cases: first what is on one side only, then speed."""
    judged: list[ComparedCase] = []
    apart = {each.key: verdict for each in some if (verdict := judge_presence(each))}
    timed = [each for each in some if each.key not in apart]
    results = judge_pairs([paired(header, each, each.differences) for each in timed], looks)
    by_key = {each.key: result for each, result in zip(timed, results, strict=True)}
    for each in some:
        if each.key in apart:
            verdict, reason = apart[each.key]
            judged.append(describe_case(header, each, verdict, reason, None))
        else:
            result = by_key[each.key]
            reason = describe_pairs(each, result, looks)
            verdict = Comparison(result.verdict.value)
            judged.append(describe_case(header, each, verdict, reason, result))
    return judged


def judge_presence(case: CasePairs) -> tuple[Comparison, str] | None:
    """Judge what is missing or fails on a side; None if both sides measure it."""
    old, new = case.failed(OLD), case.failed(NEW)
    if old and new:
        return (
            Comparison.FAILED,
            f"old: {tell_failures(case, OLD)}; new: {tell_failures(case, NEW)}",
        )
    if new:
        return Comparison.BROKEN, tell_failures(case, NEW)
    there = {side: bool(case.launches[side]) and not case.skipped(side) for side in (OLD, NEW)}
    if not any(there.values()):
        return Comparison.SKIPPED, case.skipped(OLD) or case.skipped(NEW)
    if not there[NEW]:
        return Comparison.ONLY_OLD, case.skipped(NEW) or "not in the plan of the new side"
    if not there[OLD]:
        return Comparison.ONLY_NEW, case.skipped(OLD) or "not in the plan of the old side"
    return (Comparison.MENDED, tell_failures(case, OLD)) if old else None


def tell_failures(case: CasePairs, side: str) -> str:
    """Tell how often a case failed on a side, and why the first time."""
    failed = case.failed(side)
    verdict, reason = failed[0]
    often = f" ({len(failed)} of {plural(case.launches[side], 'launch', 'es')})"
    return f"{verdict}: {reason}{often}"


def describe_pairs(case: CasePairs, result: PairedResult, looks: Sequence[int]) -> str:
    """Describe what keeps a case undecided; empty if it is decided."""
    if result.verdict != PairedVerdict.UNDECIDED:
        return ""
    words = []
    if case.void:
        why = first_of([f"{reason} ({plural(n, 'pair')})" for reason, n in case.void.items()], 2)
        words.append(f"pairs that do not count: {why}")
    if result.estimate is None:
        words.append(
            f"{plural(len(case.differences), 'pair')}, and the first look is at {looks[0]}"
        )
    if result.pairs_more:
        words.append(f"about {plural(result.pairs_more, 'more pair')} would decide")
    return "; ".join(words)


def describe_case(
    header: ComparisonHeader,
    pairs: CasePairs,
    verdict: Comparison,
    reason: str,
    result: PairedResult | None,
) -> ComparedCase:
    """Put together what is shown of a case."""
    case = SharedCase.from_key(pairs.key)
    estimate = result.estimate if result else None
    used = estimate.pairs if estimate else len(pairs.differences)
    sides = [pairs.values[side][:used] for side in (OLD, NEW)]
    old, new = (statistics.median(values) if values else None for values in sides)
    spreads = [statistics.stdev(map(math.log, values)) for values in sides if len(values) > 1]
    finite = estimate is not None and math.isfinite(estimate.lower)
    return ComparedCase(
        case,
        verdict,
        reason,
        pairs.unit,
        old,
        new,
        (spreads[0], spreads[1]) if len(spreads) == len(sides) else None,
        used,
        estimate.ratio if estimate else None,
        estimate.limits if estimate and finite else None,
        result.q if result else None,
        result.pairs_more if result else None,
        margin_of(case, header.margins),
        dict(pairs.void),
        pairs.rerun,
    )


def judge_unchanged(
    header: ComparisonHeader, some: Sequence[CasePairs], looks: Sequence[int]
) -> UnchangedControl:
    """Judge launches of one side against each other, by the same rules and at the same looks."""
    known = [each for each in some if len(each.unchanged) >= looks[0]]
    results = judge_pairs([paired(header, each, each.unchanged) for each in known], looks)
    counted = Counter(str(each.verdict) for each in results)
    return UnchangedControl(len(known), dict(counted))
