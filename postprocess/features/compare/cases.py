"""A case of a comparison: its verdict, and what the verdict rests on."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from postprocess.base.formats import compute_slowdown, factor, first_of, format_signed, plural, size
from postprocess.features.compare.data import NEW, OLD, SIDES, CasePlace, ComparisonHeader, SharedCase
from postprocess.features.compare.pairs import CasePairs
from postprocess.model.verdict import Verdict
from postprocess.stats.paired_verdicts import PairedCase, PairedResult

LEAST = 2  #: pairs of a mode
SHARE = 0.4  #: of the whole range that lies between two modes, at least


@dataclass(frozen=True)
class PairMode:
    """Pairs of launches whose ratios lie together."""

    pairs: int
    ratio: float  #: the median of them


@dataclass(frozen=True)
class Contradiction:
    """What the medians of both sides say, and what the pairs do."""

    medians: float  #: of the new side over the old one; above 1 is worse in every unit
    ratio: float  #: by the pairs
    pairs: tuple[float, ...]  #: the ratio of each, the smallest first
    modes: tuple[PairMode, ...]  #: two, or none if the pairs merely scatter

    @property
    def name(self) -> str:
        """What stands in the place of a change."""
        return "two modes" if self.modes else "contradictory"

    @property
    def words(self) -> str:
        """The contradiction in a sentence."""
        medians, pairs = (format_signed(median - 1) for median in (self.medians, self.ratio))
        said = f"the medians differ by {medians}, the pairs by {pairs}"
        if self.modes:
            low, high = (f"{plural(mode.pairs, 'pair')} about {factor(mode.ratio)}" for mode in self.modes)
            return f"two modes, {low} and {high} times: {said}"
        ends = f"{factor(self.pairs[0])} to {factor(self.pairs[-1])} times"
        return f"{said}: single pairs go from {ends}"


def find_contradiction(
    differences: Sequence[float], medians: float, center: float, margin: float
) -> Contradiction | None:
    """Find whether medians and pairs contradict each other by more than the margin; None if they agree.

    :param differences: ln(new / old) of each pair; above 0 is worse
    :param medians: the same of the medians of both sides
    :param center: the same as the pairs estimate it
    :param margin: on the logarithm
    """
    if len(differences) < LEAST or abs(medians - center) <= margin:
        return None
    ordered = sorted(differences)
    ratios = tuple(map(math.exp, ordered))
    return Contradiction(math.exp(medians), math.exp(center), ratios, split_modes(ordered, margin))


def split_modes(ordered: Sequence[float], margin: float) -> tuple[PairMode, ...]:
    """Split differences at their widest gap; none if it is narrow, or leaves too few on a side."""
    gaps = [after - before for before, after in pairwise(ordered)]
    widest = max(range(len(gaps)), key=gaps.__getitem__)
    halves = ordered[: widest + 1], ordered[widest + 1 :]
    far = gaps[widest] > max(margin, SHARE * (ordered[-1] - ordered[0]))
    if not far or min(map(len, halves)) < LEAST:
        return ()
    return tuple(PairMode(len(half), math.exp(statistics.median(half))) for half in halves)


class ComparisonVerdict(str, Enum):
    """The verdict on a case: its word, its class in pages, and its mark beside a ratio.

    The order is that in which people need to see them.
    """

    tone: str  #: ``slower`` fails the new side; ``same`` needs no attention
    mark: str

    def __new__(cls, word: str, tone: str = "undecided", mark: str = "") -> ComparisonVerdict:
        """Make a member of its word and how it is shown."""
        verdict = str.__new__(cls, word)
        verdict._value_, verdict.tone, verdict.mark = word, tone, mark
        return verdict

    BROKEN = "broken", "slower"  #: fails on the new side alone
    ONLY_OLD = "only old", "slower"  #: the new side does not measure it
    FAILED = "failed", "slower"  #: fails on both sides
    SLOWER = "slower", "slower", "▲"
    UNDECIDED = "undecided", "undecided", "?"
    NOT_SLOWER = "not slower", "same"
    SAME = "same", "same"
    FASTER = "faster", "faster", "▼"
    MENDED = "mended", "faster"  #: failed on the old side alone
    ONLY_NEW = "only new"
    SKIPPED = "skipped"  #: on purpose, on both sides
    NOT_COMPARED = "not compared"  #: of a program that one side cannot have, which was known beforehand

    def __str__(self) -> str:
        return self.value


BAD = tuple(verdict for verdict in ComparisonVerdict if verdict.tone == "slower")
APART = (ComparisonVerdict.SKIPPED, ComparisonVerdict.NOT_COMPARED)  #: of which nothing was to be compared
SHOWN = tuple(verdict for verdict in ComparisonVerdict if verdict.tone != "same" and verdict not in APART)


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
    lacked_by: str = ""  #: of what is not compared: the side that cannot have its program
    wrong_data: bool = False  #: whether a launch of the new side received wrong data, which is never waived
    contradiction: Contradiction | None = None  #: between the medians and the pairs

    @property
    def unclear(self) -> str:
        """What stands in the place of a change that no ratio tells, as medians contradict pairs; else empty."""
        open_case = self.verdict == ComparisonVerdict.UNDECIDED
        return self.contradiction.name if self.contradiction and open_case else ""


def build_paired_case(
    header: ComparisonHeader, case: SharedCase, differences: Sequence[float], exact: bool
) -> PairedCase:
    """Return a case for the statistics. Cases of one program and class of sizes scatter alike."""
    group = case.program, case.size_class
    return PairedCase(tuple(differences), math.log1p(header.margin(case)), group, exact)


def judge_presence(case: CasePairs) -> tuple[ComparisonVerdict, str] | None:
    """Judge what is missing or fails on a side; None if both sides measure it."""
    old, new = case.failed(OLD), case.failed(NEW)
    if old and new:
        return ComparisonVerdict.FAILED, f"old: {tell_failures(case, OLD)}; new: {tell_failures(case, NEW)}"
    if new:
        return ComparisonVerdict.BROKEN, tell_failures(case, NEW)
    there = {side: bool(case.launches[side]) and not case.skipped(side) for side in (OLD, NEW)}
    if not any(there.values()):
        return ComparisonVerdict.SKIPPED, case.skipped(OLD) or case.skipped(NEW)
    if not old and any(map(case.lacks_program, SIDES)):
        return ComparisonVerdict.NOT_COMPARED, case.skipped(OLD) or case.skipped(NEW)
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
    result: PairedResult | None = None,
) -> ComparedCase:
    """Put together what is shown of a case.

    :param result: None if its speed was not judged
    """
    estimate = result.estimate if result else None
    used = estimate.pairs if estimate else len(pairs.differences)
    sides = [pairs.values[side][:used] for side in (OLD, NEW)]
    old, new = (statistics.median(values) if values else None for values in sides)
    spreads = [statistics.stdev(map(math.log, values)) for values in sides if len(values) > 1]
    finite = estimate is not None and math.isfinite(estimate.lower)
    margin = header.margin(pairs.case)
    apart = verdict == ComparisonVerdict.NOT_COMPARED
    contradiction = None
    if estimate and old and new and pairs.differences:
        contradiction = find_contradiction(
            pairs.differences[:used],
            math.log(compute_slowdown(new, old, pairs.unit)),
            estimate.center,
            math.log1p(margin),
        )
    return ComparedCase(
        case=pairs.case,
        verdict=verdict,
        reason=reason,
        unit=pairs.unit,
        old=old,
        new=new,
        spreads=(spreads[0], spreads[1]) if len(spreads) == len(sides) else None,
        pairs=used,
        ratio=estimate.ratio if estimate else None,
        limits=estimate.limits if estimate and finite else None,
        q=result.q if result else None,
        pairs_more=result.pairs_more if result else None,
        margin=margin,
        void=dict(pairs.void),
        rerun=pairs.rerun,
        lacked_by=next((side for side in SIDES if apart and pairs.lacks_program(side)), ""),
        wrong_data=any(verdict == Verdict.INCORRECT for verdict, _ in pairs.failures[NEW]),
        contradiction=contradiction,
    )


NAMED = 6  #: routines that a line names


@dataclass(frozen=True)
class CaseGroup:
    """Cases of some routines with one verdict at one place, over one range of sizes."""

    verdict: ComparisonVerdict
    place: CasePlace
    routines: tuple[str, ...]
    sizes: tuple[int, int]  #: smallest and largest
    cases: tuple[ComparedCase, ...]
    of: int  #: cases of these routines in this range, whatever their verdict

    @property
    def words(self) -> str:
        """The group in one line."""
        low, high = self.sizes
        range_ = size(low) if low == high else f"{size(low)} to {size(high)}"
        at = self.place
        where = f"{at.layout_words} ({at.program}, {at.variant}, {at.partition})"
        text = f"{first_of(self.routines, NAMED)}, {range_}, at {where}"
        ratios = [case.ratio for case in self.cases if case.ratio is not None]
        least, most = (f"{ratio:.2f}" for ratio in (min(ratios, default=0), max(ratios, default=0)))
        times = f", {least if least == most else f'{least} to {most}'} times" if ratios else ""
        return f"{text}: {len(self.cases)} of {plural(self.of, 'case')}{times}"


def group_cases(cases: Sequence[ComparedCase]) -> list[CaseGroup]:
    """Group the cases that people must look at, the most important verdicts first, large groups first."""
    groups = []
    for verdict in SHOWN:
        routines: dict[tuple[CasePlace, str], list[ComparedCase]] = defaultdict(list)
        for each in cases:
            if each.verdict == verdict:
                routines[each.case.place, each.case.label].append(each)
        alike: dict[tuple[CasePlace, int, int], list[ComparedCase]] = defaultdict(list)
        for (place, _), members in routines.items():
            sizes = [member.case.bytes for member in members]
            alike[place, min(sizes), max(sizes)] += members
        found = [make_group(members, cases) for members in alike.values()]
        groups += sorted(found, key=lambda each: -len(each.cases))
    return groups


def make_group(members: Sequence[ComparedCase], cases: Sequence[ComparedCase]) -> CaseGroup:
    """Make a group of its members, which are of one verdict and place; ``cases`` are all there are."""
    place = members[0].case.place
    routines = {member.case.label for member in members}
    sizes = [member.case.bytes for member in members]
    low, high = min(sizes), max(sizes)
    of = sum(
        case.case.place == place and case.case.label in routines and low <= case.case.bytes <= high
        for case in cases
    )
    return CaseGroup(members[0].verdict, place, tuple(sorted(routines)), (low, high), tuple(members), of)
