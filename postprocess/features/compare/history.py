"""The history of an MPI: each case over the versions, measured in rounds of drawn order, and where it steps.

Each round launches every version once. Two versions that follow each other are judged as the two sides of a
comparison are: by the differences within each round, with one look at the end. Of all steps called slower (or
faster) 5% at most are false on average, over all cases and versions.
"""

import math
import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from postprocess.features.compare.cases import build_paired_case
from postprocess.features.compare.data import CaseValue, ComparisonHeader, SharedCase, StoredComparison
from postprocess.features.compare.pairs import Measured, compute_difference, find_pair_problem, index_values
from postprocess.model.verdict import Verdict
from postprocess.stats.paired_verdicts import PairedResult, PairedVerdict, judge_pairs

LEAST_ROUNDS = 6  #: fewer give no interval
STEPS = (PairedVerdict.SLOWER, PairedVerdict.FASTER)


@dataclass(frozen=True)
class VersionValue:
    """What was measured of a case with one version. Values are in the unit of the case."""

    value: float | None  #: median of its launches; None if it has none
    launches: int
    problem: str = ""  #: what failed it, or why it was left out
    failed: bool = False  #: whether it is a failure, and nothing that was left out on purpose


@dataclass(frozen=True)
class VersionStep:
    """The change of a case from one version to the next that has a value."""

    before: int  #: number of the version
    after: int
    verdict: PairedVerdict
    ratio: float | None  #: above 1 is worse in every unit
    limits: tuple[float, float] | None
    rounds: int  #: in which both were measured


@dataclass(frozen=True)
class CaseHistory:
    case: SharedCase
    unit: str
    versions: tuple[VersionValue, ...]
    steps: tuple[VersionStep, ...]
    rerun: Mapping[str, str]  #: command that measures just this case, by environment

    @property
    def found(self) -> list[VersionStep]:
        """The steps that are proven."""
        return [step for step in self.steps if step.verdict in STEPS]

    @property
    def failures(self) -> list[int]:
        """Numbers of the versions with which it failed."""
        return [n for n, each in enumerate(self.versions) if each.failed]


@dataclass(frozen=True)
class JudgedHistory:
    header: ComparisonHeader
    rounds: int
    seconds: float
    cases: tuple[CaseHistory, ...]
    controls: tuple[CaseHistory, ...]  #: what no MPI has a part in

    @property
    def releases(self) -> list[str]:
        return [version.label.rpartition("@")[2] for version in self.header.versions]

    @property
    def moved(self) -> list[CaseHistory]:
        """The controls that stepped: then the machine did."""
        return [control for control in self.controls if control.found]

    @property
    def status(self) -> int:
        """The exit status: 3 if the machine changed, 1 if a case became slower or fails, else 0."""
        if any(case.failures for case in self.cases):
            return 1
        if self.moved or not any(case.steps for case in self.cases):
            return 3
        steps = (step for case in self.cases for step in case.found)
        return int(any(step.verdict == PairedVerdict.SLOWER for step in steps))

    def count_steps(self, after: int) -> dict[str, int]:
        """Count the cases by their verdict at the step to a version, without zeros."""
        counted = Counter(s.verdict for case in self.cases for s in case.steps if s.after == after)
        return {str(verdict): counted[verdict] for verdict in PairedVerdict if counted[verdict]}


@dataclass
class CaseRounds:
    """All that was measured of a case, by the environment of a version."""

    unit: str = "s"
    exact: bool = False
    measured: dict[str, dict[int, Measured]] = field(default_factory=lambda: defaultdict(dict))  #: and by round
    problems: dict[str, CaseValue] = field(default_factory=dict)  #: the first of each
    rerun: dict[str, str] = field(default_factory=dict)


def draw_round(seed: int, number: int, versions: Sequence[str]) -> list[str]:
    """Draw the order of the versions in a round. The same seed and number give the same."""
    order = list(versions)
    random.Random(f"{seed}:round:{number}").shuffle(order)
    return order


