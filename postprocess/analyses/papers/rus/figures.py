"""Figures of RUS Stuttgart of sessions: bandwidth and time over bytes and processes, of one MPI each."""

from __future__ import annotations

from collections.abc import Sequence

from postprocess.analyses.papers.common.data import Operation, PaperMeasurements
from postprocess.analyses.papers.common.paper_figure import (
    PaperFigure,
    build_panel,
    group_operations,
    number_styles,
)
from postprocess.analyses.papers.rus import costs
from postprocess.base.units import MEGABYTES, SECONDS
from postprocess.model.routines.mpicost import BARRIER, PINGPONG
from postprocess.report.panels import thin_values

FOUR = 4  #: process counts, or sizes, of a figure


def draw_costs(measured: PaperMeasurements) -> list[PaperFigure]:
    figures = []
    for machine in measured.machines:
        for environment in measured.environments_on(machine):
            for about, operations in group_operations(measured).items():
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
    elif routine not in (BARRIER, *costs.ROUTINES):
        return PaperFigure(title, ())
    rated = routine in (PINGPONG, *costs.MOVED_BY_ALL)

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
    styles = number_styles([*by_count, *by_size])
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
    return costs.compute_aggregated_bandwidth(routine, buffer, count, time) / 1e6
