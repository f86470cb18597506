"""Figures of the papers, and the pages that they and tables make."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from markupsafe import Markup

from postprocess.base import formats
from postprocess.base.formats import TextTable
from postprocess.extensions.papers.measurements import Operation, PaperMeasurements
from postprocess.report import plots
from postprocess.report.document import Block, Document, Legend, Lines, Picture, Role, Section, Tone
from postprocess.report.panels import LOGARITHMIC, Panel, PanelLine, Point, thin_values

_Value = TypeVar("_Value")

SOURCES = "What the papers printed, and from where: reference_data/historical."
MOST_LINES = 8  #: of a panel, so that each has a colour of its own
WIDTH = 285  #: of a panel in CSS pixels, at most
Curve = Mapping[int, float]  #: seconds or MB/s by x


@dataclass(frozen=True)
class PaperFigure:
    """Panels side by side with one legend, which has the names of their lines."""

    title: str
    panels: tuple[Panel, ...]
    remark: str = ""

    @property
    def lines(self) -> list[PanelLine]:
        """One line of each name: the measured ones in the order of their styles, then those of models."""
        found = {line.name: line for panel in self.panels for line in panel.lines}
        return sorted(found.values(), key=lambda line: (line.modelled, line.style))


def build_figure(title: str, panels: Iterable[Panel | None], remark: str = "") -> PaperFigure:
    return PaperFigure(title, tuple(filter(None, panels)), remark)


class Modelled(str):
    """The name of a line that a model says: that of the measured line ``of``, whose style it has, and words."""

    of: str

    def __new__(cls, of: str, words: str = "") -> "Modelled":
        made = super().__new__(cls, of + words)
        made.of = of
        return made


def name_measured(line: str) -> str:
    """Return the name of the measured line beside that of a model, or of the line itself."""
    return line.of if isinstance(line, Modelled) else line


def build_panel(
    title: str,
    x: str,
    curves: Mapping[str, Curve],
    names: Iterable[str],
    unit: str = formats.SECONDS,
    scale: str = LOGARITHMIC,
) -> Panel | None:
    """Build a panel with a line for each curve, in the style of its place in ``names``; None without a point.

    ``curves``: values in the unit by x
    """
    styles = {name: number for number, name in enumerate(names)}
    lines = []
    for name, curve in curves.items():
        points = tuple(Point(at, curve[at], None, False) for at in sorted(curve))
        if points:
            lines.append(PanelLine(name, styles[name_measured(name)], points, isinstance(name, Modelled)))
    return Panel(title, x, tuple(lines), unit, scale) if lines else None


def choose_evenly(values: Sequence[_Value], most: int) -> list[_Value]:
    """Choose at most ``most`` of the values, evenly, the first and the last among them."""
    return [values[n] for n in thin_values(range(len(values)), most)]


def group_operations(measured: PaperMeasurements) -> dict[tuple[str, ...], list[Operation]]:
    """Group the operations that share a figure: one routine under the same conditions."""
    found: dict[tuple[str, ...], list[Operation]] = {}
    for operation in measured.operations:
        about = (operation.routine, *measured.name_conditions(operation))
        found.setdefault(about, []).append(operation)
    return found


def draw_figures(figures: Iterable[PaperFigure]) -> list[Block]:
    """Return figures as a document has them: of each a legend under its title, and a picture of each panel."""
    blocks: list[Block] = []
    for figure in figures:
        keys = [(Markup(plots.draw_line_key(line.style, line.modelled)), line.name) for line in figure.lines]
        blocks.append(Legend(keys, " · ".join(filter(None, [figure.title, figure.remark]))))
        blocks += [Picture(partial(plots.draw_lines, panel), width=WIDTH) for panel in figure.panels]
    return blocks


def build_section(
    title: str,
    remarks: Sequence[str],
    drawn: Iterable[Block],
    tables: Sequence[TextTable],
    introduction: str = "",
    notes: Sequence[str] = (),
) -> Section:
    """Build a section of a page: what is said first, what is drawn, tables, and notes at the end."""
    said = [introduction] if introduction else []
    lists = [Lines(Role.DETAIL, remarks), Lines(Role.DETAIL, notes)]
    return Section(title, [Lines(Role.REMARK, said), lists[0], *drawn, *tables, lists[1]])


def build_page(
    where: Sequence[str], title: str, sections: Sequence[Section], facts: Sequence[str] = ()
) -> Document:
    """Build a page of papers."""
    return Document("papers", where, Tone.PLAIN, title, facts, sections, [SOURCES])
