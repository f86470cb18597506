"""RUS Stuttgart's comparison of a reduce with the communication and the computation that it is made of.

The report says that "time that should be theoretically spent in communication of data plus time for
computation of the results is higher than time measured for the reduce operation". A tree has ceil(log2 p)
levels; on each of them one message is sent, and added to what is there.
"""

from __future__ import annotations

from collections.abc import Iterator

from postprocess.base.text_table import TextTable
from postprocess.extensions.papers.common.data import Operation, PaperMeasurements
from postprocess.extensions.papers.common.numbers import write_bytes, write_count, write_ratio, write_time
from postprocess.extensions.papers.rus.sends import collect_sends, count_sends, predict_send
from postprocess.model.routines.mpicost import REDUCE_LOCAL

REDUCE = "reduce_sum"
SIMULATED = "simulated"  #: the system of simulated machines
COMMAND = f"./plumbline run --family rus, or --routine {REDUCE_LOCAL}"


def build_reduction_table(measured: PaperMeasurements) -> TextTable | None:
    """Build a row for each reduce whose sends and local reduction were measured; None without any."""
    rows: list[tuple[str, ...]] = []
    for machine in measured.machines:
        for environment in measured.environments_on(machine):
            for operation in measured.operations:
                if operation.routine == REDUCE:
                    rows += _rows(measured, machine, environment, operation)
    if not rows:
        return None
    return TextTable(
        "Reduce over a tree of sends and local reductions",
        ("machine", "MPI", "conditions", "routine", "buffer", "processes"),
        ("measured (us)", "levels", "sends (us)", "arithmetic (us)", "measured / both"),
        tuple(rows),
        (
            "a level is half a ping-pong and a call of MPI_Reduce_local; all processes made that call at the "
            "same time, its buffers out of the caches where those of the reduce were",
            "in print: communication plus computation takes longer than the reduce",
        ),
    )


def describe_missing_arithmetic(measured: PaperMeasurements) -> str:
    """Describe what measures the arithmetic of a reduce; empty where it is there, or where no reduce is.

    In simulated time there is none, and a session that asked for it lacks nothing.
    """
    routines = {cell.operation.routine for cell, time in measured.times.items() if time is not None}
    if REDUCE not in routines or REDUCE_LOCAL in routines:
        return ""
    if {system for system, _ in measured.systems.values()} == {SIMULATED}:
        return "Arithmetic takes no simulated time: no reduce is held against its sends and additions."
    return f"Not measured: the arithmetic of a reduce; {COMMAND}"


def _rows(
    measured: PaperMeasurements, machine: str, environment: str, operation: Operation
) -> Iterator[tuple[str, ...]]:
    sends = collect_sends(measured, machine, environment, operation)
    send = predict_send(sends, operation.bytes) if sends else None
    local = Operation(REDUCE_LOCAL, operation.bytes, operation.cache, operation.sync)
    for count in measured.planned(machine, environment, operation):
        time = measured.time(machine, environment, operation, count)
        alone = measured.time(machine, environment, local, count)
        if count < 2 or time is None or send is None or alone is None:
            continue
        levels = count_sends(REDUCE, count)
        yield (
            *(machine, environment, f"{operation.cache}, {operation.sync}", REDUCE),
            *(write_bytes(operation.bytes), str(count)),
            *(write_time(time), write_count(levels)),
            *(write_time(levels * send), write_time(levels * alone)),
            write_ratio(time / (levels * (send + alone))),
        )
