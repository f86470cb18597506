"""What RUS Stuttgart's report on MPI on its T3E-512 derives from a time per call.

``size`` is that report's buffer: what the root sends for bcast, the whole send buffer of one process for
alltoall, the whole array at the root for gather and scatter. Its times are means over a loop of calls, which
overlap: they are no times of single calls. Seconds and bytes.
"""

from __future__ import annotations

from postprocess.analyses.papers.common.data import Operation, PaperMeasurements
from postprocess.analyses.papers.common.printed import History
from postprocess.base.formats import format_significant
from postprocess.base.formats import size as format_size
from postprocess.base.text_table import MISSING, NOT_PRINTED, TextTable
from postprocess.model.routines.benchmark import LOOP

#: Operations of which it gives an aggregated bandwidth, and whether each process moves the buffer
MOVED_BY_ALL = {"bcast": True, "alltoall": True, "gather": False, "scatter": False}
#: Of its tables, in their order
ROUTINES = ("bcast", "gather", "scatter", "alltoall", "reduce_sum", "allreduce_sum")
IN_ALL = ("gather", "scatter", "alltoall")  #: whose buffer is p blocks
PIPELINED = "means of calls that overlap, as RUS's are"
SINGLE = "of single calls: RUS's are means of calls that overlap"
SIZES, COUNTS = (8, 1024, 1048576), (32, 64, 128, 256)


def compute_aggregated_bandwidth(routine: str, size: int, processes: int, time: float) -> float:
    """Compute bytes/s over all processes. Raises KeyError for an operation of which the report gives none."""
    return size * (processes if MOVED_BY_ALL[routine] else 1) / time


def build_cost_tables(measured: PaperMeasurements) -> list[TextTable]:
    """Build a table of costs for each machine, MPI and condition, with bandwidths beside the times."""
    tables = []
    for machine in measured.machines:
        for environment in measured.environments_on(machine):
            groups: dict[tuple[str, ...], list[Operation]] = {}
            for each in measured.operations:
                if each.routine in ROUTINES and measured.planned(machine, environment, each):
                    groups.setdefault(measured.name_conditions(each), []).append(each)
            for about, operations in groups.items():
                title = f"{', '.join((machine, environment, *about))}: time of a call in us"
                tables.append(_cost_table(measured, machine, environment, operations, title))
    return tables


def describe_missing_sizes(measured: PaperMeasurements) -> str:
    """Describe which sizes and counts of the report are in no session, and what measures them."""
    there = [cell for cell in measured.results if cell.operation.routine in ROUTINES]
    sizes = [size for size in SIZES if size not in {cell.operation.bytes for cell in there}]
    counts = [count for count in COUNTS if count not in {cell.processes for cell in there}]
    if not sizes and not counts:
        return ""
    lacking = [f"{size} bytes" for size in sizes] + [f"{count} processes" for count in counts]
    words = ["./plumbline run --program mpicost", f"--routine {','.join(ROUTINES)}"]
    words += [f"--bytes {','.join(map(str, SIZES))}", f"--processes {','.join(map(str, COUNTS))}"]
    return f"Not measured: {', '.join(lacking)}; {' '.join(words)}"


def build_against_table(measured: PaperMeasurements, history: History) -> TextTable:
    """Build the measured times over those in print, where routine, processes and buffer are the same."""
    printed = {(c.routine, c.bytes, c.processes): c.microseconds * 1e-6 for c in history.costs}
    rows = []
    for cell in sorted(measured.results):
        operation, time = cell.operation, measured.times[cell]
        buffer = find_buffer(operation.routine, operation.bytes, cell.processes)
        known = printed.get((operation.routine, buffer, cell.processes))
        if known is not None and time is not None:
            about = (operation.routine, format_size(buffer), str(cell.processes))
            rows.append(
                (
                    *(cell.machine, cell.environment, *measured.conditions(operation), *about),
                    *(format_significant(time * 1e6), format_significant(known * 1e6)),
                    format_significant(time / known, 3),
                )
            )
    return TextTable(
        f"Time over that in print of the {history.costs[0].machine}",
        ("machine", "MPI", *measured.varying, "routine", "buffer", "processes"),
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
    measured: PaperMeasurements,
    machine: str,
    environment: str,
    operations: list[Operation],
    title: str,
) -> TextTable:
    counts = sorted(
        {n for each in operations for n in measured.planned(machine, environment, each)}
    )
    rows = []
    for operation in sorted(operations, key=lambda e: (e.bytes, ROUTINES.index(e.routine))):
        planned = measured.planned(machine, environment, operation)
        cells = [
            _cost(operation, count, measured.time(machine, environment, operation, count))
            if count in planned
            else NOT_PRINTED
            for count in counts
        ]
        rows.append((operation.size, operation.routine, *cells))
    notes = (
        "block: bytes for each process or pair, as mpicost counts them; in brackets: aggregated MB/s",
        PIPELINED if operations[0].sync == LOOP else SINGLE,
    )
    return TextTable(
        title, ("block", "routine"), tuple(f"p = {n}" for n in counts), tuple(rows), notes
    )


def _cost(operation: Operation, processes: int, time: float | None) -> str:
    """Return the time, with the bandwidth where the report gives one: its buffer is p blocks but for bcast."""
    if time is None:
        return MISSING
    shown = format_significant(time * 1e6)
    if operation.routine not in MOVED_BY_ALL or operation.bytes <= SIZES[0]:
        return shown
    buffer = operation.bytes * (1 if operation.routine == "bcast" else processes)
    rate = compute_aggregated_bandwidth(operation.routine, buffer, processes, time)
    return f"{shown} ({format_significant(rate / 1e6)})"
