"""Pictures of a comparison, a card for each routine at each place.

A card has the curves of both sides over bytes, and the ratio of each size with its interval (a forest plot).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from postprocess.base.formats import factor, size
from postprocess.base.units import SECONDS, compute_slowdown
from postprocess.features.compare import text
from postprocess.features.compare.cases import ComparedCase, ComparisonVerdict, Place, describe_layout, place_of
from postprocess.report.panels import Panel, PanelLine, Point

DRAWN = 60  #: curves of a page, those of the worst routines: a curve takes 10 kB
PRINTED = 16  #: cards of a printed page
SIDES = ("old", "new")
#: Ends of the axis of ratios that are never passed: what lies beyond is drawn at the edge
NARROWEST, WIDEST = math.log(1.1), math.log(8.0)
#: Ratios that may be written at the axis
TICKS = (1 / 8, 1 / 4, 1 / 2, 1 / 1.5, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 4.0, 8.0)
APART = 0.2  #: of two labels, as a share of the axis


@dataclass(frozen=True)
class RatioAxis:
    """The logarithmic axis that all intervals of a page share."""

    low: float  #: ln of its left end, below 0
    high: float  #: ln of its right end, above 0

    def locate(self, ratio: float) -> float:
        """Return where a ratio lies, in per cent of the width; at an edge if it is beyond."""
        share = (math.log(ratio) - self.low) / (self.high - self.low)
        return round(100 * min(max(share, 0.02), 0.98), 1)

    @property
    def one(self) -> float:
        """Where nothing changed."""
        return self.locate(1.0)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Ratios that are written, each with its place: 1, and outwards those for which there is room."""
        room = 0.03 * (self.high - self.low)
        inside = [tick for tick in TICKS if self.low + room < math.log(tick) < self.high - room]
        kept = [1.0]
        for tick in sorted(inside, key=lambda ratio: -abs(math.log(ratio))):
            if all(abs(self.locate(tick) - self.locate(k)) >= 100 * APART for k in kept):
                kept.append(tick)
        return [(self.locate(each), f"{each:.3g}") for each in sorted(kept)]


@dataclass(frozen=True)
class ForestRow:
    """The ratio of a case with its interval, in places on the axis in per cent."""

    name: str  #: the size
    verdict: str
    tone: str
    told: str  #: the ratio with its interval, or why there is none
    title: str
    center: float | None
    ends: tuple[float, float] | None
    margin: tuple[float, float]
    pairs: tuple[float, ...] = ()  #: of each pair, where the medians contradict them
    settled: bool = True  #: whether the center is that of a look, and not of the pairs until now


@dataclass(frozen=True)
class RoutineCard:
    """A routine at a place."""

    place: str
    title: str
    curve: Panel | None
    rows: tuple[ForestRow, ...]
    printed: bool


def build_cards(cases: Sequence[ComparedCase]) -> tuple[RatioAxis, list[RoutineCard]]:
    """Build a card of each routine at each place, those with the worst cases first at their place."""
    found: dict[tuple[Place, str], list[ComparedCase]] = {}
    for each in text.order_by_badness(cases):
        found.setdefault((place_of(each), each.case.label), []).append(each)
    axis = build_axis(cases)
    drawn = list(found)[:DRAWN]
    printed = set(list(found)[:PRINTED])
    cards = [
        RoutineCard(
            describe_place(place),
            label,
            build_curve(label, own) if (place, label) in drawn else None,
            tuple(build_row(axis, each) for each in sorted(own, key=lambda e: e.case.bytes)),
            (place, label) in printed,
        )
        for (place, label), own in sorted(found.items(), key=lambda item: item[0][0])
    ]
    return axis, cards


def describe_place(place: Place) -> str:
    """Describe a place in words."""
    partition, program, variant, layout = place
    return f"{program}, {describe_layout(layout)}, {variant}, {partition}"


def build_axis(cases: Sequence[ComparedCase]) -> RatioAxis:
    """Build the axis that holds all ratios, and most intervals."""
    ratios = [math.log(ratio) for case in cases if (ratio := find_ratio(case))]
    limits = sorted(math.log(limit) for case in cases for limit in case.limits or () if limit > 0)
    cut = len(limits) // 20
    inner = limits[cut : len(limits) - cut]
    low, high = min([*ratios, *inner, -NARROWEST]), max([*ratios, *inner, NARROWEST])
    room = 0.06 * (high - low)
    return RatioAxis(max(low - room, -WIDEST), min(high + room, WIDEST))


def find_ratio(each: ComparedCase) -> float | None:
    """Find the ratio of a case; before the first look that of the medians, None without any."""
    if each.ratio is None and each.old and each.new and each.pairs:
        return compute_slowdown(each.new, each.old, each.unit)
    return each.ratio


def build_row(axis: RatioAxis, each: ComparedCase) -> ForestRow:
    """Build the row of a case."""
    ratio, settled = find_ratio(each), each.ratio is not None
    margin = 1 + each.margin
    return ForestRow(
        size(each.case.bytes) if each.case.bytes else text.DASH,
        str(each.verdict),
        each.verdict.tone,
        tell_row(each),
        f"{each.case.words}: {each.verdict}, {text.format_interval(each)}",
        axis.locate(ratio) if ratio and not each.unclear else None,
        (axis.locate(each.limits[0]), axis.locate(each.limits[1])) if each.limits else None,
        (axis.locate(1 / margin), axis.locate(margin)),
        tuple(map(axis.locate, each.contradiction.pairs)) if each.contradiction else (),
        settled,
    )


def tell_row(each: ComparedCase) -> str:
    """Tell the ratio of a case with its interval; without one its verdict."""
    if each.ratio is None:
        few = each.verdict == ComparisonVerdict.UNDECIDED and each.pairs
        return f"{each.pairs} pairs" if few else str(each.verdict)
    if each.unclear:
        return each.unclear
    interval = f" ({factor(each.limits[0])}–{factor(each.limits[1])})" if each.limits else ""
    return f"{factor(each.ratio)}{interval}"


def build_curve(label: str, cases: Sequence[ComparedCase]) -> Panel | None:
    """Build the curves of both sides over bytes, shaded by what launches scatter; None of a single size."""
    own = sorted((case for case in cases if case.old or case.new), key=lambda each: each.case.bytes)
    if len({each.case.bytes for each in own}) < 2:
        return None
    unit = next((case.unit for case in own), SECONDS)
    lines = tuple(
        PanelLine(name, number, tuple(build_point(case, number) for case in own))
        for number, name in enumerate(SIDES)
    )
    return Panel(label, "bytes", lines, unit)


def build_point(each: ComparedCase, side: int) -> Point:
    """Build the point of a side: its median, and one spread to either side."""
    value = (each.old, each.new)[side]
    band = None
    if value is not None and each.spreads:
        apart = math.exp(each.spreads[side])
        band = value / apart, value * apart
    return Point(each.case.bytes, value, band, value is None and side == 1)
