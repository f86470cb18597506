"""Figures of Luecke et al. of sessions: a line for each machine, or for each MPI of a machine."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from postprocess.base.formats import plural
from postprocess.base.sanitize import sanitize_line
from postprocess.extensions.papers.common.data import Operation, PaperMeasurements
from postprocess.extensions.papers.common.paper_figure import (
    MOST_LINES,
    Curve,
    PaperFigure,
    build_panel,
    group_operations,
    number_styles,
)
from postprocess.extensions.papers.luecke import predictions, scalability
from postprocess.extensions.papers.luecke.ratio_tables import NEAR
from postprocess.extensions.papers.luecke.ratios import RatioTable
from postprocess.model.routines.mpicost import PINGPONG, ROUTINES
from postprocess.report import axes as small
from postprocess.report.panels import LINEAR, MILLISECONDS, Panel, thin_values
from postprocess.report.plots import BAND, choose_line_style
from postprocess.report.svg import GOOD, INK, apply_style, render_inline_svg

SIZE = (420, 320)
FONT, CLEAR = 8.5, 4.0  #: of names, in pixels: their size, and their distance from the point
MOST_NAMED = 6  #: points that are named, the furthest from the diagonal


@dataclass(frozen=True)
class Dot:
    """One ratio in print and here. ``style`` numbers the sign of the machine."""

    name: str
    style: int
    printed: float
    measured: float

    @property
    def distance(self) -> float:
        """How far they are apart, as |ln(measured / printed)|."""
        return abs(math.log(self.measured / self.printed))


@dataclass(frozen=True)
class Agreement:
    """All ratios of one MPI that are in print too, but those to which a model was fitted."""

    environment: str
    dots: tuple[Dot, ...]


def build_agreement_plots(tables: Iterable[RatioTable]) -> tuple[list[str], list[Agreement]]:
    """Build a plot for each MPI with a ratio; return the machines, in the order of their signs, first."""
    rows = [row for table in tables for row in table.rows if row.is_evidence]
    machines = list(dict.fromkeys(row.machine for row in rows))
    found: dict[str, list[Dot]] = {}
    for row in rows:
        for environment, ratio in row.ratios.items():
            if ratio is not None and row.printed is not None:
                name = f"{row.operation.routine} {row.operation.size}".rstrip()
                dot = Dot(name, machines.index(row.machine), row.printed.ratio, ratio)
                found.setdefault(environment, []).append(dot)
    return machines, [Agreement(name, tuple(dots)) for name, dots in found.items()]


@apply_style
def draw_agreement_plot(shown: Agreement) -> str:
    """Draw the ratios of one MPI; the shade is a factor of two to both sides of the diagonal."""
    figure, axes = small.draw_panel(sanitize_line(shown.environment), "ratio in print", "ratio", SIZE)
    values = [value for dot in shown.dots for value in (dot.printed, dot.measured)]
    small.set_logarithmic_both(axes, min(values), max(values))
    ends = axes.get_xlim()
    lower, upper = ([end * factor for end in ends] for factor in (1 / NEAR, NEAR))
    axes.fill_between(ends, lower, upper, **BAND)
    axes.plot(ends, ends, color=GOOD, linewidth=1)
    for style in sorted({dot.style for dot in shown.dots}):
        dots = [dot for dot in shown.dots if dot.style == style]
        marks = choose_line_style(style) | {"linestyle": "none", "markersize": 5.5}
        axes.plot([d.printed for d in dots], [d.measured for d in dots], clip_on=False, **marks)
    _name_furthest(axes, shown.dots)
    near = sum(dot.distance <= math.log(NEAR) for dot in shown.dots)
    spoken = f"{near} of {len(shown.dots)} ratios by {shown.environment} within a factor of {NEAR:g}"
    return render_inline_svg(figure, f"{spoken} of the printed ones")


def _name_furthest(axes: Axes, dots: Sequence[Dot]) -> None:
    """Write what the points furthest out are, each where its name covers no point and no other name."""
    points = [axes.transData.transform((dot.printed, dot.measured)) for dot in dots]
    named: list[Bbox] = []
    for dot in sorted(dots, key=lambda dot: dot.distance, reverse=True)[:MOST_NAMED]:
        if dot.distance <= math.log(NEAR):
            continue
        for box in _rooms_for_name(axes, dot):
            if any(box.overlaps(other) for other in named):
                continue
            if any(box.contains(*point) for point in points):
                continue
            named.append(box)
            x, y = axes.transData.inverted().transform((box.x0 + box.width / 2, box.y0))
            name = sanitize_line(dot.name)
            axes.text(x, y, name, ha="center", va="bottom", fontsize=FONT, color=INK)
            break


def _rooms_for_name(axes: Axes, dot: Dot) -> list[Bbox]:
    """Return where the name of a point may go, in pixels: away from the diagonal first, inside the axes."""
    x, y = axes.transData.transform((dot.printed, dot.measured))
    width, height = 0.6 * FONT * len(dot.name), 1.2 * FONT
    ends = axes.get_window_extent()
    left = min(max(x - width / 2, ends.x0), ends.x1 - width)
    above, below = y + CLEAR, y - CLEAR - height
    order = (above, below) if dot.measured > dot.printed else (below, above)
    return [Bbox.from_bounds(left, bottom, width, height) for bottom in order]


MOST_PANELS = 4
HIDES = 4  #: times as long: a line so far above the next hides all below
TOLD = ", predicted"  #: behind the name of a line
TESTED = frozenset(routine.name for routine in ROUTINES if routine.test)  #: in the papers


def draw_machines(measured: PaperMeasurements) -> list[PaperFigure]:
    predicted = {(e.machine, e.environment, e.operation): e for e in predictions.predict_times(measured)}
    return [*_over_peers(measured, measured.machines), *_over_processes(measured, measured.machines, predicted)]


def draw_libraries(measured: PaperMeasurements) -> list[PaperFigure]:
    found = []
    for machine in measured.machines:
        found += _over_peers(measured, [machine])
        found += _over_processes(measured, [machine], {})
    return found


def _places(measured: PaperMeasurements, machines: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return machine and MPI by the name of their line, no longer than tells them apart."""
    places = [(m, e) for m in machines for e in measured.environments_on(m)]
    if len(machines) == 1:
        return {environment: (m, environment) for m, environment in places}
    several = len(places) > len(machines)
    return {f"{m}, {e}" if several else m: (m, e) for m, e in places}


