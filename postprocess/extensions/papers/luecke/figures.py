"""Figures of Luecke et al. of sessions: a line for each machine, or for each MPI of a machine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from postprocess.base.formats import plural
from postprocess.extensions.papers.common.data import Operation, PaperMeasurements
from postprocess.extensions.papers.common.paper_figure import (
    MOST_LINES,
    Curve,
    PaperFigure,
    build_panel,
    group_operations,
    number_styles,
)
from postprocess.extensions.papers.luecke import predictions, scalability
from postprocess.model.routines.mpicost import PINGPONG, ROUTINES
from postprocess.report.panels import LINEAR, MILLISECONDS, Panel, thin_values

MOST_PANELS = 4
HIDES = 4  #: times as long: a line so far above the next hides all below
TOLD = ", predicted"  #: behind the name of a line
TESTED = frozenset(each.name for each in ROUTINES if each.test)  #: in the papers


def draw_machines(measured: PaperMeasurements) -> list[PaperFigure]:
    predicted = {
        (e.machine, e.environment, e.operation): e for e in predictions.predict_times(measured)
    }
    return [
        *_over_peers(measured, measured.machines),
        *_over_processes(measured, measured.machines, predicted),
    ]


def draw_libraries(measured: PaperMeasurements) -> list[PaperFigure]:
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


def _over_processes(
    measured: PaperMeasurements,
    machines: Sequence[str],
    predicted: Mapping[tuple[str, str, Operation], predictions.Prediction],
) -> list[PaperFigure]:
    places = _places(measured, machines)
    figures = []
    for about, operations in group_operations(measured).items():
        if about[0] not in TESTED or about[0] == PINGPONG:
            continue
        panels: list[Panel | None] = []
        names = list(places)[:MOST_LINES]
        styles = number_styles(names)
        styles |= {f"{name}{TOLD}": style for name, style in styles.items()}
        drawable = [
            operation
            for operation in operations
            if any(len(c) > 1 for c in _times(measured, places, names, operation).values())
        ]
        chosen = [drawable[n] for n in thin_values(range(len(drawable)), MOST_PANELS)]
        for operation in chosen:
            curves = _times(measured, places, names, operation)
            models = _models(measured, places, names, operation, predicted)
            every = {**curves, **models}
            size = operation.size or "no payload"
            panels += _draw(size, "processes", every, styles, models)
            if about[0] in scalability.MODELS:
                divided = {
                    name: {
                        p: t / scalability.compute_divisor(about[0], p) for p, t in curve.items()
                    }
                    for name, curve in every.items()
                }
                title = f"{size}: time / {scalability.format_divisor(about[0])}"
                panels += _draw(title, "processes", divided, styles, models)
        left_out = {"line": len(places) - len(names), "size": len(drawable) - len(chosen)}
        more = [plural(number, noun) for noun, number in left_out.items() if number]
        remark = f"{' and '.join(more)} not drawn" if more else ""
        title = f"{', '.join((*machines, *about) if len(machines) == 1 else about)}: time over processes"
        figures.append(PaperFigure(title, tuple(filter(None, panels)), remark))
    return figures


def _draw(
    title: str,
    x: str,
    curves: Mapping[str, Curve],
    styles: Mapping[str, int],
    models: Collection[str] = (),
) -> list[Panel | None]:
    """Build a panel as the papers have it, milliseconds from 0, and another without lines far above all others.

    Luecke, Kraeva and Ju (2003) draw one library again by itself where another hides it.
    """
    shown = {name: _in_milliseconds(curve) for name, curve in curves.items() if curve}
    panels = [build_panel(title, x, shown, styles, MILLISECONDS, models, LINEAR)]
    tops = sorted(
        (max(curve.values()), name) for name, curve in shown.items() if name not in models
    )
    gaps = [n for n in range(1, len(tops)) if tops[n][0] > HIDES * tops[n - 1][0]]
    if gaps:
        low = {name for _, name in tops[: gaps[-1]]}
        kept = {n: curve for n, curve in shown.items() if n in low or n.removesuffix(TOLD) in low}
        slow = ", ".join(name for _, name in tops[gaps[-1] :])
        far = f"{title}, without {slow}"
        panels.append(build_panel(far, x, kept, styles, MILLISECONDS, models, LINEAR))
    return panels


def _in_milliseconds(curve: Curve) -> dict[int, float]:
    return {at: seconds * 1e3 for at, seconds in curve.items()}


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
        f"{name}{TOLD}": each.predicted
        for name, each in told.items()
        if each is not None and each.error <= predictions.GOOD and len(each.predicted) > 1
    }


def _over_peers(measured: PaperMeasurements, machines: Sequence[str]) -> list[PaperFigure]:
    """Draw ping-pong of rank 0 with each other, at the most processes."""
    places = _places(measured, machines)
    names = list(places)[:MOST_LINES]
    figures = []
    for about, operations in group_operations(measured).items():
        if about[0] != PINGPONG:
            continue
        panels: list[Panel | None] = []
        for operation in operations[-MOST_PANELS:]:
            curves = {name: _peers(measured, *places[name], operation) for name in names}
            if any(len(curve) > 1 for curve in curves.values()):
                panels += _draw(operation.size, "peer", curves, number_styles(names))
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
    return {r.case.peer: r.published for r in measured.results[most] if r.published}
