"""From a matplotlib figure to SVG that sits inside an HTML page and follows its colour scheme.

Figures are drawn in stand-in colours. Each becomes a CSS variable of the page, so that one picture
serves a light and a dark screen; text stays text and inherits the page's font.
"""

from __future__ import annotations

import html
import io
import itertools
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import matplotlib
from cycler import cycler
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from postprocess.base.sanitize import sanitize_line

_P = ParamSpec("_P")
_R = TypeVar("_R")

MARKERS = "os^DvPX*"
SERIES = tuple(f"#1000{n:02x}" for n in range(len(MARKERS)))  #: colour per environment
INK, MUTED, GRID, BAD, GOOD, PAPER = (f"#2000{n:02x}" for n in range(6))

VARIABLES = {
    **{colour: f"--series-{n}" for n, colour in enumerate(SERIES)},
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    BAD: "--bad",
    GOOD: "--good",
    PAPER: "--paper",
}

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "plumbline",
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "text.color": INK,
    "text.parse_math": False,
    "axes.prop_cycle": cycler(color=[INK]),
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.labelcolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "figure.facecolor": "none",
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "lines.markeredgecolor": PAPER,
}

_SILENT = 'aria-hidden="true"'
_numbers = itertools.count()
_COLOUR = re.compile("|".join(map(re.escape, VARIABLES)))
_STYLE = re.compile(r'style="[^"]*"')
_FONT = re.compile(r"font(?:-size)?: ([\d.]+px)[^;\"]*")
_FAMILY = re.compile(r" font-family: [^;\"]*;")
_NAMED = re.compile(r'(\bid="|href="#|url\(#)([^")]+)')
_GROUP_ID = re.compile(r'<g id="[^"]*"')
_DECIMALS = re.compile(r"(\d+\.\d)\d+")
_PLACES = re.compile(r' (?:d|x|y|width|height)="[^"]*"')
_GROUP = re.compile(r"<g(?: [^>]*)?>|</g>")
_EMPTY_GROUP = re.compile(r"<g(?: [^>]*)?/>")
_NO_TURN = re.compile(r' transform="rotate\(-?0 [^"]*"')


def apply_style(draw: Callable[_P, _R]) -> Callable[_P, _R]:
    """Run a drawing function in the style of the report, whatever the user's matplotlibrc says."""

    @wraps(draw)
    def inner(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(STYLE)
            return draw(*args, **kwargs)

    return inner


def render_inline_svg(figure: Figure, description: str) -> str:
    """Return the figure as one ``<svg>`` element for an HTML page.

    ``description`` is read aloud to those who cannot see the picture; it is escaped here, and empty
    for what only decorates. The element fetches nothing, styles nothing outside itself, and its ids
    are unique in the process.
    """
    stream = io.StringIO()
    FigureCanvasSVG(figure).print_svg(stream, metadata={"Date": None})
    text = stream.getvalue()
    body = text[text.index("</metadata>") + len("</metadata>") : text.rindex("</svg>")]
    body = body[body.index("</defs>") + len("</defs>") :]  # a style that would rule the whole page
    width, height = figure.get_size_inches() * 72
    name = f'role="img" aria-label="{html.escape(sanitize_line(description))}"' if description else _SILENT
    start = f'<svg viewBox="0 0 {width:.0f} {height:.0f}" {name}>'
    return f"{start}{_tidied(body, f'f{next(_numbers)}-')}</svg>"


def _tidied(body: str, prefix: str) -> str:
    body = _GROUP_ID.sub("<g", body).replace("xlink:href", "href")
    body = _NAMED.sub(rf"\g<1>{prefix}\g<2>", body)
    body = _PLACES.sub(lambda m: _DECIMALS.sub(r"\1", m[0]).replace("\n", ""), body)
    body = _NO_TURN.sub("", body)
    body = _STYLE.sub(lambda m: _themed(m[0]), body)
    return _without_bare_groups(_EMPTY_GROUP.sub("", re.sub(r"\n\s*", "", body)))


def _without_bare_groups(body: str) -> str:
    """Return the same picture without groups that say nothing of what is in them; they are a quarter of it."""
    meaningful: list[bool] = []

    def kept(tag: re.Match[str]) -> str:
        if tag[0] == "</g>":
            return tag[0] if meaningful.pop() else ""
        meaningful.append(tag[0] != "<g>")
        return tag[0] if meaningful[-1] else ""

    return _GROUP.sub(kept, body)


def _themed(style: str) -> str:
    style = _FAMILY.sub("", _FONT.sub(r"font-size: \1", style))
    return _COLOUR.sub(lambda m: f"var({VARIABLES[m[0]]})", style)
