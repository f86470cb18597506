"""Figures of RUS Stuttgart of sessions: bandwidth and time over bytes and processes, of one MPI each."""

from __future__ import annotations

from collections.abc import Sequence

from postprocess.base.units import MEGABYTES
from postprocess.extensions.papers.common.data import SENDS, Operation, PaperMeasurements
from postprocess.extensions.papers.common.numbers import write_bytes
from postprocess.extensions.papers.common.paper_figure import (
    PaperFigure,
    build_panel,
    group_operations,
    number_styles,
)
from postprocess.extensions.papers.rus import costs
from postprocess.model.routines.mpicost import BARRIER
from postprocess.model.routines.rus import COSTS
from postprocess.report.panels import FROM_ZERO, LINEAR, MILLISECONDS, thin_values

#: In the order of the report
FIGURES = {
    "pingpong": " (Fig. 1)",
    "pingpong_standard": " (Fig. 1)",
    BARRIER: " (Fig. 2)",
    "bcast": " (Figs. 3 and 4)",
    "alltoall": " (Figs. 5 and 6)",
    "gather": " (Figs. 7 and 8)",
    "scatter": " (Figs. 9 and 10)",
    "reduce_sum": " (Figs. 11 and 12)",
}
X_NAMES = {"bytes": "bytes", "buffer": "the buffer"}
FOUR = 4  #: process counts, or sizes, of a figure


def draw_costs(measured: PaperMeasurements) -> list[PaperFigure]:
    figures = []
    for machine in measured.machines:
        for environment in measured.environments_on(machine):
            groups = group_operations(measured)
            for about in sorted(groups, key=_order):
                operations = groups[about]
                shown = FIGURES.get(about[0], "")
                title = ", ".join((machine, environment, *about)) + shown
                figures.append(_rus_figure(measured, machine, environment, operations, title))
    return figures


def _order(about: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    names = [*FIGURES]
    return (names.index(about[0]) if about[0] in names else len(names)), about


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
    if routine in SENDS:
        counts = counts[:1]
    elif routine not in (BARRIER, *COSTS):
        return PaperFigure(title, ())
    rated = routine in (*SENDS, *costs.MOVED_BY_ALL)

    def buffer(size: int, count: int) -> int:
        return costs.find_buffer(routine, size, count)

    def value(size: int, count: int) -> float:
        time = times[size][count]
        return _rate(routine, size, count, time) if rated else time * 1e3

    unit = MEGABYTES if rated else MILLISECONDS
    what = "bandwidth" if rated else "time"
    by_count = {
        f"p = {count}": {
            buffer(s, count): value(s, count) for s in times if s and count in times[s]
        }
        for count in thin_values(counts, FOUR)
    }
    by_size: dict[int, dict[int, float]] = {}
    for size, found in times.items():
        for count in found:
            if size or not rated:
                by_size.setdefault(buffer(size, count), {})[count] = value(size, count)
    whole = sorted(size for size, curve in by_size.items() if len(curve) > 1)
    lines = {
        str(write_bytes(size)) if size else "no payload": by_size[size]
        for size in (whole[n] for n in thin_values(range(len(whole)), FOUR))
    }
    x = "bytes" if routine in SENDS else "buffer"
    lines = {} if routine in SENDS else lines
    styles = number_styles([*by_count, *lines])
    panels = [
        build_panel(f"{what} over {X_NAMES[x]}", x, by_count, styles, unit, scale=FROM_ZERO),
        build_panel(f"{what} over processes", "processes", lines, styles, unit, scale=LINEAR),
    ]
    kept = [panel for panel in panels if panel and any(len(x.points) > 1 for x in panel.lines)]
    return PaperFigure(title, tuple(kept))


def _rate(routine: str, size: int, count: int, time: float) -> float:
    """Return the report's bandwidth in MB/s."""
    if routine in SENDS:
        return size / time / 1e6
    buffer = costs.find_buffer(routine, size, count)
    return costs.compute_aggregated_bandwidth(routine, buffer, count, time) / 1e6
