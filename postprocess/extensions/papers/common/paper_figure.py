"""A figure of a paper: panels side by side, and the lines in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from postprocess.base.units import SECONDS
from postprocess.extensions.papers.common.data import Operation, PaperMeasurements
from postprocess.report.panels import LOGARITHMIC, Panel, PanelLine, Point

MOST_LINES = 8  #: of a panel, so that each has a colour of its own
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


def build_panel(
    title: str,
    x: str,
    curves: Mapping[str, Curve],
    styles: Mapping[str, int],
    unit: str = SECONDS,
    modelled: Collection[str] = (),
    scale: str = LOGARITHMIC,
) -> Panel | None:
    """Build a panel with a line for each curve; None if none has a point.

    ``curves``: values in the unit by x; ``styles``: of the lines; ``modelled``: of a model.
    """
    lines = tuple(
        PanelLine(
            name,
            styles[name],
            tuple(Point(at, curve[at], None, False) for at in sorted(curve)),
            name in modelled,
        )
        for name, curve in curves.items()
        if curve
    )
    return Panel(title, x, lines, unit, scale) if lines else None


def number_styles(names: Sequence[str]) -> dict[str, int]:
    """Return a style for each line, in their order."""
    return {name: number for number, name in enumerate(names)}


def group_operations(measured: PaperMeasurements) -> dict[tuple[str, ...], list[Operation]]:
    """Group the operations that share a figure: one routine under the same conditions."""
    found: dict[tuple[str, ...], list[Operation]] = {}
    for operation in measured.operations:
        about = (operation.routine, *measured.name_conditions(operation))
        found.setdefault(about, []).append(operation)
    return found