def judge_history(stored: StoredComparison) -> JudgedHistory:
    header, rounds = stored.header, count_rounds(stored)
    found = collect_rounds(stored)
    names = list(header.sides)
    changes = [(key, *change) for key, each in found.items() for change in list_changes(each, names)]
    cases = [
        build_paired_case(header, SharedCase.from_key(key), differences, found[key].exact)
        for key, _, _, differences in changes
    ]
    looks = (max(rounds, LEAST_ROUNDS),)  # of simulated time one is enough
    results = judge_pairs(cases, looks, LEAST_ROUNDS)
    steps: dict[str, list[VersionStep]] = {key: [] for key in found}
    for (key, before, after, differences), result in zip(changes, results, strict=True):
        steps[key].append(describe_step(before, after, len(differences), result))
    judged = [describe_history(key, each, names, steps[key]) for key, each in found.items()]
    return JudgedHistory(
        header,
        rounds,
        stored.seconds,
        tuple(history for history in judged if not history.case.is_control),
        tuple(history for history in judged if history.case.is_control),
    )


def count_rounds(stored: StoredComparison) -> int:
    """Count the rounds that are whole: after these one looks, once."""
    blocks = Counter(each.block for each in stored.passes if each.block)
    most = max(blocks.values(), default=0)
    return sum(number == most for number in blocks.values())


def collect_rounds(stored: StoredComparison) -> dict[str, CaseRounds]:
    """Collect what was measured of each case, by key, in the order of keys."""
    found: dict[str, CaseRounds] = {}
    for each in stored.passes:
        for key, said in each.values:
            known = found.setdefault(key, CaseRounds())
            if said.rerun:
                known.rerun[each.side] = said.rerun
            if said.verdict:
                known.problems.setdefault(each.side, said)
        if each.block == 0:
            continue
        for key, measured in index_values(each).items():
            known = found[key]
            known.unit, known.exact = measured.value.unit, measured.value.exact
            known.measured[each.side][each.block] = measured
    return dict(sorted(found.items()))


def list_changes(case: CaseRounds, names: Sequence[str]) -> Iterator[tuple[int, int, list[float]]]:
    """List the changes of a case from a version to the next: their numbers, and ln(after / before) by round.

    Above 0 is worse. Only rounds count in which both were measured alike; without any, nothing can be judged.
    """
    with_values = [n for n, name in enumerate(names) if name in case.measured]
    for before, after in pairwise(with_values):
        old, new = case.measured[names[before]], case.measured[names[after]]
        differences = [
            compute_difference(old[number].value, new[number].value)
            for number in sorted(old.keys() & new.keys())
            if not find_pair_problem(old[number], new[number])
        ]
        if differences:
            yield before, after, differences


def describe_step(before: int, after: int, rounds: int, result: PairedResult) -> VersionStep:
    estimate = result.estimate
    finite = estimate is not None and math.isfinite(estimate.lower)
    return VersionStep(
        before,
        after,
        result.verdict,
        estimate.ratio if estimate else None,
        estimate.limits if estimate and finite else None,
        rounds,
    )


def describe_history(
    key: str, case: CaseRounds, names: Sequence[str], steps: Sequence[VersionStep]
) -> CaseHistory:
    versions = []
    for name in names:
        values = [each.value.value or 0.0 for each in case.measured.get(name, {}).values()]
        problem = case.problems.get(name)
        failed = problem is not None and problem.verdict != Verdict.SKIPPED
        said = f"{problem.verdict}: {problem.reason}" if problem else ""
        if not values and not problem:
            said = "not in the plan"
        median = statistics.median(values) if values else None
        versions.append(VersionValue(median, len(values), said, failed))
    return CaseHistory(SharedCase.from_key(key), case.unit, tuple(versions), tuple(steps), dict(case.rerun))
