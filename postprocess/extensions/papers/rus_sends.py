"""RUS Stuttgart's comparisons with point-to-point messages: its send model, and operations made of sends.

The report gives the time of a send by two formulas, one for small and one for large messages. It compares a
broadcast with as many sends as a tree has levels, an alltoall with p - 1 sends, gather and scatter with a loop.
Of a reduce it says that "time that should be theoretically spent in communication of data plus time for
computation of the results is higher than time measured for the reduce operation". A tree has ceil(log2 p)
levels; on each of them one message is sent, and added to what is there.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from postprocess.base.formats import NOT_PRINTED, TextTable
from postprocess.extensions.papers import cells
from postprocess.extensions.papers.measurements import LABELS, Operation, PaperMeasurements, Place
from postprocess.extensions.papers.rus_costs import find_buffer
from postprocess.model.routines.mpicost import REDUCE_LOCAL
from postprocess.model.routines.rus import AS_SENDS
from postprocess.stats.curves import Segment, compute_mean_error, fit_segments, predict_time

GOOD = 0.25  #: average relative error beyond which the send model is not used
SEND_MODE, MODES = "pingpong_", ("standard", "synchronous", "buffered")
EAGER = 1.15  #: times as long as a standard send, from which on a synchronous one counts as slower
FORMULAS = 2  #: of the report, for small and for large messages
REDUCE = "reduce_sum"
#: Of as many sends, one after the other, as a tree has levels, and of p - 1
TREES = ("bcast", REDUCE)
LOOPS = ("gather", "scatter", "alltoall")


def count_sends(routine: str, processes: int) -> int:
    """Count the sends one after the other: levels of a tree, or p - 1. Raises KeyError for other routines."""
    if routine in TREES:
        return math.ceil(math.log2(processes))
    if routine in LOOPS:
        return processes - 1
    raise KeyError(routine)


def build_send_table(measured: PaperMeasurements) -> TextTable:
    """Build the table of the two formulas, of ping-pongs of several sizes."""
    sends = {place: measured.collect_sends(place) for place in measured.places}
    return TextTable(
        "Time of a send of x bytes, in us",
        (*LABELS, "between"),
        (
            *("formula", "up to", "formula beyond", "from"),
            *("error", "latency (us)", "latency of", "peak (MB/s)"),
        ),
        tuple(
            (*place.cells, between, *_write_formulas(times))
            for place, (between, times) in sends.items()
            if len(times) > 2
        ),
        (
            "half a ping-pong; two formulas as in the report where the sizes call for them, else one for all "
            f"sizes; none that is off by more than {GOOD:.0%} on average",
            "error: average absolute relative error of the formulas; latency: the time of the smallest message",
            "in print: a break at 4 KB; latency about 15 us, up to 300 MB/s on the T3E-512",
        ),
    )


def _write_formulas(sends: Mapping[int, float]) -> tuple[str, ...]:
    segments = fit_segments([*sends], [*sends.values()], FORMULAS)
    error = _error(segments, sends)
    below, above = segments[0], segments[-1]
    formulas: tuple[str, ...] = (NOT_PRINTED,) * 4
    if error <= GOOD and len(segments) == 1:
        formulas = (_formula(below), "all", NOT_PRINTED, NOT_PRINTED)
    elif error <= GOOD:
        formulas = (_formula(below), cells.size(below.last), _formula(above), cells.size(above.first))
    least = min(sends)
    rate = max(size / time for size, time in sends.items())
    return (*formulas, cells.share(error), cells.time(sends[least]), cells.size(least), cells.rate(rate))


def _formula(segment: Segment) -> str:
    return f"{segment.start * 1e6:.4g} + {segment.slope * 1e6:.4g} x"


def _error(segments: tuple[Segment, ...], sends: Mapping[int, float]) -> float:
    return compute_mean_error([predict_time(segments, size) for size in sends], [*sends.values()])


def predict_send(sends: Mapping[int, float], size: int) -> float | None:
    """Predict the time of a send in seconds: as measured, else by formulas that are good enough, else None.

    :param sends: seconds by bytes, the sizes rising
    """
    if size in sends:
        return sends[size]
    if len(sends) < FORMULAS or not min(sends) <= size <= 2 * max(sends):
        return None
    segments = fit_segments([*sends], [*sends.values()])
    return predict_time(segments, size) if _error(segments, sends) <= GOOD else None


def build_mode_table(measured: PaperMeasurements) -> TextTable:
    """Build the table of ways to send, as the report's sweep of buffer sizes.

    Up to the eager threshold a standard send is faster than a synchronous one, which waits for its receiver.
    """
    found: dict[tuple[Place, int], dict[str, dict[int, float]]] = {}
    for (place, routine, count), sizes in measured.group_sizes().items():
        mode = routine.removeprefix(SEND_MODE)
        if mode in MODES:
            found.setdefault((place, count), {})[mode] = sizes
    return TextTable(
        "Sends by mode: half a ping-pong over that of standard sends",
        (*LABELS, "processes"),
        (
            *("least size", "largest size", "synchronous, least", "synchronous, largest"),
            *("buffered, least", "buffered, largest", "eager to"),
        ),
        tuple(
            (*place.cells, str(processes), *_mode_cells(modes))
            for (place, processes), modes in found.items()
            if len(modes) == len(MODES)
        ),
        (
            "synchronous, buffered: the factor at the least size, and at the largest",
            f"eager to: the largest size at which a synchronous send takes {EAGER:g} times as long as a "
            "standard one",
            "in print: messages of 4096 bytes and more are better not buffered",
        ),
    )


def _mode_cells(modes: Mapping[str, Mapping[int, float]]) -> tuple[str, ...]:
    standard, synchronous, buffered = (modes[mode] for mode in MODES)
    shared = sorted(s for s in standard if s and s in synchronous and s in buffered)
    if not shared:
        return (NOT_PRINTED,) * 7
    ends = (shared[0], shared[-1])
    eager = [size for size in shared if synchronous[size] / standard[size] >= EAGER]
    return (
        *map(cells.size, ends),
        *(cells.ratio(mode[size] / standard[size]) for mode in (synchronous, buffered) for size in ends),
        cells.size(eager[-1]) if eager else "none",
    )


def _list_over_sends(
    measured: PaperMeasurements, routines: Collection[str]
) -> Iterator[tuple[Place, Operation, int, float, float]]:
    """List times of operations of which there is a send: place, operation, processes, time, and of a send."""
    for place, operation, times in measured.list_curves(routines):
        send = predict_send(measured.collect_sends(place)[1], operation.bytes) if times else None
        if send is not None:
            yield from ((place, operation, count, time, send) for count, time in times.items())


def build_tree_table(measured: PaperMeasurements) -> TextTable:
    """Build the table of operations over the sends that they could be made of."""
    rows: list[tuple[str, ...]] = []
    for place, operation, count, time, send in _list_over_sends(measured, (*TREES, *LOOPS)):
        number = count_sends(operation.routine, count)
        composed = replace(operation, routine=AS_SENDS.get(operation.routine, ""))
        loop = measured.time(*place[:2], composed, count)
        rows.append(
            (
                *(*place.cells, operation.routine),
                *(cells.size(find_buffer(operation.routine, operation.bytes, count)), str(count)),
                *(cells.time(time), cells.count(number), cells.time(number * send)),
                *(cells.ratio(time / (number * send)), cells.ratio(time / loop) if loop else NOT_PRINTED),
            )
        )
    order = [*dict.fromkeys(row[:4] for row in rows)]
    rows.sort(key=lambda row: (order.index(row[:4]), _find_size(row[4]), int(row[5])))
    return TextTable(
        "Operations over the sends that they could be made of",
        (*LABELS, "routine", "buffer", "processes"),
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
    return cell.value if isinstance(cell, cells.Number) else 0.0


COMMAND = f"./plumbline run --routine {REDUCE_LOCAL}"
SIMULATED = "simulated"  #: the system of simulated machines


def build_reduction_table(measured: PaperMeasurements) -> TextTable:
    """Build a row for each reduce whose sends and local reduction were measured."""
    rows: list[tuple[str, ...]] = []
    for place, operation, count, time, send in _list_over_sends(measured, (REDUCE,)):
        alone = measured.time(*place[:2], replace(operation, routine=REDUCE_LOCAL), count)
        if alone is not None:
            levels = count_sends(REDUCE, count)
            rows.append(
                (
                    *(*place.cells, REDUCE, cells.size(operation.bytes), str(count)),
                    *(cells.time(time), cells.count(levels)),
                    *(cells.time(levels * send), cells.time(levels * alone)),
                    cells.ratio(time / (levels * (send + alone))),
                )
            )
    return TextTable(
        "Reduce over a tree of sends and local reductions",
        (*LABELS, "routine", "buffer", "processes"),
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


STANDARD = "pingpong_standard"
OPTION = "--set-env"
SHORTEST = "shortest"  #: the head of a column
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


def build_sweep_table(measured: PaperMeasurements) -> TextTable:
    """Build a row for each size of standard sends, a column for each setting, where there are two and more."""
    times: dict[tuple[str, ...], dict[int, dict[str, float]]] = {}
    for (place, routine, count), sizes in measured.group_sizes().items():
        if routine == STANDARD:
            partition = ":".join(measured.systems[place.machine])
            setting = measured.find_setting(place.machine, place.environment) or USUAL
            by_size = times.setdefault((partition, *place.cells[1:], str(count)), {})
            for size, time in sizes.items():
                by_size.setdefault(size, {})[setting] = time
    settings = {
        about: dict.fromkeys(s for each in sizes.values() for s in each) for about, sizes in times.items()
    }
    swept = [about for about, found in settings.items() if len(found) > 1]
    return cells.build_grid(
        "Standard sends by setting: half a ping-pong in us",
        (*LABELS, "processes", "size"),
        (
            ((*about, cells.size(size)), _sweep_cells(times[about][size]))
            for about in swept
            for size in sorted(times[about])
        ),
        (
            f"shortest: shown if settings differ by a factor of {CLEAR:g} or more; less is noise",
            "in print: no effect of buffering on messages below 4096 bytes, so that 4096 is the best limit",
        ),
        columns=[*dict.fromkeys(setting for about in swept for setting in settings[about]), SHORTEST],
    )


def _sweep_cells(times: Mapping[str, float]) -> dict[str, str]:
    least = min(times.values())
    best = [setting for setting, time in times.items() if time < CLEAR * least]
    told: dict[str, str] = {
        setting: cells.time(time, quantity="half a ping-pong", note=setting) for setting, time in times.items()
    }
    return told if len(best) == len(times) else told | {SHORTEST: "; ".join(best)}
