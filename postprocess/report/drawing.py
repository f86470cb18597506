"""How small diagrams are drawn: axes, and SVG that follows the page.

What imports this module imports matplotlib, which takes longer than a report without such a diagram.

Figures are drawn in stand-in colours. Each becomes a CSS variable of the page, so that one picture
serves a light and a dark screen; text stays text and inherits the page's font.
"""

import html
import io
import itertools
import math
import re
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import matplotlib
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullLocator

from postprocess.base.formats import size
from postprocess.base.sanitize import sanitize_line
from postprocess.report.panels import MOST_TICKS, choose_log_ticks, thin_values, write_tick

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


WIDTH, HEIGHT = 300, 205  #: of a panel, in CSS pixels
LINEAR_TICKS = 4  #: of bytes, beside 0
MOST_PLACES = 12  #: on a logarithmic x axis that all have a tick; of more, only those with a label
LABEL_WIDTH = (0.1, 0.19)  #: of a count and of a size, as a share of the axis
LEAST_FACTOR = 3.0  #: between the ends of a logarithmic axis, so that noise does not fill it
TINY = 1e-9  #: of a distance, which rounding may take from it
MARGIN = 1.18
ALONE_MARGIN = 1.6  #: beside the only place of x, as a factor


def draw_panel(
    title: str, x_label: str, unit: str = "µs", extent: tuple[int, int] = (WIDTH, HEIGHT)
) -> tuple[Figure, Axes]:
    """Draw an empty panel with a title, a label under x, and the unit of y above its axis.

    ``extent`` is width and height in CSS pixels.
    """
    figure = Figure(figsize=(extent[0] / 72, extent[1] / 72), dpi=72)
    FigureCanvasSVG(figure)
    axes = figure.add_axes((0.15, 0.19, 0.82, 0.66))
    axes.set_title(title, y=1.0, pad=9)  # a given y spares a costly search for it
    beside: dict[str, Any] = {"transform": axes.transAxes, "color": MUTED}
    axes.text(0.5, -0.22 * HEIGHT / extent[1], x_label, ha="center", **beside)
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.text(-0.02, 1.035, unit, ha="right", fontsize=9, **beside)
    axes.tick_params(length=3)
    return figure, axes


def set_linear_x(axes: Axes, values: Sequence[int], kind: str = "") -> dict[int, float]:
    """Make the x axis linear, from the first to the last of several ``values``; return where each lies.

    ``kind`` is ``bytes`` for labels such as ``10 kB``, at even distances.
    """
    room = 0.06 * (values[-1] - values[0])
    axes.set_xlim(values[0] - room, values[-1] + room)
    ticks = thin_values(values, MOST_TICKS)
    if kind == "bytes":
        ticks = [values[-1] * n // LINEAR_TICKS for n in range(LINEAR_TICKS + 1)]
    room = LABEL_WIDTH[False] * (values[-1] - values[0]) if kind != "bytes" else 0.0
    labelled = _apart(ticks, room, float)
    write = size if kind == "bytes" else str
    set_ticks_x(axes, ticks, [write(tick) if tick in labelled else "" for tick in ticks])
    return {value: float(value) for value in values}


def set_logarithmic_x(axes: Axes, values: Sequence[int], kind: str) -> dict[int, float]:
    """Make the x axis logarithmic, with ticks at ``values`` (sorted), labelled where there is room.

    ``kind`` is ``bytes`` for labels such as ``10 kB``. Returns where each value
    lies: at itself, but for zero, which stands left of the others.
    """
    least = next((value for value in values if value), 1)
    places = {value: value or least / 4 for value in values}
    first, last = places[values[0]], places[values[-1]]
    margin = max(1.12, (last / first) ** 0.06) if last > first else ALONE_MARGIN
    axes.set_xscale("log", base=2)
    axes.set_xlim(first / margin, last * margin)
    round_sizes = [size for size in places.values() if kind == "bytes" and int(size) & (int(size) - 1) == 0]
    crowded = len(places) > MOST_PLACES and len(round_sizes) > 1
    candidates = round_sizes if crowded else list(places.values())
    labelled = _apart(candidates, LABEL_WIDTH[kind == "bytes"] * math.log(last / first))
    write = size if kind == "bytes" else str
    ticks = list(places.values()) if len(places) <= MOST_PLACES else sorted(labelled)
    written = {place: write(value) for value, place in places.items() if place in labelled}
    _fix(axes.xaxis, ticks, [written.get(place, "") for place in ticks])
    return places


def set_logarithmic_y(axes: Axes, low: float, high: float) -> None:
    """Make the y axis logarithmic, from ``low`` to ``high`` (positive, as people read it)."""
    middle, factor = math.sqrt(low * high), max(high / low, LEAST_FACTOR)
    low, high = middle / math.sqrt(factor) / MARGIN, middle * math.sqrt(factor) * MARGIN
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    ticks = choose_log_ticks(low, high)
    _fix(axes.yaxis, ticks, [write_tick(tick) for tick in ticks])


def set_logarithmic_both(axes: Axes, low: float, high: float) -> None:
    """Make both axes logarithmic, from ``low`` to ``high`` (positive, without a unit)."""
    set_logarithmic_y(axes, low, high)
    ends = axes.get_ylim()
    axes.set_xscale("log")
    axes.set_xlim(ends)
    ticks = choose_log_ticks(*ends)
    _fix(axes.xaxis, ticks, [write_tick(tick) for tick in ticks])


def set_linear_y(axes: Axes, low: float, high: float) -> None:
    """Make the y axis linear, from ``low`` to ``high`` with some room."""
    room = 0.08 * (high - low) or 0.1 * high
    low, high = max(0.0, low - room), high + room
    axes.set_ylim(low, high)
    ticks = [t for t in MaxNLocator(4).tick_values(low, high) if low <= t <= high]
    _fix(axes.yaxis, ticks, [write_tick(tick) for tick in ticks])


def set_ticks_x(axes: Axes, positions: Sequence[float], labels: Sequence[str]) -> None:
    _fix(axes.xaxis, positions, labels)


def _fix(axis: Axis, ticks: Sequence[float], labels: Sequence[str]) -> None:
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter(labels))
    axis.set_minor_locator(NullLocator())


def _apart(values: Sequence[float], distance: float, place: Callable[[float], float] = math.log) -> set[float]:
    """Return values to label: each lies, by ``place``, a ``distance`` above the one before; the last always."""
    kept = [values[0]]
    for value in values[1:]:
        if place(value) - place(kept[-1]) >= distance - TINY:
            kept.append(value)
    if kept[-1] != values[-1]:
        kept[-1] = values[-1]
    return set(kept)
