"""What RUS Stuttgart's report on MPI on its T3E-512 derives from a time per call.

``size`` is that report's buffer: what the root sends for bcast, the whole send buffer of one process for
alltoall, the whole array at the root for gather and scatter. Its times are means over a loop of calls, which
overlap: they are no times of single calls. Seconds and bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from postprocess.base.formats import format_significant
from postprocess.base.text_table import MISSING, NOT_PRINTED, TextTable
from postprocess.base.units import MEGABYTES
from postprocess.extensions.papers.common.data import SENDS, Operation, PaperMeasurements
from postprocess.extensions.papers.common.numbers import Number, write_bytes, write_plain, write_rate
from postprocess.extensions.papers.common.paper_figure import (
    PaperFigure,
    build_panel,
    group_operations,
    number_styles,
)
from postprocess.extensions.papers.common.printed import History
from postprocess.model.routines.benchmark import LOOP
from postprocess.model.routines.mpicost import BARRIER
from postprocess.model.routines.rus import COSTS, IN_ALL, LATENCY
from postprocess.report.panels import FROM_ZERO, LINEAR, MILLISECONDS, thin_values

#: Operations of which it gives an aggregated bandwidth, and whether each process moves the buffer
MOVED_BY_ALL = {"bcast": True, "alltoall": True, "gather": False, "scatter": False}
PIPELINED = "means of calls that overlap, as RUS's are"
SINGLE = "of single calls: RUS's are means of calls that overlap"
PRINTED = (1024, 1048576)  #: buffers of its tables, beside that of latencies
COMMAND = "./plumbline run --family rus --processes 32,64,128,256, or as many as there are"


def compute_aggregated_bandwidth(routine: str, size: int, processes: int, time: float) -> float:
    """Compute bytes/s over all processes. Raises KeyError for an operation of which the report gives none."""
    return size * (processes if MOVED_BY_ALL[routine] else 1) / time


def build_cost_tables(measured: PaperMeasurements) -> list[TextTable]:
    """Build a table of costs for each machine, MPI and condition, with bandwidths beside the times."""
    tables = []
    for machine in measured.machines:
        for environment in measured.environments_on(machine):
            groups: dict[tuple[str, str], list[Operation]] = {}
            for operation in measured.operations:
                if operation.routine in COSTS and measured.planned(machine, environment, operation):
                    groups.setdefault((operation.cache, operation.sync), []).append(operation)
            for (cache, sync), operations in groups.items():
                about = {"machine": machine, "mpi": environment, "cache": cache, "sync": sync}
                tables.append(_cost_table(measured, about, operations))
    return tables


def describe_missing_sizes(measured: PaperMeasurements) -> str:
    """Describe which buffers of the report are in no session, and what measures them."""
    there = {
        find_buffer(cell.operation.routine, cell.operation.bytes, cell.processes)
        for cell in measured.results
        if cell.operation.routine in COSTS
    }
    lacking = [str(write_bytes(size)) for size in PRINTED if size not in there]
    return f"Not measured: buffers of {', '.join(lacking)}; {COMMAND}" if lacking else ""


def build_against_table(measured: PaperMeasurements, history: History) -> TextTable:
    """Build the measured times over those in print, where routine, processes and buffer are the same."""
    printed = {(c.routine, c.bytes, c.processes): c.microseconds * 1e-6 for c in history.costs}
    rows = []
    for cell in sorted(measured.results):
        operation, time = cell.operation, measured.times[cell]
        buffer = find_buffer(operation.routine, operation.bytes, cell.processes)
        known = printed.get((operation.routine, buffer, cell.processes))
        if known is not None and time is not None:
            about = (operation.routine, write_bytes(buffer), str(cell.processes))
            rows.append(
                (
                    *(cell.machine, cell.environment, f"{operation.cache}, {operation.sync}", *about),
                    *(write_plain(time * 1e6, "us"), write_plain(known * 1e6, "us")),
                    Number(format_significant(time / known, 3), time / known),
                )
            )
    return TextTable(
        f"Time over that in print of the {history.costs[0].machine}",
        ("machine", "MPI", "conditions", "routine", "buffer", "processes"),
        ("time (us)", "in print (us)", "ratio"),
        tuple(rows),
        (
            "in print: means of calls that overlap; ours are of single calls unless their sync is loop",
            "8 B of gather, scatter and alltoall are in no row: what was sent then is unknown",
        ),
    )


def find_buffer(routine: str, size: int, processes: int) -> int:
    """Find the report's buffer of a size of mpicost, in bytes."""
    return size * (processes if routine in IN_ALL else 1)


