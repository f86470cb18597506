"""Judge a comparison: a verdict for each case, the controls, and the decision."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from postprocess.base.formats import first_of, plural
from postprocess.features.compare.cases import (
    ComparedCase,
    ComparisonVerdict,
    describe_case,
    group_of_sizes,
    judge_presence,
    margin_of,
    tell_failures,
)
from postprocess.features.compare.data import (
    NEW,
    OLD,
    SIDES,
    ComparisonHeader,
    ReferenceEffects,
    SharedCase,
    StoredComparison,
)
from postprocess.features.compare.differences.facts import FactDifference, compare_facts
from postprocess.features.compare.differences.fingerprint import (
    FingerprintPair,
    build_fingerprints,
    list_settings_to_try,
)
from postprocess.features.compare.next_steps import (
    NextStep,
    estimate_pair_cost,
    explain_slower,
    propose_deciding,
    propose_settings,
)
from postprocess.features.compare.pairs import CasePairs, collect_pairs
from postprocess.features.compare.unpaired import judge_sessions
from postprocess.stats.comparison.paired_verdicts import PairedCase, PairedResult, PairedVerdict, judge_pairs


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
class UnchangedControl:
    """The verdicts of the same rules on launches of one side against each other: pairs of unchanged cases."""

    cases: int
    verdicts: dict[str, int]

    @property
    def accused(self) -> int:
        """How many unchanged cases they call slower."""
        return self.verdicts.get(ComparisonVerdict.SLOWER, 0)


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
    fingerprints: tuple[FingerprintPair, ...] = ()  #: by place
    explanation: str = ""  #: what of the slower cases the fingerprint covers, in a sentence
    effects: ReferenceEffects | None = None  #: of the upgrade, on references
    deciding: tuple[NextStep, ...] = ()  #: what would decide the undecided cases
    settings: tuple[NextStep, ...] = ()  #: of the old side, to be tried on the new one

    @property
    def measured(self) -> tuple[ComparedCase, ...]:
        """The cases of which anything was to be measured: all but those that both sides skip on purpose."""
        return tuple(case for case in self.cases if case.verdict != ComparisonVerdict.SKIPPED)

    @property
    def skipped(self) -> dict[str, int]:
        """Number of the other cases by reason, the most first."""
        rest = Counter(e.reason for e in self.cases if e.verdict == ComparisonVerdict.SKIPPED)
        return dict(rest.most_common())

    @property
    def counts(self) -> dict[str, int]:
        """Number of cases by verdict, in the order of verdicts, without zeros."""
        counted = Counter(case.verdict for case in self.cases)
        return {str(verdict): counted[verdict] for verdict in ComparisonVerdict if counted[verdict]}


def judge_comparison(stored: StoredComparison) -> JudgedComparison:
    """Judge a comparison by what was measured until now."""
    if stored.header.unpaired:
        return judge_unpaired_comparison(stored)
    found = collect_pairs(stored.passes, stored.header.seed)
    looks = stored.looks or (6,)
    cases = {key: SharedCase.from_key(key) for key in found}
    own = [key for key in found if not cases[key].is_control]
    controls = [key for key in found if cases[key].is_control]
    judged = judge_cases(stored.header, [found[key] for key in own], looks)
    moved = judge_cases(stored.header, [found[key] for key in controls], looks)
    unchanged = judge_unchanged(stored.header, [found[key] for key in own], looks)
    facts = list_fact_differences(stored)
    fingerprints = build_fingerprints(stored.fingerprints)
    cost = estimate_pair_cost(stored.passes)
    told = [stored.told[side].facts for side in (OLD, NEW) if side in stored.told]
    old, new = told if len(told) == len(SIDES) else (None, None)
    tried = list_settings_to_try(old, new) if old and new else []
    return JudgedComparison(
        stored.header,
        stored.looks,
        max((len(found[key].differences) for key in found), default=0),
        stored.seconds,
        tuple(judged),
        tuple(moved),
        unchanged,
        decide_comparison(judged, moved),
        tuple(facts),
        {side: told.problem for side, told in stored.told.items() if told.problem},
        tuple(fingerprints),
        explain_slower(judged, fingerprints, facts),
        stored.effects,
        tuple(propose_deciding(stored.header, judged, cost)),
        tuple(propose_settings(stored.header, judged, tried, cost)),
    )


def judge_unpaired_comparison(stored: StoredComparison) -> JudgedComparison:
    """Judge stored sessions. What was not taken in turn is never safe, whatever its cases say."""
    found = judge_sessions(stored)
    cases = tuple(each for each in found if not each.case.is_control)
    controls = tuple(each for each in found if each.case.is_control)
    decision = decide_comparison(cases, controls)
    return JudgedComparison(
        stored.header,
        (),
        0,
        0.0,
        cases,
        controls,
        UnchangedControl(0, {}),
        Decision.UNDECIDED if decision == Decision.SAFE else decision,
    )


def list_fact_differences(stored: StoredComparison) -> list[FactDifference]:
    """List in what the MPIs of both sides differ, by what they tell of themselves."""
    old, new = (stored.told[side].facts if side in stored.told else None for side in (OLD, NEW))
    return compare_facts(old, new) if old and new else []


def decide_comparison(cases: Sequence[ComparedCase], controls: Sequence[ComparedCase]) -> Decision:
    """Decide: safe is only what is proven for every case that was planned."""
    verdicts = {case.verdict for case in cases}
    if verdicts & {ComparisonVerdict.BROKEN, ComparisonVerdict.ONLY_OLD, ComparisonVerdict.FAILED}:
        return Decision.NOT_SAFE  # whatever the machine did meanwhile
    if select_moved(controls):
        return Decision.VOID
    if ComparisonVerdict.SLOWER in verdicts:
        return Decision.NOT_SAFE
    proven = {ComparisonVerdict.SAME, ComparisonVerdict.FASTER, ComparisonVerdict.NOT_SLOWER}
    if ComparisonVerdict.UNDECIDED in verdicts or not verdicts & proven:
        return Decision.UNDECIDED
    return Decision.SAFE


def select_moved(controls: Sequence[ComparedCase]) -> list[ComparedCase]:
    """Select the controls that changed: what no MPI has a part in cannot, unless the machine did."""
    return [case for case in controls if case.verdict in (ComparisonVerdict.SLOWER, ComparisonVerdict.FASTER)]


def build_paired_case(header: ComparisonHeader, pairs: CasePairs, differences: Sequence[float]) -> PairedCase:
    """Return a case for the statistics."""
    case = SharedCase.from_key(pairs.key)
    margin = math.log1p(margin_of(case, header.margins))
    return PairedCase(tuple(differences), margin, group_of_sizes(case), pairs.exact)


def judge_cases(
    header: ComparisonHeader, some: Sequence[CasePairs], looks: Sequence[int]
) -> list[ComparedCase]:
    """Judge cases: first what is on one side only, then speed."""
    judged: list[ComparedCase] = []
    apart = {pairs.key: verdict for pairs in some if (verdict := judge_presence(pairs))}
    timed = [pairs for pairs in some if pairs.key not in apart]
    results = judge_pairs([build_paired_case(header, pairs, pairs.differences) for pairs in timed], looks)
    by_key = {each.key: result for each, result in zip(timed, results, strict=True)}
    for pairs in some:
        if pairs.key in apart:
            kept, reason = apart[pairs.key]
            judged.append(describe_case(header, pairs, kept, reason, None))
        else:
            result = by_key[pairs.key]
            words = [f"old: {tell_failures(pairs, OLD)}"] if pairs.failed(OLD) else []
            words.append(describe_pairs(pairs, result, looks))
            found = ComparisonVerdict(result.verdict.value)
            case = describe_case(header, pairs, found, "", result)
            words += [case.contradiction.words] if case.contradiction else []
            judged.append(replace(case, reason="; ".join(filter(None, words))))
    return judged


def describe_pairs(case: CasePairs, result: PairedResult, looks: Sequence[int]) -> str:
    """Describe what keeps a case undecided; empty if it is decided."""
    if result.verdict != PairedVerdict.UNDECIDED:
        return ""
    words = []
    if case.void:
        why = first_of([f"{reason} ({plural(n, 'pair')})" for reason, n in case.void.items()], 2)
        words.append(f"pairs that do not count: {why}")
    if case.exact and len(case.differences) > 1:
        words.append("its time is simulated, and did not repeat")
    if result.estimate is None:
        words.append(f"{plural(len(case.differences), 'pair')}, and the first look is at {looks[0]}")
    if result.pairs_more:
        words.append(f"about {plural(result.pairs_more, 'more pair')} would decide")
    return "; ".join(words)


def judge_unchanged(
    header: ComparisonHeader, some: Sequence[CasePairs], looks: Sequence[int]
) -> UnchangedControl:
    """Judge launches of one side against each other, by the same rules and at the same looks."""
    known = [pairs for pairs in some if len(pairs.unchanged) >= looks[0]]
    results = judge_pairs([build_paired_case(header, pairs, pairs.unchanged) for pairs in known], looks)
    counted = Counter(str(result.verdict) for result in results)
    return UnchangedControl(len(known), dict(counted))
