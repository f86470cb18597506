"""The pictures of the report and the signs of their legends, each as inline SVG."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from postprocess.base import formats
from postprocess.base.formats import MEGABYTES, RATIO, SECONDS
from postprocess.base.sanitize import sanitize_line
from postprocess.report import drawing, panels

MICRO = 1e6
Y_LABELS = {SECONDS: "µs", panels.MILLISECONDS: "ms", MEGABYTES: "MB/s", RATIO: "× C"}
SPOKEN = {SECONDS: "time", panels.MILLISECONDS: "time", MEGABYTES: "bandwidth", RATIO: "ratio"}
MOST_MARKED = 8  #: points of a line that has its marker at each; a longer one has it at every few
SPREAD = 1.5  #: of environments beside each other at the only place of x, as a factor
MOST_LABELLED = 4  #: environments whose values are written beside their points
FAR = 10.0  #: a band that reaches further out than this factor is cut off

REFERENCE: dict[str, Any] = {"color": drawing.GOOD, "linewidth": 1.2, "linestyle": (0, (1, 1.5))}
MODELLED: dict[str, Any] = {"marker": "", "linestyle": (0, (4, 2)), "linewidth": 1.2}
BAND: dict[str, Any] = {"color": drawing.GOOD, "alpha": 0.16, "linewidth": 0}
LOST: dict[str, Any] = {
    "marker": "x",
    "markersize": 8,
    "markeredgewidth": 2.2,
    "markeredgecolor": drawing.MUTED,
    "linestyle": "none",
}
RING: dict[str, Any] = {
    "marker": "o",
    "markersize": 13,
    "fillstyle": "none",
    "markeredgecolor": drawing.BAD,
    "markeredgewidth": 1.8,
    "linestyle": "none",
}


@drawing.apply_style
def draw_lines(panel: panels.Panel) -> str:
    """Draw one panel: a line per environment, its bands shaded, failed cases ringed.

    A case without a value breaks its line and leaves a cross at the lower edge. Where all cases
    share one x the environments stand side by side, each with its value.
    """
    figure, axes = drawing.draw_panel(
        sanitize_line(panel.title), panels.X_LABELS[panel.x], Y_LABELS[panel.unit]
    )
    values = sorted({point.x for line in panel.lines for point in line.points})
    ranks = (panel.x == "peer" or panel.scale == panels.LINEAR) and len(values) > 1
    kind = "bytes" if panel.x in panels.SIZED else panel.x
    set_x = drawing.set_linear_x if ranks else drawing.set_logarithmic_x
    places = set_x(axes, values, kind)
    drawn = [_scaled(line, _find_factor(panel.unit)) for line in panel.lines]
    _scale_y(axes, [point for line in drawn for point in line.points], panel.scale != panels.LOGARITHMIC)
    for rank, (line, read) in enumerate(zip(panel.lines, drawn, strict=True)):
        aside = _aside(rank, len(panel.lines)) if len(values) == 1 else 1.0
        _line(axes, read, [places[point.x] * aside for point in line.points])
        if len(values) == 1 and len(panel.lines) <= MOST_LABELLED:
            _write_values(axes, line, places[values[0]] * aside, panel.unit)
    return drawing.render_inline_svg(figure, _spoken(panel))


def choose_line_style(style: int) -> dict[str, Any]:
    return {
        "color": drawing.SERIES[style % len(drawing.SERIES)],
        "marker": drawing.MARKERS[style % len(drawing.MARKERS)],
        "markersize": 6.5,
        "markeredgecolor": drawing.PAPER,
        "markeredgewidth": 0.8,
        "linewidth": 1.6,
        "linestyle": "solid" if style < len(drawing.MARKERS) else (0, (3, 1.5)),
    }


def _find_factor(unit: str) -> float:
    return formats.SHOWN[unit][0] if unit in formats.SHOWN else 1.0


def _scaled(line: panels.PanelLine, factor: float) -> panels.PanelLine:
    """Return a line in the unit that people read."""
    points = (
        replace(
            point,
            value=point.value * factor if _is_drawn(point.value) else None,
            band=point.band and (point.band[0] * factor, point.band[1] * factor),
        )
        for point in line.points
    )
    return replace(line, points=tuple(points))


def _line(axes: Axes, line: panels.PanelLine, places: Sequence[float]) -> None:
    values = [math.nan if point.value is None else point.value for point in line.points]
    _bands(axes, line, places)
    marked = _marked(values)
    style = choose_line_style(line.style) | (MODELLED if line.modelled else {})
    axes.plot(places, values, clip_on=False, markevery=marked, **style)
    rings = [(x, y) for x, y, p in zip(places, values, line.points, strict=True) if p.failed]
    axes.plot([x for x, _ in rings], [y for _, y in rings], clip_on=False, **RING)
    lost = [x for x, y in rings if math.isnan(y)]
    edge = axes.get_xaxis_transform()
    colour = drawing.SERIES[line.style % len(drawing.SERIES)]
    axes.plot(lost, [0.04] * len(lost), transform=edge, **LOST | {"markeredgecolor": colour})


def _marked(values: Sequence[float]) -> list[int]:
    """Return which points of a line get its marker: the first of every few, and any without a neighbour."""
    step = math.ceil(len(values) / MOST_MARKED)
    around = [math.nan, *values, math.nan]
    alone = (math.isnan(a) and math.isnan(b) for a, b in zip(around, around[2:], strict=False))
    return [n for n, by_itself in enumerate(alone) if by_itself or n % step == 0]


def _bands(axes: Axes, line: panels.PanelLine, places: Sequence[float]) -> None:
    """Shade the bands between neighbours that both have one; a lone band is a bar."""
    colour = drawing.SERIES[line.style % len(drawing.SERIES)]
    ends = axes.get_ylim()
    for run in panels.list_banded(line.points):
        bands = [point.band or (0.0, 0.0) for _, point in run]
        lower, upper = (np.clip([b[side] for b in bands], *ends) for side in (0, 1))
        x = [places[n] for n, _ in run]
        if len(run) > 1:
            axes.fill_between(x, lower, upper, color=colour, alpha=0.13, linewidth=0)
        else:
            axes.vlines(x, lower, upper, color=colour, alpha=0.25, linewidth=7)


def _write_values(axes: Axes, line: panels.PanelLine, place: float, unit: str) -> None:
    for point in line.points:
        if _is_drawn(point.value):
            axes.annotate(
                _write_value(point.value, unit),
                (place, point.value * _find_factor(unit)),
                xytext=(9, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
                color=drawing.BAD if point.failed else drawing.INK,
            )


def _write_value(value: float, unit: str) -> str:
    return formats.number(value, unit) if unit in formats.SHOWN else f"{value:.3g}"


def _scale_y(axes: Axes, points: Sequence[panels.Point], linear: bool) -> None:
    """Return an axis, logarithmic unless ``linear`` from 0, that holds what has a value."""
    values = [point.value for point in points if point.value is not None]
    if not values:
        axes.set_yticks([])
        return
    if linear:
        drawing.set_linear_y(axes, 0.0, max(values))
        return
    drawing.set_logarithmic_y(axes, *_range(values, [end for point in points for end in point.band or ()]))


def _range(values: Sequence[float], bands: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis that holds all values, and the bands unless they reach far out."""
    low, high = min(values), max(values)
    near = [*values, *(min(max(limit, low / FAR), high * FAR) for limit in bands)]
    return min(near), max(near)


