"""How near simulated machines come to the printed ratios: in a table, and in a picture for each MPI."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from postprocess.base.sanitize import sanitize_line
from postprocess.base.text_table import MISSING, TextTable
from postprocess.extensions.papers.common.measurements import PaperMeasurements
from postprocess.extensions.papers.common.presentation import write_count, write_ratio
from postprocess.extensions.papers.common.printed import History
from postprocess.extensions.papers.luecke.ratios import RatioTable, find_stand_ins
from postprocess.report import axes as small
from postprocess.report.plots import BAND, choose_line_style
from postprocess.report.svg import GOOD, INK, apply_style, render_inline_svg

NEAR = 2.0  #: a factor within which a measured ratio counts as near the printed one


def describe_nearness(measured: PaperMeasurements, history: History, tables: Iterable[RatioTable]) -> TextTable:
    """Describe how near the ratios are to the printed ones, by machine and MPI; no row if none is printed.

    Ratios to which a model was fitted are left out.
    """
    found: dict[tuple[str, str], list[float | None]] = {}
    for table in tables:
        for row in table.rows:
            for name in row.ratios if row.is_evidence else ():
                found.setdefault((row.machine, name), []).append(row.over_printed(name))
    stands = find_stand_ins(measured, history)
    return TextTable(
        "How near the ratios come to the printed ones",
        ("machine", "stands for", "MPI"),
        ("printed", "measured", f"within a factor of {NEAR:g}", "typical factor", "bias"),
        tuple(
            (machine, " and ".join(stands[machine]), name, *_nearness(factors))
            for (machine, name), factors in found.items()
        ),
        (
            "without the ratios to which a model was fitted",
            "typical factor: geometric mean of how far measured and printed are apart, either way; "
            "bias: geometric mean of measured over printed",
        ),
    )


def _nearness(factors: Sequence[float | None]) -> tuple[str, ...]:
    logs = [math.log(factor) for factor in factors if factor is not None]
    if not logs:
        return (write_count(len(factors)), write_count(0), MISSING, MISSING, MISSING)
    near = sum(abs(log) <= math.log(NEAR) for log in logs)
    return (
        *(write_count(len(factors)), write_count(len(logs)), write_count(near)),
        write_ratio(math.exp(statistics.fmean(map(abs, logs)))),
        write_ratio(math.exp(statistics.fmean(logs))),
    )


def describe_stand_ins(measured: PaperMeasurements, history: History) -> list[str]:
    """Describe where each machine that stands for one of the papers differs from it, and why."""
    names = {place: machine for machine, place in measured.systems.items()}
    return [
        f"{names[each.system, each.partition]} for the {each.machine}: {each.remark}"
        for each in history.stand_ins
        if (each.system, each.partition) in names
    ]


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
