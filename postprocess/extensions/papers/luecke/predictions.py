"""What Luecke et al. (2001) predict from ping-pong: a message of M bytes takes alpha + M beta.

A broadcast over a binary tree then takes log2(p) (alpha + M beta); scatter and gather
alpha log2(p) + (p - 1) M beta; allgather and alltoall (p - 1) (alpha + M beta). M is mpicost's ``bytes``.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.extensions.papers.common.data import Operation, PaperMeasurements
from postprocess.extensions.papers.common.numbers import (
    Number,
    write_count,
    write_plain,
    write_rate,
    write_ratio,
    write_share,
    write_time,
)
from postprocess.stats.curves.segments import compute_mean_error, fit_line

GOOD = 0.25  #: average relative error beyond which no prediction is drawn
TREE, ROOTED, SHIFTS = ("bcast",), ("scatter", "gather"), ("allgather", "alltoall")
ROUTINES = (*TREE, *ROOTED, *SHIFTS)


@dataclass(frozen=True)
class AlphaBeta:
    """The time of a message: ``alpha`` seconds and ``beta`` seconds per byte."""

    alpha: float
    beta: float
    between: str  #: which processes the ping-pongs are
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
        return compute_mean_error([self.predicted[p] for p in counts], [self.measured[p] for p in counts])


def fit_alpha_beta(
    measured: PaperMeasurements, machine: str, environment: str, cache: str, sync: str
) -> AlphaBeta | None:
    """Fit alpha and beta to ping-pongs of two sizes and more, of two nodes if there are; None without."""
    between, found = measured.collect_sends(machine, environment, cache, sync)
    if len(found) < 2:
        return None
    sizes = sorted(found)
    line = fit_line(sizes, [found[size] for size in sizes])
    error = compute_mean_error([line.time(s) for s in sizes], [found[s] for s in sizes])
    return AlphaBeta(line.start, line.slope, between, error, len(sizes))


def predict_times(measured: PaperMeasurements) -> list[Prediction]:
    """Predict every operation of ``ROUTINES`` where the same MPI has ping-pongs under the same conditions."""
    found = []
    for machine in measured.machines:
        for environment in measured.environments_on(machine):
            for operation in measured.operations:
                if operation.routine not in ROUTINES:
                    continue
                model = fit_alpha_beta(measured, machine, environment, operation.cache, operation.sync)
                times = {
                    count: time
                    for count in measured.planned(machine, environment, operation)
                    if count > 1 and (time := measured.time(machine, environment, operation, count)) is not None
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
    return [_parameters(measured), *filter(None, [_predicted(measured, predictions)])]


def _parameters(measured: PaperMeasurements) -> TextTable:
    rows = []
    conditions = sorted({(operation.cache, operation.sync) for operation in measured.operations})
    for machine in measured.machines:
        for environment in measured.environments_on(machine):
            for cache, sync in conditions:
                model = fit_alpha_beta(measured, machine, environment, cache, sync)
                if model:
                    rows.append(
                        (
                            *(machine, environment, f"{cache}, {sync}", model.between),
                            write_time(model.alpha),
                            write_plain(model.beta * 1e9, "ns/B"),
                            write_rate(1 / model.beta) if model.beta else NOT_PRINTED,
                            write_count(model.sizes),
                            write_share(model.error) if model.sizes > 2 else NOT_PRINTED,
                        )
                    )
    return TextTable(
        "A message takes alpha + M beta, by ping-pong",
        ("machine", "MPI", "conditions", "between"),
        ("alpha (us)", "beta (ns/B)", "1 / beta (MB/s)", "sizes", "error"),
        tuple(rows),
        (
            "least squares of relative errors, so that a message of 8 bytes counts as one of 1 MB does; two "
            "sizes fit any line; error: average absolute relative one of the ping-pongs",
            "between: ranks of two nodes where there are such, as the paper's processors are",
        ),
    )


def _predicted(measured: PaperMeasurements, predictions: list[Prediction]) -> TextTable | None:
    kept = [prediction for prediction in predictions if prediction.error <= GOOD]
    refused = len(predictions) - len(kept)
    if not kept:
        return None
    rows = []
    for prediction in kept:
        operation, counts = prediction.operation, sorted(prediction.measured)
        factors = [prediction.measured[p] / prediction.predicted[p] for p in counts]
        last = counts[-1]
        rows.append(
            (
                *(prediction.machine, prediction.environment, f"{operation.cache}, {operation.sync}"),
                *(operation.routine, Number(operation.size, operation.bytes)),
                f"{counts[0]} to {last}" if len(counts) > 1 else str(last),
                write_time(prediction.measured[last], about={"processes": last}),
                write_time(prediction.predicted[last], about={"processes": last}),
                write_ratio(statistics.geometric_mean(factors)),
                write_share(prediction.error),
            )
        )
    refusal = f"{refused} more predictions are off by more than {GOOD:.0%} on average: neither told nor drawn"
    return TextTable(
        "Predicted from alpha and beta",
        ("machine", "MPI", "conditions", "routine", "size", "processes"),
        ("measured (us)", "predicted (us)", "measured / predicted", "error"),
        tuple(rows),
        (
            "bcast: log2 p (alpha + M beta); scatter, gather: alpha log2 p + (p-1) M beta; "
            "allgather, alltoall: (p-1) (alpha + M beta)",
            "measured and predicted at the most processes; the factor and the error are of all counts",
            *([refusal] if refused else []),
        ),
    )


def describe_refused(measured: PaperMeasurements) -> str:
    """Describe that no prediction is good enough; empty where some are, or there is none at all."""
    errors = [prediction.error for prediction in predict_times(measured)]
    if not errors or min(errors) <= GOOD:
        return ""
    return (
        f"{len(errors)} predictions from alpha and beta, all off by more than {GOOD:.0%} on average "
        f"(the best by {min(errors):.0%}): none is told or drawn"
    )
