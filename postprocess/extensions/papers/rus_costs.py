"""What RUS Stuttgart's report on MPI on its T3E-512 derives from a time per call.

``size`` is that report's buffer: what the root sends for bcast, the whole send buffer of one process for
alltoall, the whole array at the root for gather and scatter. Its times are means over a loop of calls, which
overlap: they are no times of single calls. Seconds and bytes.
"""

from collections.abc import Sequence

from postprocess.base.formats import MEGABYTES, TextTable, format_significant
from postprocess.extensions.papers import cells, figures
from postprocess.extensions.papers.measurements import LABELS, SENDS, Operation, PaperMeasurements, Place
from postprocess.extensions.papers.printed import History
from postprocess.model.routines.benchmark import LOOP
from postprocess.model.routines.mpicost import BARRIER
from postprocess.model.routines.rus import COSTS, IN_ALL, LATENCY
from postprocess.report.panels import FROM_ZERO, LINEAR, MILLISECONDS, thin_values

#: Operations of which it gives an aggregated bandwidth, and whether each process moves the buffer
MOVED_BY_ALL = {"bcast": True, "alltoall": True, "gather": False, "scatter": False}
PIPELINED = "means of calls that overlap, as RUS's are"
SINGLE = "of single calls: RUS's are means of calls that overlap"
PRINTED = (1024, 1048576)  #: buffers of its tables, beside that of latencies
COMMAND = "as many processes as there are: ./plumbline run --family rus --processes 32,64,128,256"


def compute_aggregated_bandwidth(routine: str, size: int, processes: int, time: float) -> float:
    """Compute bytes/s over all processes. Raises KeyError for an operation of which the report gives none."""
    return size * (processes if MOVED_BY_ALL[routine] else 1) / time


def build_cost_tables(measured: PaperMeasurements) -> list[TextTable]:
    """Build a table of costs for each machine, MPI and condition, with bandwidths beside the times."""
    return [_cost_table(measured, place) for place in measured.places]


def describe_missing_sizes(measured: PaperMeasurements) -> str:
    """Describe which buffers of the report are in no session, and what measures them."""
    there = {
        find_buffer(cell.operation.routine, cell.operation.bytes, cell.processes)
        for cell in measured.results
        if cell.operation.routine in COSTS
    }
    lacking = [str(cells.size(size)) for size in PRINTED if size not in there]
    return f"Not measured: buffers of {', '.join(lacking)}; {COMMAND}" if lacking else ""


