"""The figures of the papers, of sessions: what cannot be drawn is left out, and so are bad models."""

from __future__ import annotations

from collections.abc import Callable

from postprocess.analyses.papers.common.data import PaperMeasurements
from postprocess.analyses.papers.common.paper_figure import PaperFigure
from postprocess.analyses.papers.commtest.figures import draw_swaps
from postprocess.analyses.papers.luecke.figures import draw_libraries, draw_machines
from postprocess.analyses.papers.rus.figures import draw_costs
from postprocess.analyses.papers.taboada.figures import draw_models

_BUILDERS: dict[str, Callable[[PaperMeasurements], list[PaperFigure]]] = {
    "luecke2001": draw_machines,
    "luecke2003": draw_libraries,
    "rus": draw_costs,
    "taboada": draw_models,
    "commtest": draw_swaps,
}


def build_figures(paper: str, measured: PaperMeasurements) -> list[PaperFigure]:
    """Build the figures of a paper that the sessions allow. Raises KeyError for a paper that is not there."""
    return [figure for figure in _BUILDERS[paper](measured) if figure.panels]
