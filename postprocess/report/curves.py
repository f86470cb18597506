"""Which cases share a diagram: values over bytes, and over processes or peers, each with its bands.

Each diagram stands once on the page; the cases in it show it again by its name.
"""

import html
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from postprocess.base import formats
from postprocess.base.formats import SECONDS, size
from postprocess.base.grouping import group_pairs
from postprocess.base.sanitize import sanitize_line
from postprocess.model.case import Case
from postprocess.model.routines.mpicost import program_sort_key
from postprocess.model.verdict import CaseResult, Verdict, find_varying_fields
from postprocess.report import panels

WIDTH, HEIGHT = 300, 190
LEFT, RIGHT, TOP, BOTTOM = 42, 290, 36, 158
MOST_X, MOST_Y = 5, 4  #: ticks
LEAST_FACTOR = 1.5  #: between the ends of y, so that noise does not fill it
ROOM = 1.06
FAR = 10.0  #: a band that reaches further beyond the values than this factor is cut off
LEAST_VALUE = 1e-150  #: what is less was never measured, and has 0 as its square
STYLES = 8  #: colours of the style sheet
COUNT_WIDTH, SIZE_WIDTH = 22, 44  #: of a label of x
STEPS = (1, 2, 5)


@dataclass(frozen=True)
class Scales:
    """Where values lie in a diagram, in whole pixels."""

    places: dict[int, int]  #: of each x
    low: float
    high: float

    def find_y(self, value: float) -> int:
        """Find the height of a value; what is beyond an end lies on it."""
        share = math.log(min(max(value, self.low), self.high) / self.low)
        return round(BOTTOM - (BOTTOM - TOP) * share / math.log(self.high / self.low))


def build_scales(panel: panels.Panel) -> Scales | None:
    """Build the scales of a diagram, both logarithmic but for ranks; None without any value."""
    points = [point for line in panel.lines for point in line.points]
    values = [point.value for point in points if point.value and point.value >= LEAST_VALUE]
    if not values:
        return None
    low, high = min(values), max(values)
    near = [min(max(end, low / FAR), high * FAR) for p in points if p.band for end in p.band if end > 0]
    low, high = min(low, *near, high) / ROOM, max(high, *near, low) * ROOM
    if high < low * LEAST_FACTOR:
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(LEAST_FACTOR), middle * math.sqrt(LEAST_FACTOR)
    return Scales(_place(sorted({point.x for point in points}), panel.x), low, high)


def draw_curve(panel: panels.Panel, scales: Scales) -> str:
    """Draw the inside of a diagram: axes, and for each line its bands, its course and its failed cases."""
    return "".join(
        [
            _text(LEFT, 11, "t", panel.title),
            *_name_lines(panel.lines),
            *_draw_axes(panel, scales),
            *(_draw_line(line, scales) for line in panel.lines),
        ]
    )


def describe_curve(panel: panels.Panel) -> str:
    failed = sum(point.failed for line in panel.lines for point in line.points)
    told = f"{panel.title}: over {panels.X_LABELS[panel.x]}" + (f", {failed} failed" if failed else "")
    return sanitize_line(told)


def _place(values: Sequence[int], kind: str) -> dict[int, int]:
    """Return where each x lies: ranks evenly, others by their logarithm, zero left of the least."""
    least = next((value for value in values if value), 1)
    logs = {x: x if kind == "peer" else math.log(x or least / 4) for x in values}
    first, last = logs[values[0]], logs[values[-1]]
    inner = RIGHT - LEFT - 24
    return {
        x: round(LEFT + 12 + inner * ((at - first) / (last - first) if last > first else 0.5))
        for x, at in logs.items()
    }


def _name_lines(lines: Sequence[panels.PanelLine]) -> Iterator[str]:
    x = LEFT
    for line in lines:
        yield _text(x, 25, f"n s{line.style % STYLES}", line.name)
        x += round(5.4 * len(line.name)) + 9


