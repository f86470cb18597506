"""Groups: cases with one verdict at one place, by routine and range of sizes, in a line each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from postprocess.base.formats import first_of, plural, size
from postprocess.features.compare.cases import BAD, ComparedCase, ComparisonVerdict

SHOWN = (
    *BAD,
    ComparisonVerdict.UNDECIDED,
    ComparisonVerdict.FASTER,
    ComparisonVerdict.MENDED,
    ComparisonVerdict.ONLY_NEW,
)
NAMED = 6  #: routines that a line names
Place = tuple[str, str, str, str]  #: partition, program, state of the caches, layout


@dataclass(frozen=True)
class CaseGroup:
    """Cases of some routines with one verdict at one place, over one range of sizes."""

    verdict: ComparisonVerdict
    place: Place
    routines: tuple[str, ...]
    sizes: tuple[int, int]  #: smallest and largest
    cases: tuple[ComparedCase, ...]
    of: int  #: cases of these routines in this range, whatever their verdict

    @property
    def words(self) -> str:
        """The group in one line."""
        low, high = self.sizes
        range_ = size(low) if low == high else f"{size(low)} to {size(high)}"
        partition, program, variant, layout = self.place
        where = f"{describe_layout(layout)} ({program}, {variant}, {partition})"
        text = f"{first_of(self.routines, NAMED)}, {range_}, at {where}"
        ratios = [each.ratio for each in self.cases if each.ratio is not None]
        least, most = (f"{ratio:.2f}" for ratio in (min(ratios, default=0), max(ratios, default=0)))
        times = f", {least if least == most else f'{least} to {most}'} times" if ratios else ""
        return f"{text}: {len(self.cases)} of {plural(self.of, 'case')}{times}"


def describe_layout(layout: str) -> str:
    """Describe a layout such as ``4x2`` in words."""
    processes, _, per_node = layout.partition("x")
    return f"{plural(int(processes), 'process', 'es')}, {per_node} a node"


def place_of(each: ComparedCase) -> Place:
    """Return where and how a case was measured."""
    case = each.case
    return case.partition, case.program, case.variant, case.layout


def group_cases(cases: Sequence[ComparedCase]) -> list[CaseGroup]:
    """Group the cases that people must look at, the most important verdicts first, large groups first."""
    groups = []
    for verdict in SHOWN:
        own: dict[tuple[Place, str], list[ComparedCase]] = defaultdict(list)
        for each in cases:
            if each.verdict == verdict:
                own[place_of(each), each.case.label].append(each)
        joined: dict[tuple[Place, int, int], list[ComparedCase]] = defaultdict(list)
        for (place, _), members in own.items():
            sizes = [each.case.bytes for each in members]
            joined[place, min(sizes), max(sizes)] += members
        found = [
            make_group(verdict, place, (low, high), members, cases)
            for (place, low, high), members in joined.items()
        ]
        groups += sorted(found, key=lambda each: -len(each.cases))
    return groups


def make_group(
    verdict: ComparisonVerdict,
    place: Place,
    sizes: tuple[int, int],
    members: Sequence[ComparedCase],
    cases: Sequence[ComparedCase],
) -> CaseGroup:
    """Make a group of its members."""
    routines = tuple(sorted({each.case.label for each in members}))
    of = sum(
        place_of(each) == place
        and each.case.label in routines
        and sizes[0] <= each.case.bytes <= sizes[1]
        for each in cases
    )
    return CaseGroup(verdict, place, routines, sizes, tuple(members), of)
