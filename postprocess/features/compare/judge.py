"""Judge a comparison: a verdict for each case, the controls, and the decision.

Sides that were measured in turn are judged by their pairs. Stored sessions are held against each other, where a
difference counts only beyond what sessions differ by anyway.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np

from postprocess.base.formats import compute_slowdown, first_of, format_percent, plural
from postprocess.features.compare import data, next_steps
from postprocess.features.compare.cases import (
    APART,
    ComparedCase,
    ComparisonVerdict,
    build_paired_case,
    describe_case,
    judge_presence,
    tell_failures,
)
from postprocess.features.compare.data import NEW, OLD, SIDES, ComparisonHeader, StoredComparison
from postprocess.features.compare.facts import (
    FactDifference,
    FingerprintPair,
    build_fingerprints,
    compare_facts,
    describe_shared_program,
    find_settings_to_try,
)
from postprocess.features.compare.pairs import CasePairs, collect_pairs, compare_places, note_launch
from postprocess.stats import paired_verdicts
from postprocess.stats.paired_verdicts import PairedResult, PairedVerdict, UnpairedResult
from postprocess.stats.sessions import Prediction


class Decision(str, Enum):
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
    header: ComparisonHeader
    cases: tuple[ComparedCase, ...]
    controls: tuple[ComparedCase, ...]  #: what no MPI has a part in
    decision: Decision
    looks: tuple[int, ...] = ()
    pairs: int = 0  #: that count, of the case with most; controls have pairs of their own
    seconds: float = 0.0
    unchanged: UnchangedControl = UnchangedControl(0, {})
    facts: tuple[FactDifference, ...] = ()  #: what the MPIs tell of themselves that differs
    untold: Mapping[str, str] = field(default_factory=dict)  #: why a side tells nothing
    fingerprints: tuple[FingerprintPair, ...] = ()  #: by place
    explanation: str = ""  #: what of the slower cases the fingerprint covers, in a sentence
    effects: data.ReferenceEffects | None = None  #: of the upgrade, on references
    deciding: tuple[next_steps.NextStep, ...] = ()  #: what would decide the undecided cases
    again: str = ""  #: the command that compares again what is slower; empty if nothing is
    settings: tuple[next_steps.NextStep, ...] = ()  #: of the old side, to be tried on the new one
    shared_program: str = ""  #: that both sides ran the same file, in a sentence

    @property
    def measured(self) -> tuple[ComparedCase, ...]:
        """The cases of which anything was to be compared."""
        return tuple(case for case in self.cases if case.verdict not in APART)

    @property
    def skipped(self) -> dict[str, int]:
        """Number of the cases that both sides skip on purpose, by reason, the most first."""
        rest = Counter(e.reason for e in self.cases if e.verdict == ComparisonVerdict.SKIPPED)
        return dict(rest.most_common())

    @property
    def not_compared(self) -> dict[tuple[str, str, str], int]:
        """Number of the cases of a program that a side cannot have, by side, program and reason."""
        rest = (e for e in self.cases if e.verdict == ComparisonVerdict.NOT_COMPARED)
        return dict(Counter((e.lacked_by, e.case.program, e.reason) for e in rest).most_common())

    @property
    def counts(self) -> dict[str, int]:
        """Number of cases by verdict, in the order of verdicts, without zeros."""
        counted = Counter(case.verdict for case in self.cases)
        return {str(verdict): counted[verdict] for verdict in ComparisonVerdict if counted[verdict]}


def judge_comparison(stored: StoredComparison) -> JudgedComparison:
    if stored.header.unpaired:
        return judge_unpaired_comparison(stored)
    header, looks = stored.header, stored.looks or (6,)
    found = collect_pairs(stored.passes, header.seed).values()
    own = [pairs for pairs in found if not pairs.case.is_control]
    cases = judge_cases(header, own, looks)
    controls = judge_cases(header, [pairs for pairs in found if pairs.case.is_control], looks)
    facts = list_fact_differences(stored)
    new = stored.told[NEW].facts if facts else None
    tried = find_settings_to_try(facts, new) if new else {}
    fingerprints = build_fingerprints(stored.fingerprints)
    cost = next_steps.estimate_pair_cost(stored)
    told = [stored.told[side].facts if side in stored.told else None for side in SIDES]
    return JudgedComparison(
        header=header,
        cases=tuple(cases),
        controls=tuple(controls),
        decision=decide_comparison(cases, controls),
        looks=stored.looks,
        pairs=max((len(pairs.differences) for pairs in own), default=0),
        seconds=stored.seconds,
        unchanged=judge_unchanged(header, own, looks),
        facts=tuple(facts),
        untold={side: told.problem for side, told in stored.told.items() if told.problem},
        fingerprints=tuple(fingerprints),
        explanation=next_steps.explain_slower(cases, fingerprints, facts),
        effects=stored.effects,
        deciding=tuple(next_steps.propose_deciding(header, cases, cost)),
        again=next_steps.propose_again(header, cases, cost),
        settings=tuple(next_steps.propose_settings(header, cases, tried, cost)),
        shared_program=describe_shared_program(*told),
    )


def judge_unpaired_comparison(stored: StoredComparison) -> JudgedComparison:
    """Judge stored sessions. What was not taken in turn is never safe, whatever its cases say."""
    found = judge_sessions(stored)
    cases = tuple(case for case in found if not case.case.is_control)
    controls = tuple(case for case in found if case.case.is_control)
    decision = decide_comparison(cases, controls)
    if decision == Decision.SAFE:
        decision = Decision.UNDECIDED
    return JudgedComparison(stored.header, cases, controls, decision)


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


def judge_cases(
    header: ComparisonHeader, some: Sequence[CasePairs], looks: Sequence[int]
) -> list[ComparedCase]:
    """Judge cases: first what is on one side only, then speed."""
    judged: list[ComparedCase] = []
    apart = {pairs.key: verdict for pairs in some if (verdict := judge_presence(pairs))}
    timed = [pairs for pairs in some if pairs.key not in apart]
    results = judge_differences(header, [(pairs, pairs.differences) for pairs in timed], looks)
    by_key = {each.key: result for each, result in zip(timed, results, strict=True)}
    for pairs in some:
        if pairs.key in apart:
            judged.append(describe_case(header, pairs, *apart[pairs.key]))
            continue
        result = by_key[pairs.key]
        case = describe_case(header, pairs, ComparisonVerdict(result.verdict.value), "", result)
        words = [f"old: {tell_failures(pairs, OLD)}"] if pairs.failed(OLD) else []
        words += describe_pairs(pairs, result, looks)
        words += [case.contradiction.words] if case.contradiction else []
        judged.append(replace(case, reason="; ".join(words)))
    return judged


def judge_differences(
    header: ComparisonHeader, some: Sequence[tuple[CasePairs, Sequence[float]]], looks: Sequence[int]
) -> list[PairedResult]:
    cases = [build_paired_case(header, pairs.case, differences, pairs.exact) for pairs, differences in some]
    return paired_verdicts.judge_pairs(cases, looks)


def describe_pairs(case: CasePairs, result: PairedResult, looks: Sequence[int]) -> list[str]:
    """Describe what keeps a case undecided; nothing if it is decided."""
    if result.verdict != PairedVerdict.UNDECIDED:
        return []
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
    return words


def judge_unchanged(
    header: ComparisonHeader, some: Sequence[CasePairs], looks: Sequence[int]
) -> UnchangedControl:
    """Judge launches of one side against each other, by the same rules and at the same looks."""
    known = [(pairs, pairs.unchanged) for pairs in some if len(pairs.unchanged) >= looks[0]]
    counted = Counter(str(result.verdict) for result in judge_differences(header, known, looks))
    return UnchangedControl(len(known), dict(counted))


ANYWHERE = "nodes"  #: what sessions may differ in: the nights of a machine get other nodes
TABLE = "table"  #: source of what is known of a case without a reference


@dataclass
class StoredValues:
    pairs: CasePairs  #: without a pair
    noise: data.CaseNoise
    #: ln value of each launch, by side and session.
    logs: dict[str, dict[str, list[float]]] = field(
        default_factory=lambda: {side: defaultdict(list) for side in SIDES}
    )
    places: dict[str, Mapping[str, str]] = field(default_factory=dict)  #: of the first launch

    @property
    def launches(self) -> tuple[int, int]:
        """Number of launches of both sides that have a value."""
        return len(self.pairs.values[OLD]), len(self.pairs.values[NEW])

    @property
    def difference(self) -> float:
        """Return ln(new / old), above 0 if that is worse, by the means over sessions of means of launches."""
        logs = ([np.mean(log) for log in self.logs[side].values()] for side in SIDES)
        old, new = (math.exp(float(np.mean(means))) for means in logs)
        return math.log(compute_slowdown(new, old, self.pairs.unit))

    def judge_apart(self) -> tuple[ComparisonVerdict, str] | None:
        """Judge what is missing or fails on a side, or was measured otherwise; None if speed decides."""
        if missing := judge_presence(self.pairs):
            return missing
        old, new = (
            {name: value for name, value in self.places[side].items() if name != ANYWHERE} for side in SIDES
        )
        otherwise = compare_places(old, new)
        return (ComparisonVerdict.UNDECIDED, otherwise) if otherwise else None


def collect_sessions(stored: StoredComparison) -> dict[str, StoredValues]:
    """Collect what the launches of stored sessions say of each case, by key, in the order of keys."""
    found: dict[str, StoredValues] = {}
    for each in stored.passes:
        for launch in each.launches:
            for key, said in launch.cases.items():
                known = found.setdefault(key, StoredValues(CasePairs(key), stored.noise.get(key, {})))
                note_launch(known.pairs, each.side, said)
                if said.value is not None and not said.verdict:
                    known.pairs.values[each.side].append(said.value)
                    known.logs[each.side][each.session].append(math.log(said.value))
                    known.places.setdefault(each.side, launch.place)
    return dict(sorted(found.items()))


def judge_sessions(stored: StoredComparison) -> list[ComparedCase]:
    """Judge all cases of stored sessions, the controls among them."""
    header, found = stored.header, collect_sessions(stored)
    apart = {key: said for key, each in found.items() if (said := each.judge_apart())}
    alike = {key: each for key, each in found.items() if key not in apart}
    results = paired_verdicts.judge_unpaired([describe_difference(header, each) for each in alike.values()])
    by_key = dict(zip(alike, results, strict=True))
    judged = []
    for key, each in found.items():
        if key in apart:
            case = describe_case(header, each.pairs, *apart[key])
        else:
            case = describe_judged(header, each, by_key[key])
        judged.append(replace(case, pairs=0, unpaired=each.launches))
    return judged


def describe_difference(header: ComparisonHeader, values: StoredValues) -> paired_verdicts.UnpairedCase:
    """Describe a case for the statistics."""
    known = (values.noise.get(side) for side in SIDES)
    old, new = (Prediction(noise.deviation, noise.degrees) if noise else None for noise in known)
    margin = math.log1p(header.margin(values.pairs.case))
    return paired_verdicts.UnpairedCase(values.difference, old, new, margin, values.pairs.exact)


def describe_judged(header: ComparisonHeader, values: StoredValues, result: UnpairedResult) -> ComparedCase:
    """Put together what is shown of a case that both sides have."""
    lower, upper = result.limits or (-math.inf, math.inf)
    ratio = paired_verdicts.PairedRatio(values.difference, lower, upper, max(values.launches))
    paired = PairedResult(result.verdict, ratio, result.q)
    reason = explain_undecided(result, values.noise, values.pairs.exact)
    return describe_case(header, values.pairs, ComparisonVerdict(result.verdict.value), reason, paired)


def explain_undecided(result: UnpairedResult, noise: data.CaseNoise, exact: bool) -> str:
    """Explain why a case is undecided; empty if it is not."""
    if result.verdict != PairedVerdict.UNDECIDED or exact:
        return ""
    if result.unseen is None:
        return "nothing is known of how far its launches and sessions differ; calibrate, or measure in turn"
    known = "on other machines" if TABLE in {each.source for each in noise.values()} else "here"
    apart = format_percent(math.expm1(result.unseen))
    return f"two sessions of it differ by up to {apart} without a cause, {known}; measure in turn"
