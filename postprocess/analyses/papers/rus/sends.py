"""RUS Stuttgart's comparisons with point-to-point messages: its send model, and operations made of sends.

The report gives the time of a send by two formulas, one for small and one for large messages. It compares a
broadcast with as many sends as a tree has levels, an alltoall with p - 1 sends, gather and scatter with a loop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from postprocess.analyses.papers.common.data import Operation, PaperMeasurements
from postprocess.base.formats import format_percent, format_significant, microseconds
from postprocess.base.formats import size as format_size
from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.model.routines.mpicost import PINGPONG
from postprocess.stats.curves.segments import (
    Segment,
    compute_mean_error,
    fit_segments,
    predict_time,
)

GOOD = 0.25  #: average relative error beyond which the send model is not used
SEND_MODE, MODES = "pingpong_", ("standard", "synchronous", "buffered")
EAGER = 1.15  #: times as long as a standard send, from which on a synchronous one counts as slower
FORMULAS = 2  #: of the report, for small and for large messages
#: How many sends, one after the other, an operation is made of, and mpicost's routine that does so
TREES = ("bcast", "reduce_sum")
LOOPS = ("gather", "scatter", "alltoall")
COMPOSED = {
    "bcast": "bcast_as_sends",
    "gather": "gather_as_sends",
    "scatter": "scatter_as_sends",
    "alltoall": "alltoall_as_sendrecv",
}


def count_sends(routine: str, processes: int) -> int:
    """Count the sends one after the other: levels of a tree, or p - 1. Raises KeyError for other routines."""
    if routine in TREES:
        return math.ceil(math.log2(processes))
    if routine in LOOPS:
        return processes - 1
    raise KeyError(routine)


def collect_sends(
    measured: PaperMeasurements, machine: str, environment: str, operation: Operation
) -> dict[int, float]:
    """Collect half ping-pongs by bytes, at the fewest processes, under the conditions of an operation."""
    found: dict[int, dict[int, float]] = {}
    for each in measured.operations:
        if (each.routine, each.cache, each.sync) == (PINGPONG, operation.cache, operation.sync):
            for count in measured.planned(machine, environment, each):
                time = measured.time(machine, environment, each, count)
                if time is not None:
                    found.setdefault(count, {})[each.bytes] = time
    return found[min(found)] if found else {}


def build_send_table(measured: PaperMeasurements) -> TextTable | None:
    """Build the table of the two formulas; None without ping-pongs of several sizes."""
    rows = []
    for machine in measured.machines:
        for environment in measured.environments_on(machine):
            for conditions in sorted({(o.cache, o.sync) for o in measured.operations}):
                sends = collect_sends(measured, machine, environment, Operation("", 0, *conditions))
                if len(sends) > 2:
                    rows.append((machine, environment, ", ".join(conditions), *_formulas(sends)))
    if not rows:
        return None
    return TextTable(
        "Time of a send of x bytes, in us",
        ("machine", "MPI", "conditions"),
        ("below", "to", "from", "above", "error", "latency (us)", "peak (MB/s)"),
        tuple(rows),
        (
            "two formulas as in the report where the sizes call for them, else one for all sizes; none that is "
            f"off by more than {GOOD:.0%} on average",
            "in print: a break at 4 KB; latency about 15 us, up to 300 MB/s on the T3E-512",
        ),
    )


def _formulas(sends: Mapping[int, float]) -> tuple[str, ...]:
    sizes = sorted(sends)
    segments = fit_segments(sizes, [sends[size] for size in sizes], FORMULAS)
    error = _error(segments, sends)
    rate = max(size / time for size, time in sends.items())
    below, above = segments[0], segments[-1]
    two = len(segments) > 1
    if error > GOOD:
        texts = (NOT_PRINTED,) * 4
    else:
        texts = (
            _formula(below),
            format_size(int(below.last)) if two else "all",
            format_size(int(above.first)) if two else NOT_PRINTED,
            _formula(above) if two else NOT_PRINTED,
        )
    told = format_percent(error)
    least = microseconds(sends[sizes[0]])
    return (*texts, told, least, format_significant(rate / 1e6))


def _formula(segment: Segment) -> str:
    return f"{segment.start * 1e6:.4g} + {segment.slope * 1e6:.4g} x"


def _error(segments: tuple[Segment, ...], sends: Mapping[int, float]) -> float:
    sizes = sorted(sends)
    told = [predict_time(segments, size) for size in sizes]
    return compute_mean_error(told, [sends[size] for size in sizes])


def predict_send(sends: Mapping[int, float], size: int) -> float | None:
    """Predict the time of a send in seconds: as measured, else by formulas that are good enough, else None."""
    if size in sends:
        return sends[size]
    if len(sends) < FORMULAS:
        return None
    sizes = sorted(sends)
    if not sizes[0] <= size <= 2 * sizes[-1]:
        return None
    segments = fit_segments(sizes, [sends[each] for each in sizes])
    return predict_time(segments, size) if _error(segments, sends) <= GOOD else None


def build_mode_table(measured: PaperMeasurements) -> TextTable | None:
    """Build the table of ways to send, as the report's sweep of buffer sizes; None where none was measured.

    Up to the eager threshold a standard send is faster than a synchronous one, which waits for its receiver.
    """
    found: dict[tuple[str, str, str, str], dict[str, dict[int, float]]] = {}
    for cell in sorted(measured.results):
        mode = cell.operation.routine.removeprefix(SEND_MODE)
        time = measured.times[cell]
        if mode in MODES and time is not None:
            conditions = f"{cell.operation.cache}, {cell.operation.sync}"
            place = (cell.machine, cell.environment, conditions, str(cell.processes))
            found.setdefault(place, {}).setdefault(mode, {})[cell.operation.bytes] = time
    rows = [
        (*place, *_mode_cells(modes)) for place, modes in found.items() if len(modes) == len(MODES)
    ]
    if not rows:
        return None
    return TextTable(
        "Sends by mode: half a ping-pong over that of standard sends",
        ("machine", "MPI", "conditions", "processes"),
        (
            *("least size", "largest size", "synchronous, least", "synchronous, largest"),
            *("buffered, least", "buffered, largest", "eager to"),
        ),
        tuple(rows),
        (
            "synchronous, buffered: the factor at the least size, and at the largest",
            f"eager to: the largest size at which synchronous sends take {EAGER:g} times as long",
            "in print: messages of 4096 bytes and more are better not buffered",
        ),
    )


def _mode_cells(modes: Mapping[str, Mapping[int, float]]) -> tuple[str, ...]:
    standard = modes[MODES[0]]
    shared = sorted(s for s in standard if s and all(s in each for each in modes.values()))
    if not shared:
        return (NOT_PRINTED,) * 7
    factors = {mode: {s: modes[mode][s] / standard[s] for s in shared} for mode in MODES[1:]}
    eager = [size for size in shared if factors[MODES[1]][size] >= EAGER]
    cells = [f"{factors[mode][s]:.2f}" for mode in MODES[1:] for s in (shared[0], shared[-1])]
    return (
        *(format_size(shared[0]), format_size(shared[-1])),
        *cells,
        format_size(eager[-1]) if eager else "none",
    )


def build_tree_table(measured: PaperMeasurements) -> TextTable | None:
    """Build the table of operations over the sends that they could be made of; None without sends."""
    rows = []
    for machine in measured.machines:
        for environment in measured.environments_on(machine):
            for operation in measured.operations:
                if operation.routine in (*TREES, *LOOPS):
                    rows += _tree_rows(measured, machine, environment, operation)
    if not rows:
        return None
    return TextTable(
        "Operations over the sends that they could be made of",
        ("machine", "MPI", "routine", "size", *measured.varying, "processes"),
        ("measured (us)", "sends", "by sends (us)", "measured / sends", "over a loop of sends"),
        tuple(rows),
        (
            "sends one after the other, each of half a ping-pong: ceil(log2 p) for bcast and reduce, whose "
            "arithmetic has a table of its own, p-1 for gather, scatter and alltoall",
            "over a loop of sends: measured over the same put together from sends, measured too "
            "(bcast_as_sends ...)",
            "in print: bcast of 4 KB 0.99 at 32 processes and 0.93 at 256, of 1 MB 1.36; alltoall "
            "of 4 KB 0.70 at 32",
        ),
    )


def _tree_rows(
    measured: PaperMeasurements, machine: str, environment: str, operation: Operation
) -> list[tuple[str, ...]]:
    sends = collect_sends(measured, machine, environment, operation)
    alone = predict_send(sends, operation.bytes) if sends else None
    rows = []
    for count in measured.planned(machine, environment, operation):
        time = measured.time(machine, environment, operation, count)
        if count < 2 or time is None or alone is None:
            continue
        number = count_sends(operation.routine, count)
        by_sends = number * alone
        rows.append(
            (
                *(machine, environment, operation.routine, operation.size),
                *measured.conditions(operation),
                str(count),
                microseconds(time),
                str(number),
                microseconds(by_sends),
                f"{time / by_sends:.2f}",
                _over_loop(measured, machine, environment, operation, count, time),
            )
        )
    return rows


def _over_loop(
    measured: PaperMeasurements,
    machine: str,
    environment: str,
    operation: Operation,
    count: int,
    time: float,
) -> str:
    composed = COMPOSED.get(operation.routine)
    if composed is None:
        return NOT_PRINTED
    same = Operation(composed, operation.bytes, operation.cache, operation.sync)
    other = measured.time(machine, environment, same, count)
    return f"{time / other:.2f}" if other else NOT_PRINTED