def _draw_axes(panel: panels.Panel, scales: Scales) -> Iterator[str]:
    factor, shown = formats.SHOWN.get(panel.unit, (1.0, panel.unit))
    heights = {value: scales.find_y(value / factor) for value in _choose_y(scales, factor)}
    if heights:
        lines = "".join(f"M{LEFT} {y}H{RIGHT}" for y in heights.values())
        yield f'<path class="g" d="{lines}"/>'
    for value, y in heights.items():
        yield _text(LEFT - 4, y + 3, "y", formats.format_significant(value, 3))
    end = -SIZE_WIDTH
    yield _text(LEFT - 4, TOP - 5, "y", shown.replace("us", "µs"))
    sized = panel.x in panels.SIZED
    room = SIZE_WIDTH if sized else COUNT_WIDTH
    places = list(scales.places)
    for value in places if len(places) <= MOST_X else panels.thin_values(places, MOST_X):
        x = scales.places[value]
        if x - end >= room:
            yield _text(x, BOTTOM + 13, "x", formats.size(value) if sized else str(value))
            end = x
    yield _text((LEFT + RIGHT) // 2, BOTTOM + 26, "x", panels.X_LABELS[panel.x])


def _choose_y(scales: Scales, factor: float) -> list[float]:
    """Choose round values between the ends of y, in the unit that people read."""
    low, high = scales.low * factor, scales.high * factor
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    round_ones = [step * 10.0**power for power in powers for step in STEPS]
    inside = [value for value in round_ones if low <= value <= high] or [math.sqrt(low * high)]
    if len(inside) > MOST_Y:
        tens = [value for value in inside if math.isclose(math.log10(value) % 1, 0, abs_tol=1e-9)]
        inside = tens if len(tens) > 1 else inside
        inside = [inside[n] for n in panels.thin_values(range(len(inside)), MOST_Y)]
    return inside


def _draw_line(line: panels.PanelLine, scales: Scales) -> str:
    outline = "".join(
        _draw_band([point for _, point in run], scales) for run in panels.list_banded(line.points)
    )
    bands = f'<path class="b" d="{outline}"/>' if outline else ""
    course, dots, broken = _draw_course(line.points, scales)
    rings = "".join(
        f'<circle cx="{scales.places[p.x]}" cy="{scales.find_y(p.value)}" r="7"/>'
        for p in line.points
        if p.failed and p.value
    )
    lost = f'<path class="r" d="{broken}"/>' if broken else ""
    dotted = f'<path class="p" d="{dots}"/>' if dots else ""
    return f'<g class="s{line.style % STYLES}">{bands}<path d="{course}"/>{dotted}{rings}{lost}</g>'


def _draw_course(points: Sequence[panels.Point], scales: Scales) -> tuple[str, str, str]:
    """Return the course through the values, a dot at each, and a cross for each case without one."""
    course, dots, broken, pen = "", "", "", "M"
    for point in points:
        x = scales.places[point.x]
        if not point.value:
            pen = "M"
            broken += f"M{x - 4} {BOTTOM - 9}l8 8m0-8l-8 8" if point.failed else ""
            continue
        place = f"{x} {scales.find_y(point.value)}"
        course += pen + place
        dots += f"M{place}h0"
        pen = "L"
    return course or "M0 0", dots, broken


def _draw_band(run: Sequence[panels.Point], scales: Scales) -> str:
    """Return the outline of the bands of neighbours; a lone one is a bar."""
    ends = [(scales.places[p.x], *map(scales.find_y, p.band or (1.0, 1.0))) for p in run]
    if len(ends) == 1:
        x, low, high = ends[0]
        return f"M{x - 4} {low}V{high}h8V{low}z"
    upper = "L".join(f"{x} {high}" for x, _, high in ends)
    lower = "L".join(f"{x} {low}" for x, low, _ in reversed(ends))
    return f"M{upper}L{lower}z"


def _text(x: int, y: int, kind: str, text: str) -> str:
    return f'<text x="{x}" y="{y}" class="{kind}">{html.escape(sanitize_line(text))}</text>'


QUALIFIERS = ("system", "partition", "cache", "sync")
MOST_CURVES = 700  #: on a page; those over bytes first
MANY_CASES = 2000  #: beyond which a page has fewer diagrams
MOST_OF_MANY = 250

_Kind = Callable[[CaseResult], tuple[object, ...] | None]


@dataclass(frozen=True)
class Curve:
    """A diagram with its name on the page."""

    name: str
    panel: panels.Panel
    scales: Scales
    results: tuple[CaseResult, ...]
    failed: int

    @property
    def inside(self) -> Markup:
        """What is drawn, without the element around it."""
        return Markup(draw_curve(self.panel, self.scales))

    @property
    def spoken(self) -> str:
        """What it shows, in words."""
        return describe_curve(self.panel)


@dataclass(frozen=True)
class PlacedCase:
    """A case in a diagram: the name of the diagram, and where in it, in pixels."""

    curve: str
    x: int
    y: int | None  #: None without a value


@dataclass(frozen=True)
class CurveSection:
    """The diagrams of one program: those over bytes, and the others."""

    program: str
    over_bytes: tuple[Curve, ...]
    others: tuple[Curve, ...]


@dataclass(frozen=True)
class Curves:
    sections: tuple[CurveSection, ...]
    left_out: int
    places: Mapping[Case, Sequence[PlacedCase]]


def build_curves(results: Sequence[CaseResult], strict: bool, names: Sequence[str]) -> Curves:
    """Build the diagrams of a session, without what was skipped.

    :param names: the environments in the order of their colours
    """
    ran = [result for result in results if result.verdict is not Verdict.SKIPPED]
    styles = {name: n for n, name in enumerate(names)}
    titles = _Titles(ran)
    drawn = [
        (over, panel, own)
        for over in ("bytes", "processes", "peer")
        for panel, own in _group(ran, over, titles, styles, strict)
    ]
    curves: list[tuple[str, Curve]] = []
    most = MOST_CURVES if len(ran) <= MANY_CASES else MOST_OF_MANY
    for over, panel, own in drawn[:most]:
        if scales := build_scales(panel):
            failed = sum(not each.counts_as_healthy(strict) for each in own)
            curves.append((over, Curve(f"k{len(curves)}", panel, scales, tuple(own), failed)))
    return Curves(_section(curves), max(0, len(drawn) - most), _place_cases(curves))


class _Titles:
    """What names a diagram beside its routine: what differs among the cases of a program."""

    def __init__(self, results: Sequence[CaseResult]) -> None:
        own = group_pairs((result.case.program, result) for result in results)
        self.qualifiers = {name: find_varying_fields(own[name], QUALIFIERS) for name in own}
        self.densest = panels.find_densest_layouts(results)

    def of(self, case: Case) -> list[str]:
        return [getattr(case, name) for name in self.qualifiers[case.program]]

    def is_dense(self, case: Case) -> bool:
        """Return whether a case has as many processes per node as any of its number of processes."""
        return case.per_node == self.densest[case.system, case.partition, case.processes]


def _group(
    results: Sequence[CaseResult], over: str, titles: _Titles, styles: Mapping[str, int], strict: bool
) -> list[tuple[panels.Panel, list[CaseResult]]]:
    """Group cases into diagrams over one field; those with one place of it are none."""
    groups: dict[tuple[object, ...], list[CaseResult]] = {}
    for result in results:
        case = result.case
        if bool(case.peer) != (over == "peer") and over != "bytes":
            continue
        same = (case.system, case.partition, case.program, case.routine, case.cache, case.sync)
        at_peer = () if over == "peer" else (case.peer,)
        layout = () if over == "processes" else (case.processes, case.per_node)
        dense = case.per_node if over == "processes" and not titles.is_dense(case) else 0
        at_size = () if over == "bytes" else (case.bytes,)
        groups.setdefault((*same, *at_peer, *layout, dense, *at_size), []).append(result)
    found = []
    for key in sorted(groups, key=_order):
        own = groups[key]
        if len({getattr(each.case, over) for each in own}) > 1:
            unit = next((each.unit for each in own if each.value is not None), SECONDS)
            title = _title(own[0].case, over, titles)
            found.append((panels.Panel(title, over, panels.build_lines(own, over, styles, strict), unit), own))
    return found


def _order(key: tuple[object, ...]) -> tuple[object, ...]:
    return (program_sort_key(str(key[2])), *key)


def _title(case: Case, over: str, titles: _Titles) -> str:
    words = [case.routine if over == "peer" else case.label]
    if over != "bytes":
        words.append(size(case.bytes) if case.bytes else "no payload")
    if over != "processes":
        words.append(f"{case.processes} processes")
    if not titles.is_dense(case):
        words.append(f"{case.per_node} per node")
    return ", ".join([*words, *titles.of(case)])


def _section(curves: Sequence[tuple[str, Curve]]) -> tuple[CurveSection, ...]:
    programs = {curve.results[0].case.program for _, curve in curves}
    return tuple(
        CurveSection(
            program, tuple(_of(curves, program, over_bytes=True)), tuple(_of(curves, program, over_bytes=False))
        )
        for program in sorted(programs, key=program_sort_key)
    )


def _of(curves: Sequence[tuple[str, Curve]], program: str, over_bytes: bool) -> list[Curve]:
    """Return the curves of a program, those with failures first."""
    own = [
        curve
        for over, curve in curves
        if curve.results[0].case.program == program and (over == "bytes") == over_bytes
    ]
    return sorted(own, key=lambda curve: -curve.failed)


def _place_cases(curves: Sequence[tuple[str, Curve]]) -> dict[Case, list[PlacedCase]]:
    found: dict[Case, list[PlacedCase]] = {}
    for over, curve in curves:
        for result in curve.results:
            x = curve.scales.places[getattr(result.case, over)]
            y = curve.scales.find_y(result.value) if result.value else None
            found.setdefault(result.case, []).append(PlacedCase(curve.name, x, y))
    return found
