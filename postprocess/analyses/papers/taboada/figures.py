"""Figures of Taboada et al. of sessions: bandwidth as measured, by the model, and by Hockney's."""

from __future__ import annotations

from postprocess.analyses.papers.common.data import PaperMeasurements
from postprocess.analyses.papers.common.paper_figure import (
    Curve,
    PaperFigure,
    build_panel,
    number_styles,
)
from postprocess.analyses.papers.taboada.measured_models import SEND, MeasuredModel, fit_measured
from postprocess.base.units import MEGABYTES
from postprocess.report.panels import Panel

LINES = ("measured", "model", "Hockney")


def draw_models(measured: PaperMeasurements) -> list[PaperFigure]:
    groups: dict[str, list[MeasuredModel]] = {}
    for model in fit_measured(measured):
        groups.setdefault(model.place.whose, []).append(model)
    figures = []
    for whose, models in groups.items():
        models.sort(key=lambda model: model.place.routine != SEND)
        panels = [panel for model in models if (panel := _model_panel(model))]
        poor = [
            model.place.routine
            for model in models
            if model.fits and not model.fits[max(model.fits)].is_good
        ]
        remark = f"model not drawn, off by more than a quarter: {', '.join(poor)}" if poor else ""
        title = f"{whose}: bandwidth n / T(n)"
        figures.append(PaperFigure(title, tuple(panels), remark))
    return figures


def _model_panel(model: MeasuredModel) -> Panel | None:
    if not model.fits:
        return None
    count = max(model.fits)
    fit, times = model.fits[count], model.times[count]
    sizes = sorted(size for size in times if size)
    dense = sorted(
        {*sizes, *(round(sizes[0] * 2**k) for k in range(60) if sizes[0] * 2**k < sizes[-1])}
    )
    curves: dict[str, Curve] = {LINES[0]: {s: s / times[s] / 1e6 for s in sizes}}
    if fit.is_good:
        curves[LINES[1]] = {s: s / fit.time(s) / 1e6 for s in dense}
        curves[LINES[2]] = {s: s / fit.hockney_time(s) / 1e6 for s in dense}
    title = f"{model.place.routine}, {count} processes"
    return build_panel(title, "bytes", curves, number_styles(LINES), MEGABYTES, LINES[1:])
