"""The picture of measured ratios over printed ones: on the diagonal where they agree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from postprocess.base.sanitize import sanitize_line
from postprocess.extensions.papers.luecke.ratio_tables import NEAR
from postprocess.extensions.papers.luecke.ratios import RatioTable
from postprocess.report import axes as small
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
    figure, axes = small.draw_panel(
        sanitize_line(shown.environment), "ratio in print", "ratio", SIZE
    )
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
    spoken = (
        f"{near} of {len(shown.dots)} ratios by {shown.environment} within a factor of {NEAR:g}"
    )
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
