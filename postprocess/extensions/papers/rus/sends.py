"""RUS Stuttgart's comparisons with point-to-point messages: its send model, and operations made of sends.

The report gives the time of a send by two formulas, one for small and one for large messages. It compares a
broadcast with as many sends as a tree has levels, an alltoall with p - 1 sends, gather and scatter with a loop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.extensions.papers.common.data import Operation, PaperMeasurements
from postprocess.extensions.papers.common.numbers import (
    Number,
    write_bytes,
    write_count,
    write_rate,
    write_ratio,
    write_share,
    write_time,
)
from postprocess.extensions.papers.rus.costs import find_buffer
from postprocess.model.routines.rus import AS_SENDS
from postprocess.stats.curves.segments import Segment, compute_mean_error, fit_segments, predict_time

GOOD = 0.25  #: average relative error beyond which the send model is not used
SEND_MODE, MODES = "pingpong_", ("standard", "synchronous", "buffered")
EAGER = 1.15  #: times as long as a standard send, from which on a synchronous one counts as slower
FORMULAS = 2  #: of the report, for small and for large messages
#: Of as many sends, one after the other, as a tree has levels, and of p - 1
TREES = ("bcast", "reduce_sum")
LOOPS = ("gather", "scatter", "alltoall")


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
    """Collect half ping-pongs by bytes, of two nodes if there are, under the conditions of an operation."""
    return measured.collect_sends(machine, environment, operation.cache, operation.sync)[1]


def build_send_table(measured: PaperMeasurements) -> TextTable | None:
    """Build the table of the two formulas; None without ping-pongs of several sizes."""
    rows = []
    for machine in measured.machines:
        for environment in measured.environments_on(machine):
            for cache, sync in sorted({(o.cache, o.sync) for o in measured.operations}):
                between, sends = measured.collect_sends(machine, environment, cache, sync)
                if len(sends) > 2:
                    about = (machine, environment, f"{cache}, {sync}", between)
                    rows.append((*about, *_write_formulas(sends)))
    if not rows:
        return None
    return TextTable(
        "Time of a send of x bytes, in us",
        ("machine", "MPI", "conditions", "between"),
        (
            *("formula", "up to", "formula beyond", "from"),
            *("error", "latency (us)", "latency of", "peak (MB/s)"),
        ),
        tuple(rows),
        (
            "half a ping-pong; two formulas as in the report where the sizes call for them, else one for all "
            "sizes; "
            f"none that is off by more than {GOOD:.0%} on average",
            "error: average absolute relative error of the formulas; latency: the time of the smallest message",
            "in print: a break at 4 KB; latency about 15 us, up to 300 MB/s on the T3E-512",
        ),
    )


def _write_formulas(sends: Mapping[int, float]) -> tuple[str, ...]:
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
            write_bytes(below.last) if two else "all",
            _formula(above) if two else NOT_PRINTED,
            write_bytes(above.first) if two else NOT_PRINTED,
        )
    least = write_time(sends[sizes[0]])
    return (*texts, write_share(error), least, write_bytes(sizes[0]), write_rate(rate))


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
    rows = [(*place, *_mode_cells(modes)) for place, modes in found.items() if len(modes) == len(MODES)]
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
            f"eager to: the largest size at which a synchronous send takes {EAGER:g} times as long as a "
            "standard one",
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
    cells = [write_ratio(factors[mode][s]) for mode in MODES[1:] for s in (shared[0], shared[-1])]
    return (
        *(write_bytes(shared[0]), write_bytes(shared[-1])),
        *cells,
        write_bytes(eager[-1]) if eager else "none",
    )


def build_tree_table(measured: PaperMeasurements) -> TextTable | None:
    """Build the table of operations over the sends that they could be made of; None without sends."""
    rows = []
    for machine in measured.machines:
        for environment in measured.environments_on(machine):
            for operation in measured.operations:
                if operation.routine in (*TREES, *LOOPS):
                    rows += _tree_rows(measured, machine, environment, operation)
    places = [*dict.fromkeys(row[:4] for row in rows)]
    rows.sort(key=lambda row: (places.index(row[:4]), _find_size(row[4]), int(row[5])))
    if not rows:
        return None
    return TextTable(
        "Operations over the sends that they could be made of",
        ("machine", "MPI", "conditions", "routine", "buffer", "processes"),
        ("measured (us)", "sends", "by sends (us)", "measured / sends", "over a loop of sends"),
        tuple(rows),
        (
            "sends one after the other, each of half a ping-pong: ceil(log2 p) for bcast and reduce, whose "
            "arithmetic has a table of its own, p-1 for gather, scatter and alltoall",
            "buffer: as in the report; over a loop of sends: measured over the same put together from sends, "
            "measured too (bcast_as_sends ...)",
            "in print: bcast of 4 KB 0.99 at 32 processes and 0.93 at 256, of 1 MB 1.36; alltoall "
            "of 4 KB 0.70 at 32",
        ),
    )


def _find_size(cell: str) -> float:
    return cell.value if isinstance(cell, Number) else 0.0


def _tree_rows(
    measured: PaperMeasurements, machine: str, environment: str, operation: Operation
) -> list[tuple[str, ...]]:
    sends = collect_sends(measured, machine, environment, operation)
    alone = predict_send(sends, operation.bytes) if sends else None
    rows: list[tuple[str, ...]] = []
    for count in measured.planned(machine, environment, operation):
        time = measured.time(machine, environment, operation, count)
        if count < 2 or time is None or alone is None:
            continue
        number = count_sends(operation.routine, count)
        by_sends = number * alone
        rows.append(
            (
                *(machine, environment, f"{operation.cache}, {operation.sync}", operation.routine),
                *(write_bytes(find_buffer(operation.routine, operation.bytes, count)), str(count)),
                *(write_time(time), write_count(number), write_time(by_sends)),
                write_ratio(time / by_sends),
                _over_loop(measured, machine, environment, operation, count, time),
            )
        )
    return rows


def _over_loop(
    measured: PaperMeasurements, machine: str, environment: str, operation: Operation, count: int, time: float
) -> str:
    composed = AS_SENDS.get(operation.routine)
    if composed is None:
        return NOT_PRINTED
    same = Operation(composed, operation.bytes, operation.cache, operation.sync)
    other = measured.time(machine, environment, same, count)
    return write_ratio(time / other) if other else NOT_PRINTED


STANDARD = "pingpong_standard"
OPTION = "--set-env"
USUAL = "as it is"  #: the setting of a session without any
CLEAR = 1.25  #: times the shortest: below, settings count as equal


def read_settings(command: Sequence[str]) -> dict[str, str]:
    """Read what ``--set-env ENVIRONMENT:NAME=VALUE`` set in a command, by environment."""
    told = [word.removeprefix(f"{OPTION}=") for word in command if word.startswith(f"{OPTION}=")]
    told += [value for word, value in pairwise(command) if word == OPTION]
    found: dict[str, list[str]] = {}
    for word in told:
        environment, _, setting = word.partition(":")
        found.setdefault(environment, []).append(setting)
    return {name: ", ".join(each) for name, each in found.items()}


def build_sweep_table(measured: PaperMeasurements) -> TextTable | None:
    """Build a row for each size of standard sends, a column for each setting; None without two settings."""
    times: dict[tuple[str, ...], dict[int, dict[str, float]]] = {}
    for cell in sorted(measured.results):
        time = measured.times[cell]
        if cell.operation.routine == STANDARD and time is not None:
            place = (":".join(measured.systems[cell.machine]), cell.environment)
            conditions = f"{cell.operation.cache}, {cell.operation.sync}"
            setting = measured.find_setting(cell.machine, cell.environment) or USUAL
            sizes = times.setdefault((*place, conditions, str(cell.processes)), {})
            sizes.setdefault(cell.operation.bytes, {})[setting] = time
    swept = {
        place: sizes
        for place, sizes in times.items()
        if len({setting for each in sizes.values() for setting in each}) > 1
    }
    if not swept:
        return None
    settings = list(dict.fromkeys(s for sizes in swept.values() for each in sizes.values() for s in each))
    rows = [
        (*place, write_bytes(size), *_cells(settings, sizes[size]))
        for place, sizes in swept.items()
        for size in sorted(sizes)
    ]
    return TextTable(
        "Standard sends by setting: half a ping-pong in us",
        ("machine", "MPI", "conditions", "processes", "size"),
        (*settings, "shortest"),
        tuple(rows),
        (
            f"shortest: told where settings differ by a factor of {CLEAR:g} and more; less is noise",
            "in print: no effect of buffering on messages below 4096 bytes, so that 4096 is the best limit",
        ),
    )


def _cells(settings: Sequence[str], times: dict[str, float]) -> list[str]:
    least = min(times.values())
    best = [setting for setting in settings if times.get(setting, math.inf) < CLEAR * least]
    shown = [
        write_time(times[each], quantity="half a ping-pong", note=each) if each in times else NOT_PRINTED
        for each in settings
    ]
    return [*shown, NOT_PRINTED if len(best) == len(times) else "; ".join(best)]
