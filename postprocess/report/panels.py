"""Which cases share a picture: panels of lines over processes, over peers and over bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from postprocess.base.formats import plural, size
from postprocess.base.units import SECONDS
from postprocess.model.verdict import CaseResult, find_varying_fields

MOST_PANELS = 4  #: side by side
MOST_ON_PAGE = 200
X_LABELS = {
    "processes": "processes",
    "bytes": "bytes",
    "buffer": "buffer of the report",
    "peer": "rank of the partner",
}
SIZED = ("bytes", "buffer")  #: of these those that are written as sizes
#: Scales of a panel: both logarithmic; y linear from 0; x linear too
LOGARITHMIC, FROM_ZERO, LINEAR = "logarithmic", "from zero", "linear"
MILLISECONDS = "ms"  #: the unit of a panel whose values are such
QUALIFIERS = ("system", "partition", "program", "cache", "sync")


@dataclass(frozen=True)
class Point:
    """One case in a line, in the unit of its panel; ``value`` is None where nothing was measured."""

    x: int
    value: float | None
    band: tuple[float, float] | None
    failed: bool


@dataclass(frozen=True)
class PanelLine:
    """The cases of one environment, ordered by x. ``style`` numbers its colour and marker."""

    name: str
    style: int
    points: tuple[Point, ...]
    modelled: bool = False  #: whether a model says so, and nothing was measured


@dataclass(frozen=True)
class Panel:
    """One small diagram. ``x`` is of :data:`X_LABELS`."""

    title: str
    x: str
    lines: tuple[PanelLine, ...]
    unit: str = SECONDS
    scale: str = LOGARITHMIC


@dataclass(frozen=True)
class PanelPicture:
    """Panels side by side that show one thing."""

    title: str
    remark: str  #: what was left out, or empty
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Chapter:
    """All pictures of one routine under one set of conditions."""

    title: str
    failed: int
    pictures: tuple[PanelPicture, ...]


def build_chapters(
    results: Sequence[CaseResult], strict: bool, names: Sequence[str] | None = None
) -> list[Chapter]:
    """Arrange cases of one program in chapters, by routine and whatever else differs.

    ``names`` are the environments of the page in the order of their styles, if it has more than these.
    A picture has fewer panels where all of them together would be more than a page can bear.
    """
    styles = {name: n for n, name in enumerate(names or list_environments(results))}
    groups = _groups(results)
    arranged: list[Chapter] = []
    for most in range(MOST_PANELS, 0, -1):
        arranged = [
            _chapter(", ".join(title), _Cases(groups[title], styles, strict), most)
            for title in sorted(groups)
        ]
        if sum(len(p.panels) for chapter in arranged for p in chapter.pictures) <= MOST_ON_PAGE:
            break
    return arranged


def _groups(results: Sequence[CaseResult]) -> dict[tuple[str, ...], list[CaseResult]]:
    qualifiers = find_varying_fields(results, QUALIFIERS)
    packed = find_densest_layouts(results)
    groups: dict[tuple[str, ...], list[CaseResult]] = {}
    for result in results:
        title = [result.case.routine, *(getattr(result.case, name) for name in qualifiers)]
        if result.case.per_node != packed[_nodes(result)]:
            title.append(f"{result.case.per_node} per node")
        groups.setdefault(tuple(title), []).append(result)
    return groups


def list_environments(results: Iterable[CaseResult]) -> list[str]:
    """List names of the environments, in the order of their styles."""
    return sorted({result.case.environment for result in results})


def build_lines(
    results: Iterable[CaseResult], x: str, styles: Mapping[str, int], strict: bool
) -> tuple[PanelLine, ...]:
    """Build a line for each environment over one field of the case."""
    found: dict[str, list[Point]] = {}
    for result in sorted(results, key=lambda r: r.case):
        failed = not result.counts_as_healthy(strict)
        point = Point(getattr(result.case, x), result.value, result.band, failed)
        found.setdefault(result.case.environment, []).append(point)
    return tuple(
        PanelLine(name, styles[name], tuple(sorted(points, key=lambda p: p.x)))
        for name, points in found.items()
    )


def thin_values(values: Sequence[int], most: int) -> list[int]:
    """Choose at most ``most`` of the values, evenly, the first and the last among them."""
    if len(values) <= most:
        return list(values)
    if most == 1:
        return [values[-1]]
    step = (len(values) - 1) / (most - 1)
    return [values[round(n * step)] for n in range(most)]


@dataclass(frozen=True)
class _Cases:
    """The cases of a chapter with what is needed to draw them."""

    results: list[CaseResult]
    styles: dict[str, int]
    strict: bool

    def values(self, name: str) -> list[int]:
        return sorted({getattr(r.case, name) for r in self.results})

    def where(self, name: str, value: int) -> _Cases:
        return replace(self, results=[r for r in self.results if getattr(r.case, name) == value])

    def lines(self, x: str) -> tuple[PanelLine, ...]:
        return build_lines(self.results, x, self.styles, self.strict)


def _chapter(title: str, cases: _Cases, most_panels: int) -> Chapter:
    failed = sum(not r.counts_as_healthy(cases.strict) for r in cases.results)
    between_two = any(r.case.peer for r in cases.results)
    place, over = "", "processes"
    if between_two:
        most = cases.values("processes")[-1]
        cases = cases.where("processes", most)
        place, over = f", {most} processes", "peer"
    drawn = [
        _picture(f"over {X_LABELS[over]}{place}", cases, over, "bytes", most_panels),
        _picture(f"over bytes{place}", cases, "bytes", over, most_panels),
    ]
    several = len(cases.values("bytes")) > 1
    return Chapter(title, failed, tuple(drawn if several else drawn[:1]))


def _picture(title: str, cases: _Cases, x: str, by: str, most: int) -> PanelPicture:
    values = cases.values(by)
    chosen = thin_values(values, most)
    left_out = len(values) - len(chosen)
    remark = f"{plural(left_out, 'further panel')} not drawn; all cases are in the table"
    panels = (Panel(_PANEL_TITLES[by](v), x, cases.where(by, v).lines(x)) for v in chosen)
    return PanelPicture(f"Time {title}", remark if left_out else "", tuple(panels))


_PANEL_TITLES: dict[str, Callable[[int], str]] = {
    "bytes": lambda count: size(count) if count else "no payload",
    "processes": lambda count: f"{count} processes",
    "peer": lambda rank: f"rank 0 with rank {rank}",
}


def _nodes(result: CaseResult) -> tuple[str, str, int]:
    return (result.case.system, result.case.partition, result.case.processes)


def find_densest_layouts(results: Iterable[CaseResult]) -> dict[tuple[str, str, int], int]:
    """Find the most processes per node that a partition was given, for each number of processes."""
    most: dict[tuple[str, str, int], int] = {}
    for result in results:
        place = _nodes(result)
        most[place] = max(most.get(place, 0), result.case.per_node)
    return most
