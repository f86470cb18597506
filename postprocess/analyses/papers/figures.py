"""The figures of the papers of sessions: a line for each machine, MPI, process count or experiment.

Each paper has its own function; none needs more than what was measured. What cannot be drawn is left out, and
models are drawn only where they are good.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from postprocess.analyses.papers import contention, predictions, rus, scalability
from postprocess.analyses.papers.data import Operation, PaperMeasurements
from postprocess.analyses.papers.measured_models import SEND, MeasuredModel, fit_measured
from postprocess.base.formats import plural
from postprocess.base.units import MEGABYTES, SECONDS
from postprocess.model.mpicost import BARRIER, PINGPONG
from postprocess.report.panels import Panel, PanelLine, Point, thin_values

MOST_PANELS = 4
MOST_LINES = 8
FOUR = 4  #: process counts, or sizes, of RUS's figures
POINTS_OF_MODEL = 4  #: points of a drawn model between two measured sizes
LOG_LINEAR = (2**21, 2**17, 2**13)  #: largest sizes of COMMTEST's pictures with linear axes

Curve = Mapping[int, float]


@dataclass(frozen=True)
class PaperFigure:
    """Panels side by side with one legend, which has the names of their lines."""

    title: str
    panels: tuple[Panel, ...]
    remark: str = ""

    @property
    def lines(self) -> list[PanelLine]:
        """One line of each name, in the order in which panels have them."""
        found = {line.name: line for panel in self.panels for line in panel.lines}
        return list(found.values())


def build_figures(paper: str, measured: PaperMeasurements) -> list[PaperFigure]:
    """Build the figures of a paper that the sessions allow. Raises KeyError for a paper that is not there."""
    return [figure for figure in _BUILDERS[paper](measured) if figure.panels]


def build_panel(
    title: str,
    x: str,
    curves: Mapping[str, Curve],
    styles: Mapping[str, int],
    unit: str = SECONDS,
    modelled: Collection[str] = (),
    linear: bool = False,
) -> Panel | None:
    """Build a panel with a line for each curve; None if none has a point.

    ``curves``: values in seconds or MB/s by x; ``styles``: of the lines; ``modelled``: of a model.
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
    return Panel(title, x, lines, unit, linear) if lines else None


def number_styles(names: Sequence[str]) -> dict[str, int]:
    """Return a style for each line, in their order."""
    return {name: number for number, name in enumerate(names)}


# Luecke et al.: a line for each machine, or each MPI of a machine.


def _luecke2001(measured: PaperMeasurements) -> list[PaperFigure]:
    predicted = {
        (e.machine, e.environment, e.operation): e for e in predictions.predict_times(measured)
    }
    return [
        *_over_peers(measured, measured.machines),
        *_over_processes(measured, measured.machines, predicted),
    ]


def _luecke2003(measured: PaperMeasurements) -> list[PaperFigure]:
    found = []
    for machine in measured.machines:
        found += _over_peers(measured, [machine])
        found += _over_processes(measured, [machine], {})
    return found