def build_against_table(measured: PaperMeasurements, history: History) -> TextTable:
    """Build the measured times over those in print, where routine, processes and buffer are the same."""
    printed = {(c.routine, c.bytes, c.processes): c.microseconds * 1e-6 for c in history.costs}
    rows = []
    for cell in sorted(measured.results):
        routine, time = cell.operation.routine, measured.times[cell]
        buffer = find_buffer(routine, cell.operation.bytes, cell.processes)
        known = printed.get((routine, buffer, cell.processes))
        if known is not None and time is not None:
            rows.append(
                (
                    *(*cell.place.cells, routine, cells.size(buffer), str(cell.processes)),
                    *(cells.plain(time * 1e6, "us"), cells.plain(known * 1e6, "us")),
                    cells.Number(format_significant(time / known, 3), time / known),
                )
            )
    return TextTable(
        f"Time over that in print of the {history.costs[0].machine}",
        (*LABELS, "routine", "buffer", "processes"),
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


def _cost_table(measured: PaperMeasurements, place: Place) -> TextTable:
    found: dict[tuple[bool, int, str], dict[int, str]] = {}
    for operation in measured.operations:
        if operation.routine not in COSTS or operation.at(*place[:2]) != place:
            continue
        for count in measured.planned(*place[:2], operation):
            latency = operation.bytes <= LATENCY
            buffer = operation.bytes if latency else find_buffer(operation.routine, operation.bytes, count)
            row = found.setdefault((not latency, buffer, operation.routine), {})
            row[count] = _cost(operation, count, measured.time(*place[:2], operation, count))
    order = sorted(found, key=lambda key: (*key[:2], COSTS.index(key[2])))
    return cells.build_grid(
        f"{place.machine}, {place.environment}, {place.cache}, {place.sync}: time of a call in us",
        ("buffer", "routine"),
        (
            (
                (cells.size(buffer) if whole else cells.Number(f"{buffer} B each", buffer), routine),
                {f"p = {count}": cell for count, cell in found[whole, buffer, routine].items()},
            )
            for whole, buffer, routine in order
        ),
        (
            "buffer, as in the report: what the root sends for bcast, the vector of a reduction, the whole "
            "array at the root for gather and scatter, the whole send buffer of one process for alltoall; KiB: "
            "1024 bytes",
            "8 B each: a vector, or for each process or pair; in brackets: aggregated MB/s, where the report "
            "has it",
            PIPELINED if place.sync == LOOP else SINGLE,
        ),
        tuple(zip(("machine", "mpi", "cache", "sync"), place, strict=True)),
        [f"p = {n}" for n in sorted({count for row in found.values() for count in row})],
    )


def _cost(operation: Operation, processes: int, time: float | None) -> str:
    """Return the time, with the bandwidth where the report gives one."""
    if time is None:
        return cells.MISSING
    text, about = format_significant(time * 1e6), {"processes": processes}
    more = []
    if operation.routine in MOVED_BY_ALL and operation.bytes > LATENCY:
        buffer = find_buffer(operation.routine, operation.bytes, processes)
        rate = compute_aggregated_bandwidth(operation.routine, buffer, processes, time)
        more = [cells.rate(rate, quantity="aggregated bandwidth", about=about)]
        text += f" ({more[0]})"
    return cells.Number(text, time * 1e6, "us", "time of a call", about, more=more)


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
FOUR = 4  #: process counts, or sizes, of a figure


def draw_costs(measured: PaperMeasurements) -> list[figures.PaperFigure]:
    """Draw a figure of each routine and condition for each machine and MPI, in the order of the report."""
    names = [*FIGURES]
    groups = sorted(
        figures.group_operations(measured).items(),
        key=lambda item: (names.index(item[0][0]) if item[0][0] in names else len(names), item[0]),
    )
    return [
        _draw_routine(measured, mpi, operations, ", ".join((*mpi, *about)) + FIGURES.get(about[0], ""))
        for mpi in measured.mpis
        for about, operations in groups
        if about[0] in (*SENDS, BARRIER, *COSTS)
    ]


def _draw_routine(
    measured: PaperMeasurements, mpi: tuple[str, str], operations: Sequence[Operation], title: str
) -> figures.PaperFigure:
    """Draw the report's bandwidth, where it gives one, else the time, over the buffer and over processes."""
    routine = operations[0].routine
    is_send, rated = routine in SENDS, routine in (*SENDS, *MOVED_BY_ALL)
    times = {operation.bytes: measured.curve(*mpi, operation) for operation in operations}
    counts = sorted({count for curve in times.values() for count in curve})
    by_count: dict[str, dict[int, float]] = {}
    for count in counts[:1] if is_send else thin_values(counts, FOUR):
        by_count[f"p = {count}"] = {
            find_buffer(routine, size, count): _shown(routine, size, count, curve[count])
            for size, curve in times.items()
            if size and count in curve
        }
    by_buffer: dict[int, dict[int, float]] = {}
    for size, curve in times.items():
        if size or not rated:
            for count, time in curve.items():
                points = by_buffer.setdefault(find_buffer(routine, size, count), {})
                points[count] = _shown(routine, size, count, time)
    drawable = sorted(buffer for buffer, points in by_buffer.items() if len(points) > 1 and not is_send)
    lines = {
        str(cells.size(buffer)) if buffer else "no payload": by_buffer[buffer]
        for buffer in figures.choose_evenly(drawable, FOUR)
    }
    what, unit = ("bandwidth", MEGABYTES) if rated else ("time", MILLISECONDS)
    x, named = ("bytes", "bytes") if is_send else ("buffer", "the buffer")
    names = [*by_count, *lines]
    panels = [
        figures.build_panel(f"{what} over {named}", x, by_count, names, unit, FROM_ZERO),
        figures.build_panel(f"{what} over processes", "processes", lines, names, unit, LINEAR),
    ]
    kept = [panel for panel in panels if panel and any(len(line.points) > 1 for line in panel.lines)]
    return figures.PaperFigure(title, tuple(kept))


def _shown(routine: str, size: int, count: int, time: float) -> float:
    """Return the report's bandwidth in MB/s; of a routine without one the time in milliseconds."""
    if routine in SENDS:
        return size / time / 1e6
    if routine in MOVED_BY_ALL:
        buffer = find_buffer(routine, size, count)
        return compute_aggregated_bandwidth(routine, buffer, count, time) / 1e6
    return time * 1e3
