"""The signs of the pictures, drawn by the same rules, for the legends of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from postprocess.report.plots import BAND, KINDS, LEVELS, LOST, MODELLED, RING, choose_line_style
from postprocess.report.svg import apply_style, render_inline_svg

WIDTH, HEIGHT = 28, 14  #: of a sign, in CSS pixels


@apply_style
def draw_line_key(style: int, modelled: bool = False) -> str:
    """Draw the line and marker of an environment, or of a model, as SVG."""
    figure, axes = _empty()
    look = choose_line_style(style) | (MODELLED if modelled else {})
    axes.plot([0, 0.5, 1], [0.5] * 3, markevery=[1], **look)
    return render_inline_svg(figure, "")


@apply_style
def draw_marker_key(style: int) -> str:
    """Draw the marker alone, where it stands for a machine, as SVG."""
    figure, axes = _empty()
    axes.plot([0.5], [0.5], **choose_line_style(style) | {"linestyle": "none"})
    return render_inline_svg(figure, "")


def draw_line_keys(names: Sequence[str]) -> dict[str, Markup]:
    """Draw the sign of each environment's line, in the order of their styles."""
    return {name: Markup(draw_line_key(style)) for style, name in enumerate(names)}


@apply_style
def draw_sign_keys() -> dict[str, Markup]:
    """Draw every other sign by what it means: trials, levels, the band, failed and missing cases."""
    drawn = {
        **{kind: _key(style | {"linestyle": "none"}) for kind, style in KINDS.items()},
        **{level: _key(style) for level, style in LEVELS.items()},
        "band": _key(None),
        "failed": _key(RING | {"markersize": 10}),
        "missing": _key(LOST),
    }
    return {name: Markup(key) for name, key in drawn.items()}


def _empty() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72), dpi=72)
    axes = figure.add_axes((0.05, 0, 0.9, 1))
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    return figure, axes


def _key(style: Mapping[str, Any] | None) -> str:
    """Return a marker in the middle, a line, or for None the shade of a band."""
    figure, axes = _empty()
    if style is None:
        axes.axhspan(0.1, 0.9, **BAND)
    elif "marker" in style:
        axes.plot([0.5], [0.5], **style)
    else:
        axes.plot([0, 1], [0.5, 0.5], **style)
    return render_inline_svg(figure, "")
