"""From passes to pairs: what each case took on both sides, launch by launch, and which pairs count."""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from postprocess.base.formats import compute_slowdown
from postprocess.features.compare.data import NEW, OLD, SIDES, CaseValue, ComparisonPass, SharedCase
from postprocess.model.measurement import CoreLatency
from postprocess.model.verdict import Verdict
from postprocess.stats.launches import MOVED, is_same_place, locate_case

PAIRS_OF_BLOCK = 2
BLOCK = 4  #: passes


def draw_block(seed: int, number: int) -> tuple[str, str, str, str]:
    """Draw the sides of a block's passes. The same seed and number give the same.

    Blocks come in twos of either kind: over each two, a drift that is even favours neither side.

    :param number: from 1 on
    """
    generator = random.Random(f"{seed}:{(number - 1) // 2}")
    first = generator.random() < 0.5
    if number % 2 == 0:
        first = not first
    return (OLD, NEW, NEW, OLD) if first else (NEW, OLD, OLD, NEW)


def draw_sign(seed: int, number: int, side: str) -> int:
    """Draw which of the two launches of a side plays the new one in the control of unchanged cases."""
    return random.Random(f"{seed}:{number}:{side}").choice((-1, 1))


@dataclass
class CasePairs:
    """All that was measured of a case. Values are in ``unit``."""

    key: str
    unit: str = "s"
    exact: bool = False
    values: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    differences: list[float] = field(default_factory=list)  #: ln(new / old); above 0 is worse
    #: The same of two launches of one side, which are unchanged: the control.
    unchanged: list[float] = field(default_factory=list)
    void: Counter[str] = field(default_factory=Counter)  #: pairs that do not count, by reason
    #: Verdicts of launches that failed, or skipped the case, with their reasons, by side.
    failures: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: {side: [] for side in SIDES})
    #: The same of launches that the machine lost: they count as failed only on a side that has no value at all.
    lost: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: {side: [] for side in SIDES})
    launches: Counter[str] = field(default_factory=Counter)  #: by side, that had it in their plan
    measured: Counter[str] = field(default_factory=Counter)  #: by side, those with a value
    foreseen: Counter[str] = field(default_factory=Counter)  #: by side, skipped as it cannot have the program
    rerun: dict[str, str] = field(default_factory=dict)  #: by side

    @cached_property
    def case(self) -> SharedCase:
        return SharedCase.from_key(self.key)

    def failed(self, side: str) -> list[tuple[str, str]]:
        """Return the failures of a side that are no skips."""
        own = [failure for failure in self.failures[side] if failure[0] != Verdict.SKIPPED]
        return own if self.measured[side] else own + self.lost[side]

    def skipped(self, side: str) -> str:
        """Return why a side has not measured the case on purpose; empty if it has."""
        return next((why for verdict, why in self.failures[side] if verdict == "skipped"), "")

    def lacks_program(self, side: str) -> bool:
        """Return whether a side cannot have the program, by every launch: a reason known before any trial."""
        return 0 < self.launches[side] == self.foreseen[side]


@dataclass(frozen=True)
class Measured:
    """A value, and where and how it was measured."""

    value: CaseValue
    place: Mapping[str, str]


def collect_pairs(passes: Sequence[ComparisonPass], seed: int) -> dict[str, CasePairs]:
    """Collect the pairs of all cases, by key, in the order of keys.

    :param seed: of the comparison, from which the control's signs are drawn
    """
    found: dict[str, CasePairs] = {}
    blocks: dict[int, list[ComparisonPass]] = defaultdict(list)
    for each in passes:
        blocks[each.block].append(each)
        for key, said in each.values:
            note_launch(found.setdefault(key, CasePairs(key)), each.side, said)
    for number, members in sorted(blocks.items()):
        if number:
            ordered = sorted(members, key=lambda each: each.position)
            collect_block(found, number, ordered, seed)
    return dict(sorted(found.items()))


def note_launch(case: CasePairs, side: str, said: CaseValue) -> None:
    """Note that a launch of a side had a case in its plan, and what failed it."""
    case.launches[side] += 1
    case.foreseen[side] += said.foreseen
    if said.rerun:
        case.rerun[side] = said.rerun
    if said.verdict and said.lost:
        case.lost[side].append((said.verdict, said.reason))
        case.void[f"{said.verdict}: {said.reason}"] += 1
    elif said.verdict:
        case.failures[side].append((said.verdict, said.reason))
    else:
        case.measured[side] += 1
        case.unit, case.exact = said.unit, said.exact


def collect_block(
    found: Mapping[str, CasePairs], number: int, passes: Sequence[ComparisonPass], seed: int
) -> None:
    """Collect the pairs of a block: its first two passes, and its last two; and those of each side."""
    measured = [index_values(each) for each in passes]
    for start in range(0, len(passes) - 1, PAIRS_OF_BLOCK):
        one, two = measured[start : start + PAIRS_OF_BLOCK]
        old, new = (one, two) if passes[start].side == OLD else (two, one)
        for key in old.keys() & new.keys():
            add_pair(found[key], old[key], new[key])
    for side in SIDES:
        own = [values for each, values in zip(passes, measured, strict=True) if each.side == side]
        if len(own) == PAIRS_OF_BLOCK:
            sign = draw_sign(seed, number, side)
            for key in own[0].keys() & own[1].keys():
                if not find_pair_problem(own[0][key], own[1][key]):
                    difference = compute_difference(own[0][key].value, own[1][key].value)
                    found[key].unchanged.append(sign * difference)


def index_values(each: ComparisonPass) -> dict[str, Measured]:
    return {
        key: Measured(said, launch.place)
        for launch in each.launches
        for key, said in launch.cases.items()
        if said.value is not None and not said.verdict
    }


def add_pair(case: CasePairs, old: Measured, new: Measured) -> None:
    """Add a pair to a case, or the reason why it does not count."""
    if reason := find_pair_problem(old, new):
        case.void[reason] += 1
        return
    case.differences.append(compute_difference(old.value, new.value))
    for side, each in ((OLD, old), (NEW, new)):
        case.values[side].append(each.value.value or 0.0)


def compute_difference(old: CaseValue, new: CaseValue) -> float:
    """Compute ln(new / old), its sign such that more is worse."""
    return math.log(compute_slowdown(new.value or 0.0, old.value or 0.0, old.unit))


def find_pair_problem(old: Measured, new: Measured) -> str:
    """Find the first thing in which two launches did not run a case alike; empty if there is none."""
    return compare_places(old.place, new.place) or compare_cores(old.value, new.value)


def compare_cores(old: CaseValue, new: CaseValue) -> str:
    """Describe how the cores differ that two launches of a case had; empty if they do not, or nothing tells."""
    here, there = (
        locate_case(CoreLatency(*value.core_latency) if value.core_latency else None) for value in (old, new)
    )
    if MOVED in (here, there):
        return "cores differ: the ranks were moved in a launch"
    return "" if is_same_place(here, there) else "cores differ: they were farther apart in one launch"


def compare_places(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Describe the first thing in which two launches of a pair did not run alike; empty if there is none."""
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            return f"{name} differs: {old.get(name) or 'unknown'} and {new.get(name) or 'unknown'}"
    return ""