def _is_drawn(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value) and value > 0


def _aside(number: int, of: int) -> float:
    return SPREAD ** (number / (of - 1) - 0.5) if of > 1 else 1.0


def _spoken(panel: panels.Panel) -> str:
    failed = sum(point.failed for line in panel.lines for point in line.points)
    names = ", ".join(line.name for line in panel.lines)
    what = SPOKEN[panel.unit]
    return f"{panel.title}: {what} over {panels.X_LABELS[panel.x]} for {names}; {failed} failed"


WIDTH, HEIGHT = 28, 14  #: of a sign, in CSS pixels


@drawing.apply_style
def draw_line_key(style: int, modelled: bool = False) -> str:
    """Draw the line and marker of an environment, or of a model, as SVG."""
    figure, axes = _empty()
    look = choose_line_style(style) | (MODELLED if modelled else {})
    axes.plot([0, 0.5, 1], [0.5] * 3, markevery=[1], **look)
    return drawing.render_inline_svg(figure, "")


@drawing.apply_style
def draw_marker_key(style: int) -> str:
    """Draw the marker alone, where it stands for a machine, as SVG."""
    figure, axes = _empty()
    axes.plot([0.5], [0.5], **choose_line_style(style) | {"linestyle": "none"})
    return drawing.render_inline_svg(figure, "")


def draw_line_keys(names: Sequence[str]) -> dict[str, Markup]:
    """Draw the sign of each environment's line, in the order of their styles."""
    return {name: Markup(draw_line_key(style)) for style, name in enumerate(names)}


def _empty() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72), dpi=72)
    axes = figure.add_axes((0.05, 0, 0.9, 1))
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    return figure, axes
