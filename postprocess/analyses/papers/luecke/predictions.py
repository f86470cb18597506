"""What Luecke et al. (2001) predict from ping-pong: a message of M bytes takes alpha + M beta.

A broadcast over a binary tree then takes log2(p) (alpha + M beta); scatter and gather
alpha log2(p) + (p - 1) M beta; allgather and alltoall (p - 1) (alpha + M beta). M is mpicost's ``bytes``.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from postprocess.analyses.papers.common.data import Operation, PaperMeasurements
from postprocess.base.formats import format_percent, format_significant, microseconds
from postprocess.base.text_table import MISSING, NOT_PRINTED, TextTable
from postprocess.model.routines.mpicost import PINGPONG
from postprocess.stats.curves.segments import compute_mean_error, fit_line

GOOD = 0.25  #: average relative error beyond which no prediction is drawn
TREE, ROOTED, SHIFTS = ("bcast",), ("scatter", "gather"), ("allgather", "alltoall")
ROUTINES = (*TREE, *ROOTED, *SHIFTS)


@dataclass(frozen=True)
class AlphaBeta:
    """The time of a message: ``alpha`` seconds and ``beta`` seconds per byte."""

    alpha: float
    beta: float
    processes: int  #: at which ping-pong was measured
    error: float  #: average relative one of the ping-pongs
    sizes: int

    def predict(self, routine: str, size: int, processes: int) -> float:
        """Compute the time of a routine of ``ROUTINES`` in seconds. Raises KeyError for another."""
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

    machine: str
    environment: str
    operation: Operation
    measured: dict[int, float]
    predicted: dict[int, float]

    @property
    def error(self) -> float:
        """The average absolute relative error of what is predicted."""
        counts = list(self.measured)
        return compute_mean_error(
            [self.predicted[p] for p in counts], [self.measured[p] for p in counts]
        )


def fit_alpha_beta(
    measured: PaperMeasurements, machine: str, environment: str, cache: str, sync: str
) -> AlphaBeta | None:
    """Fit alpha and beta to the ping-pongs at the fewest processes with two sizes; None without."""
    times: dict[int, dict[int, float]] = {}
    for operation in measured.operations:
        if (operation.routine, operation.cache, operation.sync) == (PINGPONG, cache, sync):
            for count in measured.planned(machine, environment, operation):
                time = measured.time(machine, environment, operation, count)
                if time is not None:
                    times.setdefault(count, {})[operation.bytes] = time
    for count, found in sorted(times.items()):
        if len(found) > 1:
            sizes = sorted(found)
            line = fit_line(sizes, [found[size] for size in sizes])
            error = compute_mean_error([line.time(s) for s in sizes], [found[s] for s in sizes])
            return AlphaBeta(line.start, line.slope, count, error, len(sizes))
    return None


def predict_times(measured: PaperMeasurements) -> list[Prediction]:
    """Predict every operation of ``ROUTINES`` where the same MPI has ping-pongs under the same conditions."""
    found = []
    for machine in measured.machines:
        for environment in measured.environments_on(machine):
            for operation in measured.operations:
                if operation.routine not in ROUTINES:
                    continue
                model = fit_alpha_beta(
                    measured, machine, environment, operation.cache, operation.sync
                )
                times = {
                    count: time
                    for count in measured.planned(machine, environment, operation)
                    if count > 1
                    and (time := measured.time(machine, environment, operation, count)) is not None
                }
                if model and times:
                    told = {p: model.predict(operation.routine, operation.bytes, p) for p in times}
                    found.append(Prediction(machine, environment, operation, times, told))
    return found


def build_prediction_tables(measured: PaperMeasurements) -> list[TextTable]:
    """Build the table of alpha and beta, and that of what they predict; none without ping-pongs."""
    predictions = predict_times(measured)
    if not predictions:
        return []
    return [_parameters(measured), _predicted(measured, predictions)]


def _parameters(measured: PaperMeasurements) -> TextTable:
    rows = []
    conditions = sorted({(each.cache, each.sync) for each in measured.operations})
    for machine in measured.machines:
        for environment in measured.environments_on(machine):
            for cache, sync in conditions:
                model = fit_alpha_beta(measured, machine, environment, cache, sync)
                if model:
                    rows.append(
                        (
                            *(machine, environment, f"{cache}, {sync}", str(model.processes)),
                            microseconds(model.alpha),
                            format_significant(model.beta * 1e9),
                            format_significant(1e-6 / model.beta) if model.beta else NOT_PRINTED,
                            str(model.sizes),
                            format_percent(model.error) if model.sizes > 2 else NOT_PRINTED,
                        )
                    )
    return TextTable(
        "A message takes alpha + M beta, by ping-pong",
        ("machine", "MPI", "conditions", "processes"),
        ("alpha (us)", "beta (ns/B)", "1 / beta (MB/s)", "sizes", "error"),
        tuple(rows),
        ("error: average absolute relative one of the ping-pongs; two sizes fit any line",),
    )


def _predicted(measured: PaperMeasurements, predictions: list[Prediction]) -> TextTable:
    rows = []
    for each in predictions:
        operation, counts = each.operation, sorted(each.measured)
        about = (operation.routine, operation.size, *measured.conditions(operation))
        factors = [each.measured[p] / each.predicted[p] for p in counts]
        last = counts[-1]
        rows.append(
            (
                *(each.machine, each.environment, *about),
                f"{counts[0]} to {last}" if len(counts) > 1 else str(last),
                microseconds(each.measured[last]) if each.measured else MISSING,
                microseconds(each.predicted[last]),
                f"{statistics.geometric_mean(factors):.2f}",
                format_percent(each.error) + ("" if each.error <= GOOD else ", not drawn"),
            )
        )
    return TextTable(
        "Predicted from alpha and beta",
        ("machine", "MPI", "routine", "size", *measured.varying),
        ("processes", "measured (us)", "predicted (us)", "measured / predicted", "error"),
        tuple(rows),
        (
            "bcast: log2 p (alpha + M beta); scatter, gather: alpha log2 p + (p-1) M beta; "
            "allgather, alltoall: (p-1) (alpha + M beta)",
            "measured and predicted at the most processes; the factor and the error are of all counts",
        ),
    )