def _cost_table(
    measured: PaperMeasurements, about: Mapping[str, str], operations: Sequence[Operation]
) -> TextTable:
    machine, environment = about["machine"], about["mpi"]
    cells: dict[tuple[bool, int, str], dict[int, str]] = {}
    for operation in operations:
        for count in measured.planned(machine, environment, operation):
            latency = operation.bytes <= LATENCY
            buffer = operation.bytes if latency else find_buffer(operation.routine, operation.bytes, count)
            time = measured.time(machine, environment, operation, count)
            row = cells.setdefault((not latency, buffer, operation.routine), {})
            row[count] = _cost(operation, count, time)
    counts = sorted({count for row in cells.values() for count in row})
    rows = [
        (
            write_bytes(buffer) if whole else Number(f"{buffer} B each", buffer),
            routine,
            *(row.get(count, NOT_PRINTED) for count in counts),
        )
        for (whole, buffer, routine), row in sorted(
            cells.items(), key=lambda item: (*item[0][:2], COSTS.index(item[0][2]))
        )
    ]
    return TextTable(
        f"{machine}, {environment}, {about['cache']}, {about['sync']}: time of a call in us",
        ("buffer", "routine"),
        tuple(f"p = {n}" for n in counts),
        tuple(rows),
        (
            "buffer, as in the report: what the root sends for bcast, the vector of a reduction, the whole "
            "array at "
            "the root for gather and scatter, the whole send buffer of one process for alltoall; KiB: 1024 "
            "bytes",
            "8 B each: a vector, or for each process or pair; in brackets: aggregated MB/s, where the report "
            "has it",
            PIPELINED if about["sync"] == LOOP else SINGLE,
        ),
        tuple(about.items()),
    )


def _cost(operation: Operation, processes: int, time: float | None) -> str:
    """Return the time, with the bandwidth where the report gives one."""
    if time is None:
        return MISSING
    text, about = format_significant(time * 1e6), {"processes": processes}
    more = []
    if operation.routine in MOVED_BY_ALL and operation.bytes > LATENCY:
        buffer = find_buffer(operation.routine, operation.bytes, processes)
        rate = compute_aggregated_bandwidth(operation.routine, buffer, processes, time)
        more = [write_rate(rate, quantity="aggregated bandwidth", about=about)]
        text += f" ({more[0]})"
    return Number(text, time * 1e6, "us", "time of a call", about, more=more)


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
    measured: PaperMeasurements, machine: str, environment: str, operations: Sequence[Operation], title: str
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
    rated = routine in (*SENDS, *MOVED_BY_ALL)

    def buffer(size: int, count: int) -> int:
        return find_buffer(routine, size, count)

    def value(size: int, count: int) -> float:
        time = times[size][count]
        return _rate(routine, size, count, time) if rated else time * 1e3

    unit = MEGABYTES if rated else MILLISECONDS
    what = "bandwidth" if rated else "time"
    by_count = {
        f"p = {count}": {buffer(s, count): value(s, count) for s in times if s and count in times[s]}
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
    buffer = find_buffer(routine, size, count)
    return compute_aggregated_bandwidth(routine, buffer, count, time) / 1e6