def _places(measured: PaperMeasurements, machines: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return machine and MPI by the name of their line, no longer than tells them apart."""
    places = [(m, e) for m in machines for e in measured.environments_on(m)]
    if len(machines) == 1:
        return {environment: (m, environment) for m, environment in places}
    several = len(places) > len(machines)
    return {f"{m}, {e}" if several else m: (m, e) for m, e in places}


def _groups(measured: PaperMeasurements) -> dict[tuple[str, ...], list[Operation]]:
    """Group the operations that share a figure: one routine under the same conditions."""
    found: dict[tuple[str, ...], list[Operation]] = {}
    for operation in measured.operations:
        about = (operation.routine, *measured.conditions(operation))
        found.setdefault(about, []).append(operation)
    return found


def _over_processes(
    measured: PaperMeasurements,
    machines: Sequence[str],
    predicted: Mapping[tuple[str, str, Operation], predictions.Prediction],
) -> list[PaperFigure]:
    places = _places(measured, machines)
    figures = []
    for about, operations in _groups(measured).items():
        if about[0] == PINGPONG:
            continue
        panels: list[Panel | None] = []
        names = list(places)[:MOST_LINES]
        styles = number_styles(names)
        styles |= {f"{name}, predicted": style for name, style in styles.items()}
        for operation in operations:
            curves = _times(measured, places, names, operation)
            models = _models(measured, places, names, operation, predicted)
            every = {**curves, **models}
            size = operation.size or "no payload"
            if not any(len(curve) > 1 for curve in curves.values()):
                continue
            panels.append(build_panel(size, "processes", every, styles, modelled=models))
            if about[0] in scalability.MODELS:
                divided = {
                    name: {
                        p: t / scalability.compute_divisor(about[0], p) for p, t in curve.items()
                    }
                    for name, curve in every.items()
                }
                title = f"{size}: time / {scalability.format_divisor(about[0])}"
                panels.append(build_panel(title, "processes", divided, styles, modelled=models))
        left_out = len(places) - len(names)
        remark = f"{plural(left_out, 'line')} not drawn" if left_out else ""
        title = f"{', '.join((*machines, *about) if len(machines) == 1 else about)}: time over processes"
        figures.append(PaperFigure(title, tuple(filter(None, panels)), remark))
    return figures


def _times(
    measured: PaperMeasurements,
    places: Mapping[str, tuple[str, str]],
    names: Sequence[str],
    operation: Operation,
) -> dict[str, Curve]:
    return {
        name: {
            count: time
            for count in measured.planned(*places[name], operation)
            if count > 1 and (time := measured.time(*places[name], operation, count)) is not None
        }
        for name in names
    }


def _models(
    measured: PaperMeasurements,
    places: Mapping[str, tuple[str, str]],
    names: Sequence[str],
    operation: Operation,
    predicted: Mapping[tuple[str, str, Operation], predictions.Prediction],
) -> dict[str, Curve]:
    """Return the predicted curves that are good enough."""
    told = {name: predicted.get((*places[name], operation)) for name in names}
    return {
        f"{name}, predicted": each.predicted
        for name, each in told.items()
        if each is not None and each.error <= predictions.GOOD and len(each.predicted) > 1
    }


def _over_peers(measured: PaperMeasurements, machines: Sequence[str]) -> list[PaperFigure]:
    """Draw ping-pong of rank 0 with each other, at the most processes."""
    places = _places(measured, machines)
    names = list(places)[:MOST_LINES]
    figures = []
    for about, operations in _groups(measured).items():
        if about[0] != PINGPONG:
            continue
        panels = []
        for operation in operations[-MOST_PANELS:]:
            curves = {name: _peers(measured, *places[name], operation) for name in names}
            if any(len(curve) > 1 for curve in curves.values()):
                panels.append(build_panel(operation.size, "peer", curves, number_styles(names)))
        title = f"{', '.join((*machines, *about) if len(machines) == 1 else about)}: time over the partner"
        figures.append(PaperFigure(title, tuple(filter(None, panels))))
    return figures


def _peers(
    measured: PaperMeasurements, machine: str, environment: str, operation: Operation
) -> Curve:
    cells = [
        cell
        for cell in measured.results
        if (cell.machine, cell.environment, cell.operation) == (machine, environment, operation)
    ]
    if not cells:
        return {}
    most = max(cells, key=lambda cell: cell.processes)
    return {r.case.peer: r.value for r in measured.results[most] if r.value}


# RUS: bandwidth and time over bytes and over processes, for one MPI each.


def _rus(measured: PaperMeasurements) -> list[PaperFigure]:
    figures = []
    for machine in measured.machines:
        for environment in measured.environments_on(machine):
            for about, operations in _groups(measured).items():
                title = ", ".join((machine, environment, *about))
                figures.append(_rus_figure(measured, machine, environment, operations, title))
    return figures


def _rus_figure(
    measured: PaperMeasurements,
    machine: str,
    environment: str,
    operations: Sequence[Operation],
    title: str,
) -> PaperFigure:
    routine = operations[0].routine
    times = {
        operation.bytes: {
            count: time
            for count in measured.planned(machine, environment, operation)
            if count > 1 and (time := measured.time(machine, environment, operation, count))
        }
        for operation in operations
    }
    counts = sorted({count for curve in times.values() for count in curve})
    if routine == PINGPONG:
        counts = counts[:1]
    elif routine not in (BARRIER, *rus.ROUTINES):
        return PaperFigure(title, ())
    rated = routine in (PINGPONG, *rus.MOVED_BY_ALL)

    def value(size: int, count: int) -> float:
        return _rate(routine, size, count, times[size][count]) if rated else times[size][count]

    unit = MEGABYTES if rated else SECONDS
    what = "bandwidth" if rated else "time"
    by_count = {
        f"p = {count}": {s: value(s, count) for s in times if s and count in times[s]}
        for count in thin_values(counts, FOUR)
    }
    by_size = {
        operation.size or "no payload": {
            count: value(operation.bytes, count) for count in times[operation.bytes]
        }
        for operation in _thin(operations)
        if operation.bytes or not rated
    }
    styles = number_styles([*by_count]) | number_styles([*by_size])
    panels = [
        build_panel(f"{what} over bytes", "bytes", by_count, styles, unit),
        build_panel(f"{what} over processes", "processes", by_size, styles, unit),
    ]
    kept = [panel for panel in panels if panel and any(len(x.points) > 1 for x in panel.lines)]
    return PaperFigure(title, tuple(kept))


def _thin(operations: Sequence[Operation]) -> list[Operation]:
    return [operations[n] for n in thin_values(range(len(operations)), FOUR)]


def _rate(routine: str, size: int, count: int, time: float) -> float:
    """Return the report's bandwidth in MB/s; its buffer is p blocks but for bcast."""
    if routine == PINGPONG:
        return size / time / 1e6
    buffer = size * (1 if routine == "bcast" else count)
    return rus.compute_aggregated_bandwidth(routine, buffer, count, time) / 1e6


# Taboada et al.: bandwidth measured, by the model, and by Hockney's.

_TABOADA = ("measured", "model", "Hockney")


def _taboada(measured: PaperMeasurements) -> list[PaperFigure]:
    groups: dict[tuple[str, ...], list[MeasuredModel]] = {}
    for model in fit_measured(measured):
        place = model.place
        whose = (place.machine, place.environment, place.cache, place.sync)
        groups.setdefault(whose, []).append(model)
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
        title = f"{', '.join(whose)}: n / T(n)"
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
    curves: dict[str, Curve] = {_TABOADA[0]: {s: s / times[s] / 1e6 for s in sizes}}
    if fit.is_good:
        curves[_TABOADA[1]] = {s: s / fit.time(s) / 1e6 for s in dense}
        curves[_TABOADA[2]] = {s: s / fit.hockney_time(s) / 1e6 for s in dense}
    title = f"{model.place.routine}, {count} processes"
    return build_panel(title, "bytes", curves, number_styles(_TABOADA), MEGABYTES, _TABOADA[1:])


# COMMTEST: bandwidth of swaps over bytes, logarithmic and linear.


def _commtest(measured: PaperMeasurements) -> list[PaperFigure]:
    swaps = contention.collect_swaps(measured)
    figures = []
    for each in swaps:
        curves = _swap_curves(each)
        names = list(curves)[:MOST_LINES]
        kept = {name: curves[name] for name in names}
        figures.append(_swap_figure(f"{each.machine}, {each.environment}, {each.conditions}", kept))
    platforms = {f"{each.machine}, {each.environment}": _bandwidths(each.alone) for each in swaps}
    if len(platforms) > 1:
        kept = {name: platforms[name] for name in list(platforms)[:MOST_LINES]}
        figures.append(_swap_figure(f"Platforms, {contention.ALONE}", kept))
    return figures


def _swap_curves(swaps: contention.Swaps) -> dict[str, Curve]:
    """Return the bandwidth of each experiment: alone, and at the most processes beside others."""
    curves = {contention.ALONE: _bandwidths(swaps.alone)}
    for name, counts in swaps.times.items():
        if name != contention.ALONE:
            for count in thin_values(sorted(counts), 2):
                curves[f"{name}, {count} processes"] = _bandwidths(counts[count])
    return curves


def _bandwidths(times: contention.Times) -> Curve:
    return {size: contention.compute_bandwidth(size, times[size]) / 1e6 for size in times}


def _swap_figure(title: str, curves: Mapping[str, Curve]) -> PaperFigure:
    styles = number_styles([*curves])
    panels = [build_panel("logarithmic", "bytes", curves, styles, MEGABYTES)]
    for most in LOG_LINEAR:
        small = {n: {s: v for s, v in curve.items() if s <= most} for n, curve in curves.items()}
        if any(len(curve) > 2 for curve in small.values()):
            panel = build_panel("linear", "bytes", small, styles, MEGABYTES, linear=True)
            panels.append(panel)
    return PaperFigure(f"{title}: bandwidth in both directions", tuple(filter(None, panels)))


_BUILDERS: dict[str, Callable[[PaperMeasurements], list[PaperFigure]]] = {
    "luecke2001": _luecke2001,
    "luecke2003": _luecke2003,
    "rus": _rus,
    "taboada": _taboada,
    "commtest": _commtest,
}
