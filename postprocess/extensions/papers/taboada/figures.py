"""Figures of Taboada et al. of sessions: all MPIs of a machine in one, measured and by the models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from postprocess.base.formats import plural
from postprocess.base.units import MEGABYTES, SECONDS
from postprocess.extensions.papers.common.measurements import PaperMeasurements
from postprocess.extensions.papers.common.presentation import (
    MOST_LINES,
    Curve,
    PaperFigure,
    build_figure,
    build_panel,
    number_styles,
)
from postprocess.extensions.papers.taboada.model_fit import SEND, FittedModel, MeasuredModel, fit_measured
from postprocess.report.panels import FROM_ZERO, Panel

LINES = ("measured", "model", "Hockney")
#: Of figures 3 and 4, in their order, and then what the paper does not draw
COLLECTIVE = (
    *("bcast", "reduce_sum", "scatter", "alltoall"),
    *("gather", "allgather", "allreduce_sum", "reduce_scatter_sum", "scan_sum"),
)


@dataclass(frozen=True)
class ChosenModel:
    """The model of one MPI at the process count that is drawn, and the times behind it in seconds by bytes."""

    count: int
    fit: FittedModel
    times: Mapping[int, float]

    @property
    def sizes(self) -> list[int]:
        """The measured sizes and the powers of two between them: where a model is drawn."""
        sizes = sorted(size for size in self.times if size)
        doubled = (sizes[0] * 2**k for k in range(60))
        return sorted({*sizes, *(size for size in doubled if size < sizes[-1])})

    @property
    def rates(self) -> Curve:
        """Measured MB/s by bytes."""
        return {size: size / self.times[size] / 1e6 for size in sorted(self.times) if size}

    @property
    def modelled_rates(self) -> Curve:
        """MB/s by the model, by bytes."""
        return {size: size / self.fit.time(size) / 1e6 for size in self.sizes}


_Chosen = Mapping[str, ChosenModel]  #: by MPI


def draw_models(measured: PaperMeasurements) -> list[PaperFigure]:
    """Draw figures 1 to 4 of each machine under each condition."""
    groups: dict[tuple[str, str], dict[str, list[MeasuredModel]]] = {}
    for model in fit_measured(measured):
        machine, _, cache, sync = model.place
        routines = groups.setdefault((machine, f"cache {cache}, sync {sync}"), {})
        routines.setdefault(model.routine, []).append(model)
    figures = []
    for (machine, conditions), routines in groups.items():
        title = f"{machine}, {conditions}"
        if sends := _choose(routines.get(SEND, ())):
            figures += [_compare(f"{title}: bandwidth of a send (Fig. 1)", sends)]
            figures += [_draw_sends(f"{title}: latency and bandwidth of a send (Fig. 2)", sends)]
        chosen = {name: _choose(routines.get(name, ())) for name in COLLECTIVE}
        figures.append(_draw_collective(f"{title}: bandwidth n / T(n) (Figs. 3 and 4)", chosen))
    return figures


def _choose(models: Sequence[MeasuredModel]) -> _Chosen:
    """Choose the most processes at which all MPIs have a model, as the paper does; else of each its own."""
    kept = [model for model in models if model.fits][:MOST_LINES]
    shared = set.intersection(*(set(model.fits) for model in kept)) if kept else set()
    found = {}
    for model in kept:
        count = max(shared or model.fits)
        found[model.place.environment] = ChosenModel(count, model.fits[count], model.times[count])
    return found


def _compare(title: str, chosen: _Chosen) -> PaperFigure:
    """Draw a panel for each MPI: measured, the model, and Hockney's."""
    panels = []
    for name, each in chosen.items():
        curves = {LINES[0]: each.rates}
        if each.fit.is_good:
            hockney = {size: size / each.fit.hockney.time(size) / 1e6 for size in each.sizes}
            curves |= {LINES[1]: each.modelled_rates, LINES[2]: hockney}
        styles = number_styles(LINES)
        panels.append(build_panel(name, "bytes", curves, styles, MEGABYTES, LINES[1:], FROM_ZERO))
    return build_figure(title, panels, _name_poor(chosen))


def _draw_sends(title: str, chosen: _Chosen) -> PaperFigure:
    """Draw latency, logarithmic, and bandwidth of all MPIs: measured, and by the models."""
    latency: dict[str, Curve] = {}
    for name, each in chosen.items():
        latency[name] = {size: time for size, time in each.times.items() if size}
        if each.fit.is_good:
            latency[_modelled(name)] = {size: each.fit.time(size) for size in each.sizes}
    models = [*map(_modelled, chosen)]
    panels = [
        build_panel("latency", "bytes", latency, _number(chosen), SECONDS, models),
        _rate_panel("bandwidth", chosen),
    ]
    return build_figure(title, panels, _name_poor(chosen))


def _draw_collective(title: str, routines: Mapping[str, _Chosen]) -> PaperFigure:
    panels, poor = [], []
    for routine, chosen in routines.items():
        if chosen:
            counts = sorted({each.count for each in chosen.values()})
            panels.append(_rate_panel(f"{routine}, {'/'.join(map(str, counts))} processes", chosen))
            poor += [f"{routine} of {name}" for name, each in chosen.items() if not each.fit.is_good]
    remark = f"{plural(len(poor), 'model')} off by more than a quarter, not drawn: {', '.join(poor)}"
    return build_figure(title, panels, remark if poor else "")


def _rate_panel(title: str, chosen: _Chosen) -> Panel | None:
    curves: dict[str, Curve] = {}
    for name, each in chosen.items():
        curves[name] = each.rates
        if each.fit.is_good:
            curves[_modelled(name)] = each.modelled_rates
    models = [*map(_modelled, chosen)]
    return build_panel(title, "bytes", curves, _number(chosen), MEGABYTES, models, FROM_ZERO)


def _modelled(name: str) -> str:
    return f"{name}, by the model"


def _number(chosen: _Chosen) -> dict[str, int]:
    styles = number_styles(chosen)
    return styles | {_modelled(name): style for name, style in styles.items()}


def _name_poor(chosen: _Chosen) -> str:
    poor = [name for name, each in chosen.items() if not each.fit.is_good]
    return f"model not drawn, off by more than a quarter: {', '.join(poor)}" if poor else ""
