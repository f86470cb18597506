"""Figures of Luecke et al. of sessions: a line for each machine, or for each MPI of a machine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from postprocess.base.formats import plural
from postprocess.extensions.papers.common.measurements import Operation, PaperCell, PaperMeasurements
from postprocess.extensions.papers.common.presentation import (
    MOST_LINES,
    Curve,
    PaperFigure,
    build_figure,
    build_panel,
    choose_evenly,
    group_operations,
    number_styles,
)
from postprocess.extensions.papers.luecke import models
from postprocess.model.routines.mpicost import PINGPONG, ROUTINES
from postprocess.report.panels import MOST_PANELS, LINEAR, MILLISECONDS, Panel

HIDES = 4  #: times as long: a line so far above the next hides all below
TOLD = ", predicted"  #: behind the name of a line
TESTED = frozenset(routine.name for routine in ROUTINES if routine.test)  #: in the papers
_Predicted = Mapping[tuple[str, str, Operation], models.Prediction]  #: by machine, MPI and operation


def draw_machines(measured: PaperMeasurements) -> list[PaperFigure]:
    """Draw the figures of Luecke et al. (2001): all machines in each, with what ping-pong predicts."""
    predicted = {(e.machine, e.environment, e.operation): e for e in models.predict_times(measured)}
    return _draw_tests(measured, measured.machines, predicted)


def draw_libraries(measured: PaperMeasurements) -> list[PaperFigure]:
    """Draw the figures of Luecke, Kraeva and Ju (2003): all MPIs of a machine in each."""
    return [figure for machine in measured.machines for figure in _draw_tests(measured, [machine], {})]


def _draw_tests(
    measured: PaperMeasurements, machines: Sequence[str], predicted: _Predicted
) -> list[PaperFigure]:
    """Draw ping-pong over the partners, then all other tests over processes."""
    mpis = _name_mpis(measured, machines)
    prefix = machines if len(machines) == 1 else ()
    peers, processes = [], []
    for about, operations in group_operations(measured).items():
        title = ", ".join((*prefix, *about))
        if about[0] == PINGPONG:
            peers.append(_over_peers(measured, mpis, title, operations))
        elif about[0] in TESTED:
            processes.append(_over_processes(measured, mpis, title, operations, predicted))
    return [*peers, *processes]


def _name_mpis(measured: PaperMeasurements, machines: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return machine and MPI by the name of their line, no longer than tells them apart."""
    mpis = [mpi for mpi in measured.mpis if mpi[0] in machines]
    if len(machines) == 1:
        return {environment: (machine, environment) for machine, environment in mpis}
    several = len(mpis) > len(machines)
    return {", ".join(mpi) if several else mpi[0]: mpi for mpi in mpis}


def _over_processes(
    measured: PaperMeasurements,
    mpis: Mapping[str, tuple[str, str]],
    title: str,
    operations: Sequence[Operation],
    predicted: _Predicted,
) -> PaperFigure:
    """Draw the times of a routine, a panel for each size; where it has a model, over its divisor too."""
    names = list(mpis)[:MOST_LINES]
    styles = number_styles(names)
    styles |= {f"{name}{TOLD}": style for name, style in styles.items()}
    times = {each: {name: measured.curve(*mpis[name], each) for name in names} for each in operations}
    drawable = [each for each in operations if any(len(curve) > 1 for curve in times[each].values())]
    chosen = choose_evenly(drawable, MOST_PANELS)
    panels: list[Panel | None] = []
    for operation in chosen:
        told = {name: predicted.get((*mpis[name], operation)) for name in names}
        good = {
            f"{name}{TOLD}": each.predicted
            for name, each in told.items()
            if each is not None and each.error <= models.GOOD and len(each.predicted) > 1
        }
        curves: dict[str, Curve] = {**times[operation], **good}
        size = operation.size or "no payload"
        panels += _draw(size, "processes", curves, styles, good)
        routine = operation.routine
        if routine in models.SCALING:
            divided = {
                name: {p: time / models.compute_divisor(routine, p) for p, time in curve.items()}
                for name, curve in curves.items()
            }
            by_model = f"{size}: time / {models.format_divisor(routine)}"
            panels += _draw(by_model, "processes", divided, styles, good)
    left_out = {"line": len(mpis) - len(names), "size": len(drawable) - len(chosen)}
    more = [plural(number, noun) for noun, number in left_out.items() if number]
    remark = f"{' and '.join(more)} not drawn" if more else ""
    return build_figure(f"{title}: time over processes", panels, remark)


def _over_peers(
    measured: PaperMeasurements,
    mpis: Mapping[str, tuple[str, str]],
    title: str,
    operations: Sequence[Operation],
) -> PaperFigure:
    """Draw ping-pong of rank 0 with each other, at the most processes."""
    names = list(mpis)[:MOST_LINES]
    panels: list[Panel | None] = []
    for operation in operations[-MOST_PANELS:]:
        curves = {name: _peers(measured, *mpis[name], operation) for name in names}
        if any(len(curve) > 1 for curve in curves.values()):
            panels += _draw(operation.size, "peer", curves, number_styles(names))
    return build_figure(f"{title}: time over the partner", panels)


def _peers(measured: PaperMeasurements, machine: str, environment: str, operation: Operation) -> Curve:
    counts = measured.planned(machine, environment, operation)
    if not counts:
        return {}
    results = measured.results[PaperCell(machine, environment, operation, counts[-1])]
    return {result.case.peer: result.published for result in results if result.published}


def _draw(
    title: str, x: str, curves: Mapping[str, Curve], styles: Mapping[str, int], models: Collection[str] = ()
) -> list[Panel | None]:
    """Build a panel as the papers have it, milliseconds from 0, and another without lines far above all others.

    Luecke, Kraeva and Ju (2003) draw one library again by itself where another hides it.
    """
    shown = {name: {at: t * 1e3 for at, t in curve.items()} for name, curve in curves.items() if curve}
    panels = [build_panel(title, x, shown, styles, MILLISECONDS, models, LINEAR)]
    tops = sorted((max(curve.values()), name) for name, curve in shown.items() if name not in models)
    gaps = [n for n in range(1, len(tops)) if tops[n][0] > HIDES * tops[n - 1][0]]
    if gaps:
        low = {name for _, name in tops[: gaps[-1]]}
        kept = {n: curve for n, curve in shown.items() if n in low or n.removesuffix(TOLD) in low}
        slow = ", ".join(name for _, name in tops[gaps[-1] :])
        far = f"{title}, without {slow}"
        panels.append(build_panel(far, x, kept, styles, MILLISECONDS, models, LINEAR))
    return panels