def _over_processes(
    measured: PaperMeasurements,
    machines: Sequence[str],
    predicted: Mapping[tuple[str, str, Operation], predictions.Prediction],
) -> list[PaperFigure]:
    places = _places(measured, machines)
    figures = []
    for about, operations in group_operations(measured).items():
        if about[0] not in TESTED or about[0] == PINGPONG:
            continue
        panels: list[Panel | None] = []
        names = list(places)[:MOST_LINES]
        styles = number_styles(names)
        styles |= {f"{name}{TOLD}": style for name, style in styles.items()}
        drawable = [
            operation
            for operation in operations
            if any(len(c) > 1 for c in _times(measured, places, names, operation).values())
        ]
        chosen = [drawable[n] for n in thin_values(range(len(drawable)), MOST_PANELS)]
        for operation in chosen:
            curves = _times(measured, places, names, operation)
            models = _models(measured, places, names, operation, predicted)
            every = {**curves, **models}
            size = operation.size or "no payload"
            panels += _draw(size, "processes", every, styles, models)
            if about[0] in scalability.MODELS:
                divided = {
                    name: {p: t / scalability.compute_divisor(about[0], p) for p, t in curve.items()}
                    for name, curve in every.items()
                }
                title = f"{size}: time / {scalability.format_divisor(about[0])}"
                panels += _draw(title, "processes", divided, styles, models)
        left_out = {"line": len(places) - len(names), "size": len(drawable) - len(chosen)}
        more = [plural(number, noun) for noun, number in left_out.items() if number]
        remark = f"{' and '.join(more)} not drawn" if more else ""
        title = f"{', '.join((*machines, *about) if len(machines) == 1 else about)}: time over processes"
        figures.append(PaperFigure(title, tuple(filter(None, panels)), remark))
    return figures


