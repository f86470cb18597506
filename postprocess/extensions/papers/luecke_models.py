"""What Luecke et al. (2001) expect of a simple model of messages, and their figures of sessions.

A broadcast over a binary tree then takes log2(p) (alpha + M beta); scatter and gather
alpha log2(p) + (p - 1) M beta; allgather and alltoall by shifts (p - 1) (alpha + M beta). M is mpicost's
``bytes``. *Predictions* take alpha and beta from ping-pong. *Scalability*: time over log2(p), for scatter,
gather, allgather and alltoall over p - 1, which holds for long messages, is flat for a routine that scales as
the model says.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from postprocess.base.formats import NOT_PRINTED, TextTable, plural
from postprocess.extensions.papers import cells, figures
from postprocess.extensions.papers.measurements import LABELS, Operation, PaperCell, PaperMeasurements, Place
from postprocess.model.routines.mpicost import PINGPONG, ROUTINES, Scaling
from postprocess.model.verdict import CaseResult
from postprocess.report.panels import LINEAR, MILLISECONDS, MOST_PANELS, Panel, PanelLine, Point
from postprocess.stats.curves import compute_mean_error, fit_line

GOOD = 0.25  #: average relative error beyond which no prediction is drawn
TREE, ROOTED, SHIFTS = ("bcast",), ("scatter", "gather"), ("allgather", "alltoall")
PREDICTED = (*TREE, *ROOTED, *SHIFTS)


@dataclass(frozen=True)
class AlphaBeta:
    """The time of a message: ``alpha`` seconds and ``beta`` seconds per byte."""

    alpha: float
    beta: float
    between: str  #: which processes the ping-pongs are
    error: float  #: average relative one of the ping-pongs
    sizes: int

    def predict(self, routine: str, size: int, processes: int) -> float:
        """Compute the time of a routine of ``PREDICTED`` in seconds. Raises KeyError for another."""
        steps, volume = math.log2(processes), processes - 1
        if routine in TREE:
            return steps * (self.alpha + size * self.beta)
        if routine in ROOTED:
            return steps * self.alpha + volume * size * self.beta
        if routine in SHIFTS:
            return volume * (self.alpha + size * self.beta)
        raise KeyError(routine)


@dataclass(frozen=True)
class Prediction:
    """One operation on one machine, over its process counts: measured and predicted seconds."""

    place: Place
    operation: Operation
    measured: dict[int, float]
    predicted: dict[int, float]

    @property
    def error(self) -> float:
        """The average absolute relative error of what is predicted."""
        return compute_mean_error([*self.predicted.values()], [*self.measured.values()])


def fit_alpha_beta(measured: PaperMeasurements, place: Place) -> AlphaBeta | None:
    """Fit alpha and beta to ping-pongs of two sizes and more, of two nodes if there are; None without."""
    between, sends = measured.collect_sends(place)
    if len(sends) < 2:
        return None
    line = fit_line([*sends], [*sends.values()])
    error = compute_mean_error([*map(line.time, sends)], [*sends.values()])
    return AlphaBeta(line.start, line.slope, between, error, len(sends))


def predict_times(measured: PaperMeasurements) -> list[Prediction]:
    """Predict every operation of ``PREDICTED`` where the same MPI has ping-pongs under the same conditions."""
    found = []
    for place, operation, times in measured.list_curves(PREDICTED):
        model = fit_alpha_beta(measured, place)
        if model and times:
            told = {p: model.predict(operation.routine, operation.bytes, p) for p in times}
            found.append(Prediction(place, operation, times, told))
    return found


def build_prediction_tables(measured: PaperMeasurements) -> list[TextTable]:
    """Build the table of alpha and beta, and that of what they predict; none without ping-pongs."""
    predictions = predict_times(measured)
    return [_parameters(measured), _predicted(predictions)] if predictions else []


def _parameters(measured: PaperMeasurements) -> TextTable:
    models = {place: fit_alpha_beta(measured, place) for place in measured.places}
    return TextTable(
        "A message takes alpha + M beta, by ping-pong",
        (*LABELS, "between"),
        ("alpha (us)", "beta (ns/B)", "1 / beta (MB/s)", "sizes", "error"),
        tuple(
            (
                *(*place.cells, model.between),
                cells.time(model.alpha),
                cells.plain(model.beta * 1e9, "ns/B"),
                cells.rate(1 / model.beta) if model.beta else NOT_PRINTED,
                cells.count(model.sizes),
                cells.share(model.error) if model.sizes > 2 else NOT_PRINTED,
            )
            for place, model in models.items()
            if model
        ),
        (
            "least squares of relative errors, so that a message of 8 bytes counts as one of 1 MB does; two "
            "sizes fit any line; error: average absolute relative one of the ping-pongs",
            "between: ranks of two nodes where there are such, as the paper's processors are",
        ),
    )


def _predicted(predictions: list[Prediction]) -> TextTable:
    kept = [prediction for prediction in predictions if prediction.error <= GOOD]
    refused = len(predictions) - len(kept)
    refusal = f"{refused} more predictions are off by more than {GOOD:.0%} on average: neither listed nor drawn"
    return TextTable(
        "Predicted from alpha and beta",
        (*LABELS, "routine", "size", "processes"),
        ("measured (us)", "predicted (us)", "measured / predicted", "error"),
        tuple(map(_write_prediction, kept)),
        (
            "bcast: log2 p (alpha + M beta); scatter, gather: alpha log2 p + (p-1) M beta; "
            "allgather, alltoall: (p-1) (alpha + M beta)",
            "measured and predicted at the most processes; the factor and the error are of all counts",
            *([refusal] if refused else []),
        ),
    )


def _write_prediction(prediction: Prediction) -> tuple[str, ...]:
    operation, counts = prediction.operation, [*prediction.measured]
    about = {"processes": counts[-1]}
    factors = [time / prediction.predicted[p] for p, time in prediction.measured.items()]
    return (
        *prediction.place.cells,
        *(operation.routine, operation.size, cells.span(counts)),
        cells.time(prediction.measured[counts[-1]], about=about),
        cells.time(prediction.predicted[counts[-1]], about=about),
        cells.ratio(statistics.geometric_mean(factors)),
        cells.share(prediction.error),
    )


def describe_refused(measured: PaperMeasurements) -> str:
    """Describe that no prediction is good enough; empty where some are, or there is none at all."""
    errors = [prediction.error for prediction in predict_times(measured)]
    if not errors or min(errors) <= GOOD:
        return ""
    return (
        f"{len(errors)} predictions from alpha and beta, all off by more than {GOOD:.0%} on average "
        f"(the best by {min(errors):.0%}): none is listed or drawn"
    )


#: How each routine that has a model scales
SCALING = {routine.name: routine.scaling for routine in ROUTINES if routine.scaling is not Scaling.NONE}
LEAST = 8  #: the paper finds bcast flat "except when p < 8"
MOST_ON_PAGE = 120


def compute_divisor(routine: str, processes: int) -> float:
    """Compute the paper's divisor of the time of a routine, without unit: log2(p) or p-1. 96 is taken as it is.

    Raises ValueError if the paper has no model for the routine, or there are fewer than two processes.
    """
    if processes < 2:
        raise ValueError(f"{processes} processes: a model of messages needs two")
    if routine not in SCALING:
        raise ValueError(f"{routine}: no model")
    return math.log2(processes) if SCALING[routine] is Scaling.LOG2 else processes - 1.0


def format_divisor(routine: str) -> str:
    """Format the divisor as people write it."""
    return "log2 p" if SCALING[routine] is Scaling.LOG2 else "(p-1)"


def draw_scalability(measured: PaperMeasurements, strict: bool) -> list[figures.PaperFigure]:
    """Draw a figure of each machine: a panel for each routine and size, a line for each MPI.

    A routine has fewer panels where all of them together would be more than a page can bear.
    """
    found: list[figures.PaperFigure] = []
    for most in range(MOST_PANELS, 0, -1):
        found = [_draw_machine(measured, name, strict, most) for name in measured.machines]
        if sum(len(figure.panels) for figure in found) <= MOST_ON_PAGE:
            break
    return [figure for figure in found if figure.panels]


def build_growth_tables(measured: PaperMeasurements) -> list[TextTable]:
    """Build a table for each machine of the growth of time over divisor from few to many processes."""
    return [_growth(measured, machine) for machine in measured.machines]


def select_end_counts(counts: Sequence[int]) -> tuple[int, int] | None:
    """Select the first and the last of the sorted counts; one below ``LEAST`` only if there is no other."""
    large = [count for count in counts if count >= LEAST]
    chosen = large if len(large) > 1 else counts
    return (chosen[0], chosen[-1]) if len(chosen) > 1 else None


def _counts(measured: PaperMeasurements, machine: str, operation: Operation) -> list[int]:
    """List the process counts of two and more at which some MPI has a time, if there are several."""
    counts = [count for count in measured.known(machine, operation) if count > 1]
    return counts if len(counts) > 1 else []


def _growth(measured: PaperMeasurements, machine: str) -> TextTable:
    environments = measured.environments_on(machine)
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for operation in measured.operations:
        ends = select_end_counts(_counts(measured, machine, operation))
        if ends and operation.routine in SCALING:
            by = (format_divisor(operation.routine), cells.span(ends))
            about = (operation.routine, operation.size, *measured.conditions(operation), *by)
            rows[about] = {name: _factor(measured, machine, name, operation, ends) for name in environments}
    return cells.build_grid(
        f"Growth of time / divisor on {machine} (1.00: scales as the model says)",
        ("routine", "size", *measured.varying, "divisor", "processes"),
        rows.items(),
        ("growth: time / divisor at the most of these processes over that at the fewest",),
        (("machine", machine),),
    )


def _factor(
    measured: PaperMeasurements, machine: str, environment: str, operation: Operation, ends: tuple[int, int]
) -> str:
    times = [measured.time(machine, environment, operation, count) for count in ends]
    scaled = [
        time / compute_divisor(operation.routine, count)
        for time, count in zip(times, ends, strict=True)
        if time is not None
    ]
    if len(scaled) < len(ends):
        return cells.MISSING
    return cells.ratio(scaled[1] / scaled[0], quantity="growth", about={"mpi": environment})


def _draw_machine(measured: PaperMeasurements, machine: str, strict: bool, most: int) -> figures.PaperFigure:
    panels, left_out = [], []
    for about, operations in figures.group_operations(measured).items():
        drawable = [operation for operation in operations if _counts(measured, machine, operation)]
        if about[0] in SCALING and drawable:
            chosen = figures.choose_evenly(drawable, most)
            for each in chosen:
                title = f"{', '.join((*about, each.size))}: time / {format_divisor(about[0])}"
                panels.append(Panel(title, "processes", _lines(measured, machine, each, strict), scale=LINEAR))
            if further := len(drawable) - len(chosen):
                left_out.append(f"{plural(further, 'further size')} of {', '.join(about)}")
    remark = f"not drawn: {'; '.join(left_out)}" if left_out else ""
    return figures.PaperFigure(machine, tuple(panels), remark)


def _lines(
    measured: PaperMeasurements, machine: str, operation: Operation, strict: bool
) -> tuple[PanelLine, ...]:
    lines = []
    for style, name in enumerate(measured.environments):
        counts = [count for count in measured.planned(machine, name, operation) if count > 1]
        known = [PaperCell(machine, name, operation, count) for count in counts]
        points = [_point(measured.results[c][0], measured.times[c], strict) for c in known]
        if points:
            lines.append(PanelLine(name, style, tuple(points)))
    return tuple(lines)


def _point(result: CaseResult, time: float | None, strict: bool) -> Point:
    by = compute_divisor(result.case.routine, result.case.processes)
    limits = (result.band[0] / by, result.band[1] / by) if result.band else None
    failed = not result.counts_as_healthy(strict)
    return Point(result.case.processes, None if time is None else time / by, limits, failed)


HIDES = 4  #: times as long: a line so far above the next hides all below
TOLD = ", predicted"  #: behind the name of a line
TESTED = frozenset(routine.name for routine in ROUTINES if routine.test)  #: in the papers
_Predicted = Mapping[tuple[str, str, Operation], Prediction]  #: by machine, MPI and operation


def draw_machines(measured: PaperMeasurements) -> list[figures.PaperFigure]:
    """Draw the figures of Luecke et al. (2001): all machines in each, with what ping-pong predicts."""
    predicted = {(*e.place[:2], e.operation): e for e in predict_times(measured)}
    return _draw_tests(measured, measured.machines, predicted)


def draw_libraries(measured: PaperMeasurements) -> list[figures.PaperFigure]:
    """Draw the figures of Luecke, Kraeva and Ju (2003): all MPIs of a machine in each."""
    return [figure for machine in measured.machines for figure in _draw_tests(measured, [machine], {})]


def _draw_tests(
    measured: PaperMeasurements, machines: Sequence[str], predicted: _Predicted
) -> list[figures.PaperFigure]:
    """Draw ping-pong over the partners, then all other tests over processes."""
    mpis = _name_mpis(measured, machines)
    prefix = machines if len(machines) == 1 else ()
    peers, processes = [], []
    for about, operations in figures.group_operations(measured).items():
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
) -> figures.PaperFigure:
    """Draw the times of a routine, a panel for each size; where it has a model, over its divisor too."""
    names = list(mpis)[: figures.MOST_LINES]
    times = {each: {name: measured.curve(*mpis[name], each) for name in names} for each in operations}
    drawable = [each for each in operations if any(len(curve) > 1 for curve in times[each].values())]
    chosen = figures.choose_evenly(drawable, MOST_PANELS)
    panels: list[Panel | None] = []
    for operation in chosen:
        told = {name: predicted.get((*mpis[name], operation)) for name in names}
        good: dict[str, figures.Curve] = {
            figures.Modelled(name, TOLD): each.predicted
            for name, each in told.items()
            if each is not None and each.error <= GOOD and len(each.predicted) > 1
        }
        curves: dict[str, figures.Curve] = {**times[operation], **good}
        size = operation.size or "no payload"
        panels += _draw(size, "processes", curves, names)
        routine = operation.routine
        if routine in SCALING:
            divided = {
                name: {p: time / compute_divisor(routine, p) for p, time in curve.items()}
                for name, curve in curves.items()
            }
            by_model = f"{size}: time / {format_divisor(routine)}"
            panels += _draw(by_model, "processes", divided, names)
    left_out = {"line": len(mpis) - len(names), "size": len(drawable) - len(chosen)}
    more = [plural(number, noun) for noun, number in left_out.items() if number]
    remark = f"{' and '.join(more)} not drawn" if more else ""
    return figures.build_figure(f"{title}: time over processes", panels, remark)


def _over_peers(
    measured: PaperMeasurements,
    mpis: Mapping[str, tuple[str, str]],
    title: str,
    operations: Sequence[Operation],
) -> figures.PaperFigure:
    """Draw ping-pong of rank 0 with each other, at the most processes."""
    names = list(mpis)[: figures.MOST_LINES]
    panels: list[Panel | None] = []
    for operation in operations[-MOST_PANELS:]:
        curves = {name: _peers(measured, *mpis[name], operation) for name in names}
        if any(len(curve) > 1 for curve in curves.values()):
            panels += _draw(operation.size, "peer", curves, names)
    return figures.build_figure(f"{title}: time over the partner", panels)


def _peers(measured: PaperMeasurements, machine: str, environment: str, operation: Operation) -> figures.Curve:
    counts = measured.planned(machine, environment, operation)
    if not counts:
        return {}
    results = measured.results[PaperCell(machine, environment, operation, counts[-1])]
    return {result.case.peer: result.published for result in results if result.published}


def _draw(title: str, x: str, curves: Mapping[str, figures.Curve], names: Sequence[str]) -> list[Panel | None]:
    """Build a panel as the papers have it, milliseconds from 0, and another without lines far above all others.

    Luecke, Kraeva and Ju (2003) draw one library again by itself where another hides it.
    """
    shown = {name: {at: t * 1e3 for at, t in curve.items()} for name, curve in curves.items() if curve}
    panels = [figures.build_panel(title, x, shown, names, MILLISECONDS, LINEAR)]
    tops = sorted((max(shown[name].values()), name) for name in names if name in shown)
    gaps = [n for n in range(1, len(tops)) if tops[n][0] > HIDES * tops[n - 1][0]]
    if gaps:
        low = {name for _, name in tops[: gaps[-1]]}
        kept = {
            n: curve for n, curve in shown.items() if (n.of if isinstance(n, figures.Modelled) else n) in low
        }
        slow = ", ".join(name for _, name in tops[gaps[-1] :])
        far = f"{title}, without {slow}"
        panels.append(figures.build_panel(far, x, kept, names, MILLISECONDS, LINEAR))
    return panels
