"""A case of a comparison: its verdict, and what the verdict rests on."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from postprocess.base.formats import plural
from postprocess.base.units import compute_slowdown
from postprocess.features.compare.data import NEW, OLD, ComparisonHeader, SharedCase
from postprocess.features.compare.modes import Contradiction, find_contradiction
from postprocess.features.compare.pairs import CasePairs
from postprocess.model.verdict import Verdict
from postprocess.stats.band import LARGE_BYTES
from postprocess.stats.comparison.paired_verdicts import PairedResult
from postprocess.stats.shrinkage import SMALL_BYTES


class ComparisonVerdict(str, Enum):
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


BAD = (
    ComparisonVerdict.BROKEN,
    ComparisonVerdict.ONLY_OLD,
    ComparisonVerdict.FAILED,
    ComparisonVerdict.SLOWER,
)


@dataclass(frozen=True)
class ComparedCase:
    """A case with its verdict, and what the verdict rests on. Values are in ``unit``."""

    case: SharedCase
    verdict: ComparisonVerdict
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
    #: Launches of each side, where they were not taken in turn: nothing but the machine's noise is known then.
    unpaired: tuple[int, int] | None = None
    wrong_data: bool = (
        False  #: whether a launch of the new side received wrong data, which is never waived
    )
    contradiction: Contradiction | None = None  #: between the medians and the pairs

    @property
    def unclear(self) -> str:
        """What stands in the place of a change that no ratio tells, as medians contradict pairs; else empty."""
        open_case = self.verdict == ComparisonVerdict.UNDECIDED
        return self.contradiction.name if self.contradiction and open_case else ""


def margin_of(case: SharedCase, margins: Sequence[float]) -> float:
    """Return the margin of a case's class of sizes, as a fraction."""
    return margins[(case.bytes >= SMALL_BYTES) + (case.bytes >= LARGE_BYTES)]


def group_of_sizes(case: SharedCase) -> tuple[str, int]:
    """Return program and class of sizes: cases of one group scatter alike."""
    return case.program, (case.bytes >= SMALL_BYTES) + (case.bytes >= LARGE_BYTES)


def judge_presence(case: CasePairs) -> tuple[ComparisonVerdict, str] | None:
    """Judge what is missing or fails on a side; None if both sides measure it."""
    old, new = case.failed(OLD), case.failed(NEW)
    if old and new:
        return (
            ComparisonVerdict.FAILED,
            f"old: {tell_failures(case, OLD)}; new: {tell_failures(case, NEW)}",
        )
    if new:
        return ComparisonVerdict.BROKEN, tell_failures(case, NEW)
    there = {side: bool(case.launches[side]) and not case.skipped(side) for side in (OLD, NEW)}
    if not any(there.values()):
        return ComparisonVerdict.SKIPPED, case.skipped(OLD) or case.skipped(NEW)
    if not there[NEW]:
        return ComparisonVerdict.ONLY_OLD, case.skipped(NEW) or "not in the plan of the new side"
    if not there[OLD]:
        return ComparisonVerdict.ONLY_NEW, case.skipped(OLD) or "not in the plan of the old side"
    if old and not case.measured[OLD]:
        return ComparisonVerdict.MENDED, tell_failures(case, OLD)
    return None  # an old side that fails now and then is held against by its speed


def tell_failures(case: CasePairs, side: str) -> str:
    """Tell how often a case failed on a side, and why the first time."""
    failed = case.failed(side)
    verdict, reason = failed[0]
    often = f" ({len(failed)} of {plural(case.launches[side], 'launch', 'es')})"
    return f"{verdict}: {reason}{often}"


def describe_case(
    header: ComparisonHeader,
    pairs: CasePairs,
    verdict: ComparisonVerdict,
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
    margin = margin_of(case, header.margins)
    contradiction = None
    if estimate and old and new and pairs.differences:
        contradiction = find_contradiction(
            pairs.differences[:used],
            math.log(compute_slowdown(new, old, pairs.unit)),
            estimate.center,
            math.log1p(margin),
        )
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
        margin,
        dict(pairs.void),
        pairs.rerun,
        wrong_data=any(verdict == Verdict.INCORRECT for verdict, _ in pairs.failures[NEW]),
        contradiction=contradiction,
    )
