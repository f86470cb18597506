"""Which cases share a diagram: values over bytes, and over processes or peers, each with its bands.

Each diagram stands once on the page; the cases in it show it again by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from postprocess.base.formats import size
from postprocess.base.units import SECONDS
from postprocess.model.case import Case
from postprocess.model.routines.mpicost import program_sort_key
from postprocess.model.verdict import CaseResult, Verdict, find_varying_fields
from postprocess.report.curve_svg import Scales, build_scales, describe_curve, draw_curve
from postprocess.report.panels import Panel, build_lines, find_densest_layouts

QUALIFIERS = ("system", "partition", "cache", "sync")
MOST_CURVES = 700  #: on a page; those over bytes first
MANY_CASES = 2000  #: beyond which a page has fewer diagrams
MOST_OF_MANY = 250

_Kind = Callable[[CaseResult], tuple[object, ...] | None]


@dataclass(frozen=True)
class Curve:
    """A diagram with its name on the page."""

    name: str
    panel: Panel
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
    """All diagrams of a page."""

    sections: tuple[CurveSection, ...]
    left_out: int
    places: Mapping[Case, Sequence[PlacedCase]]


def build_curves(results: Sequence[CaseResult], strict: bool, names: Sequence[str]) -> Curves:
    """Build the diagrams of a session, without what was skipped.

    :param names: the environments in the order of their colours
    """
    ran = [each for each in results if each.verdict is not Verdict.SKIPPED]
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
        own: dict[str, list[CaseResult]] = {}
        for each in results:
            own.setdefault(each.case.program, []).append(each)
        self.qualifiers = {name: find_varying_fields(own[name], QUALIFIERS) for name in own}
        self.densest = find_densest_layouts(results)

    def of(self, case: Case) -> list[str]:
        """Return the qualifiers of a case."""
        return [getattr(case, name) for name in self.qualifiers[case.program]]

    def is_dense(self, case: Case) -> bool:
        """Return whether a case has as many processes per node as any of its number of processes."""
        return case.per_node == self.densest[case.system, case.partition, case.processes]


def _group(
    results: Sequence[CaseResult],
    over: str,
    titles: _Titles,
    styles: Mapping[str, int],
    strict: bool,
) -> list[tuple[Panel, list[CaseResult]]]:
    """Group cases into diagrams over one field; those with one place of it are none."""
    groups: dict[tuple[object, ...], list[CaseResult]] = {}
    for each in results:
        case = each.case
        if bool(case.peer) != (over == "peer") and over != "bytes":
            continue
        same = (case.system, case.partition, case.program, case.routine, case.cache, case.sync)
        at_peer = () if over == "peer" else (case.peer,)
        layout = () if over == "processes" else (case.processes, case.per_node)
        dense = case.per_node if over == "processes" and not titles.is_dense(case) else 0
        at_size = () if over == "bytes" else (case.bytes,)
        groups.setdefault((*same, *at_peer, *layout, dense, *at_size), []).append(each)
    found = []
    for key in sorted(groups, key=_order):
        own = groups[key]
        if len({getattr(each.case, over) for each in own}) > 1:
            unit = next((each.unit for each in own if each.value is not None), SECONDS)
            title = _title(own[0].case, over, titles)
            found.append((Panel(title, over, build_lines(own, over, styles, strict), unit), own))
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
            program,
            tuple(_of(curves, program, over_bytes=True)),
            tuple(_of(curves, program, over_bytes=False)),
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
        for each in curve.results:
            x = curve.scales.places[getattr(each.case, over)]
            y = curve.scales.find_y(each.value) if each.value else None
            found.setdefault(each.case, []).append(PlacedCase(curve.name, x, y))
    return found