def _draw(
    title: str, x: str, curves: Mapping[str, Curve], styles: Mapping[str, int], models: Collection[str] = ()
) -> list[Panel | None]:
    """Build a panel as the papers have it, milliseconds from 0, and another without lines far above all others.

    Luecke, Kraeva and Ju (2003) draw one library again by itself where another hides it.
    """
    shown = {name: _in_milliseconds(curve) for name, curve in curves.items() if curve}
    panels = [build_panel(title, x, shown, styles, MILLISECONDS, models, LINEAR)]
    tops = sorted((max(curve.values()), name) for name, curve in shown.items() if name not in models)
    gaps = [n for n in range(1, len(tops)) if tops[n][0] > HIDES * tops[n - 1][0]]
    if gaps:
        low = {name for _, name in tops[: gaps[-1]]}
        kept = {n: curve for n, curve in shown.items() if n in low or n.removesuffix(TOLD) in low}
        slow = ", ".join(name for _, name in tops[gaps[-1] :])
        far = f"{title}, without {slow}"
        panels.append(build_panel(far, x, kept, styles, MILLISECONDS, models, LINEAR))
    return panels


def _in_milliseconds(curve: Curve) -> dict[int, float]:
    return {at: seconds * 1e3 for at, seconds in curve.items()}


def _times(
    measured: PaperMeasurements,
    places: Mapping[str, tuple[str, str]],
    names: Sequence[str],
    operation: Operation,
) -> dict[str, Curve]:
    return {
        name: {
            count: time
            for count in measured.planned(*places[name], operation)
            if count > 1 and (time := measured.time(*places[name], operation, count)) is not None
        }
        for name in names
    }


def _models(
    measured: PaperMeasurements,
    places: Mapping[str, tuple[str, str]],
    names: Sequence[str],
    operation: Operation,
    predicted: Mapping[tuple[str, str, Operation], predictions.Prediction],
) -> dict[str, Curve]:
    """Return the predicted curves that are good enough."""
    told = {name: predicted.get((*places[name], operation)) for name in names}
    return {
        f"{name}{TOLD}": each.predicted
        for name, each in told.items()
        if each is not None and each.error <= predictions.GOOD and len(each.predicted) > 1
    }


def _over_peers(measured: PaperMeasurements, machines: Sequence[str]) -> list[PaperFigure]:
    """Draw ping-pong of rank 0 with each other, at the most processes."""
    places = _places(measured, machines)
    names = list(places)[:MOST_LINES]
    figures = []
    for about, operations in group_operations(measured).items():
        if about[0] != PINGPONG:
            continue
        panels: list[Panel | None] = []
        for operation in operations[-MOST_PANELS:]:
            curves = {name: _peers(measured, *places[name], operation) for name in names}
            if any(len(curve) > 1 for curve in curves.values()):
                panels += _draw(operation.size, "peer", curves, number_styles(names))
        title = f"{', '.join((*machines, *about) if len(machines) == 1 else about)}: time over the partner"
        figures.append(PaperFigure(title, tuple(filter(None, panels))))
    return figures


def _peers(measured: PaperMeasurements, machine: str, environment: str, operation: Operation) -> Curve:
    cells = [
        cell
        for cell in measured.results
        if (cell.machine, cell.environment, cell.operation) == (machine, environment, operation)
    ]
    if not cells:
        return {}
    most = max(cells, key=lambda cell: cell.processes)
    return {r.case.peer: r.published for r in measured.results[most] if r.published}
