"""The application kernels of sessions: speed-up, efficiency, and the placements of Taboada et al."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.extensions.papers.common.presentation import Number, write_plain, write_share, write_time
from postprocess.extensions.papers.common.printed import History, PrintedKernel
from postprocess.model.routines.kernels import KERNELS, RETURNS_NOTHING, WITHOUT_RETURN
from postprocess.model.verdict import WITHOUT_VALUE, CaseResult
from postprocess.results.summary import SessionSummary
from site_configs.topology.layouts import Layout

COMMAND = "./plumbline run --program kernels"
AS_PRINTED, TODAY = "as printed", "today"
LABELS = ("machine", "MPI", "kernel", "class")


class KernelPlace(NamedTuple):
    """A kernel at a size, with an MPI of a machine."""

    machine: str
    environment: str
    kernel: str
    size: str


@dataclass(frozen=True)
class KernelTime:
    """Seconds at a layout."""

    whole: float
    without_return: float | None = None  #: None where nothing is returned, or it was not measured
    ranks_per_core: int = 1


@dataclass(frozen=True)
class MeasuredKernel:
    """A usable result, and how many ranks a core had."""

    result: CaseResult
    ranks_per_core: int = 1


KernelTimes = Mapping[KernelPlace, Mapping[Layout, KernelTime]]


class Placement(NamedTuple):
    """A reading of one of the tables: which two layouts it holds against each other."""

    table: str
    reading: str
    first: Layout
    second: Layout


def collect_kernels(sessions: Sequence[SessionSummary]) -> dict[str, list[MeasuredKernel]]:
    """Collect the usable kernels by machine: a partition, with its session where several have some."""
    kept = {summary.session: list(_select_kernels(summary)) for summary in sessions}
    several = sum(bool(kernels) for kernels in kept.values()) > 1
    found: dict[str, list[MeasuredKernel]] = {}
    for name, kernels in kept.items():
        for each in kernels:
            partition = each.result.case.partition
            found.setdefault(f"{name}:{partition}" if several else partition, []).append(each)
    return found


def _select_kernels(summary: SessionSummary) -> Iterator[MeasuredKernel]:
    dense = {
        (each.partition, each.environment, each.processes, each.per_node): each.ranks_per_core
        for each in summary.launches
        if each.program == KERNELS
    }
    for result in summary.results:
        case = result.case
        if case.program == KERNELS and result.value and result.verdict not in WITHOUT_VALUE:
            place = (f"{case.system}:{case.partition}", case.environment, case.processes, case.per_node)
            yield MeasuredKernel(result, dense.get(place, 1))


def arrange_kernels(machines: Mapping[str, Sequence[MeasuredKernel]]) -> KernelTimes:
    """Arrange the times of kernels by layout, the one without the return beside the whole."""
    kernels: dict[tuple[KernelPlace, Layout, bool], MeasuredKernel] = {}
    for machine, measured in machines.items():
        for each in measured:
            case = each.result.case
            whole = case.routine.removesuffix(WITHOUT_RETURN)
            kernel, _, size = whole.partition("_")
            place = KernelPlace(machine, case.environment, kernel, size)
            kernels[place, Layout(case.processes, case.per_node), whole == case.routine] = each
    found: dict[KernelPlace, dict[Layout, KernelTime]] = {}
    for place, layout, is_whole in sorted(kernels):
        if is_whole:
            own = kernels[place, layout, True]
            rest = kernels.get((place, layout, False))
            found.setdefault(place, {})[layout] = KernelTime(
                own.result.value or 0.0, rest.result.value if rest else None, own.ranks_per_core
            )
    return found


def build_kernel_tables(machines: Mapping[str, Sequence[MeasuredKernel]], history: History) -> list[TextTable]:
    """Build the tables of kernels."""
    times = arrange_kernels(machines)
    return [_speed_ups(times), *_placements(times, history)]


def _speed_ups(times: KernelTimes) -> TextTable:
    rows = []
    for place, layouts in times.items():
        one = layouts.get(Layout(1, 1))
        for layout, time in layouts.items():
            rest = time.without_return
            rows.append(
                (
                    *(*place, str(layout.processes), str(layout.per_node)),
                    write_time(time.whole),
                    NOT_PRINTED if rest is None else write_time(rest),
                    NOT_PRINTED if rest is None else write_share(1 - rest / time.whole),
                    *_speed_up(one.whole if one else None, time.whole, layout.processes),
                    *_speed_up(one.without_return if one else None, rest, layout.processes),
                )
            )
    nothing = ", ".join(RETURNS_NOTHING)
    return TextTable(
        "Kernels: speed-up and efficiency (Fig. 5)",
        (*LABELS, "processes", "per node"),
        (
            *("time (us)", "without return (us)", "share of the return"),
            *("speed-up", "efficiency", "speed-up without return", "efficiency without return"),
        ),
        tuple(rows),
        (
            "speed-up: T(1) / T(p), T(1) by one process with the same MPI; efficiency: that over p",
            "without return: runs that leave the results where they are; rank 0 has them at the end of the "
            f"others; {nothing} returns nothing; two runs, so that noise can make the share negative",
            "C_own: the published matrix of LUFact C is singular; this one of its size is our own, and is in "
            "no paper",
        ),
    )


def _speed_up(one: float | None, time: float | None, processes: int) -> tuple[str, str]:
    if not one or not time:
        return NOT_PRINTED, NOT_PRINTED
    gain = one / time
    return write_plain(gain, digits=3, about={"processes": processes}), write_share(gain / processes)


def list_placements(layouts: Mapping[Layout, KernelTime]) -> list[Placement]:
    """List the readings of tables 6 to 8 that some layouts allow: the sparser one over the denser one.

    As printed: one and two processes a node, four by hardware threads. Today: one process a node, and nodes as
    full as were measured; all cores, and two ranks on each.
    """
    there = {layout for layout, time in layouts.items() if time.ranks_per_core == 1}
    most = max((each.per_node for each in there), default=1)
    found = []
    for reading, dense in [(AS_PRINTED, 2), *([(TODAY, most)] if most > 2 else [])]:
        for sparse in (each for each in there if each.per_node == 1):
            nodes = sparse.processes
            found += [
                Placement("Table 6", reading, sparse, Layout(nodes, dense)),
                Placement("Table 7", reading, sparse, Layout(nodes * dense, dense)),
            ]
    found = [each for each in found if each.second in there]
    for crowded in sorted(layouts.keys() - there):
        processes, per_node = (number // layouts[crowded].ranks_per_core for number in crowded)
        reading = AS_PRINTED if per_node == 2 else TODAY
        if (own := Layout(processes, per_node)) in there:
            found.append(Placement(BY_THREADS, reading, own, crowded))
    return sorted(found)


BY_THREADS = "Table 8"
TITLES = {
    "Table 6": "the same processes, one on each node over several",
    "Table 7": "the same nodes, one process on each over several",
    BY_THREADS: "the same nodes, one process on each core over two, by hardware threads",
}


def _placements(times: KernelTimes, history: History) -> list[TextTable]:
    libraries = list(dict.fromkeys(kernel.library for kernel in history.kernels))
    printed = {_printed_key(kernel): Number(f"{kernel.ratio:.2f}", kernel.ratio) for kernel in history.kernels}
    rows: dict[str, list[tuple[str, ...]]] = {table: [] for table in TITLES}
    for place, layouts in times.items():
        for table, reading, first, second in list_placements(layouts):
            ratio = layouts[first].whole / layouts[second].whole
            told = Number(f"{ratio:.2f}", ratio, quantity="ratio", note=f"{reading}, over {second}")
            keys = ((place.kernel, place.size, name, first, second) for name in libraries)
            beside = (printed.get(key, NOT_PRINTED) for key in keys)
            rows[table].append((*place, reading, f"{first} over {second}", told, *beside))
    lacking = sorted({place[:2] for place in times} - {row[:2] for row in rows[BY_THREADS]})
    empty = [NOT_PRINTED] * (2 + len(libraries))  # layouts, ratio and what is in print
    rows[BY_THREADS] += [(*place, NOT_PRINTED, NOT_PRINTED, TODAY, *empty) for place in lacking]
    return [
        TextTable(
            f"Kernels: {title} ({table})",
            (*LABELS, "reading", "layouts"),
            ("ratio", *(f"in print, {name}" for name in libraries)),
            tuple(rows[table]),
            (
                "ratio of times, above 1: the denser placement is faster; layouts: processes x those of a node",
                *([NOT_ON_THREADS] if table == BY_THREADS and lacking else []),
                *([READINGS] if table != BY_THREADS else []),
            ),
        )
        for table, title in TITLES.items()
    ]


READINGS = f"{AS_PRINTED}: one and two processes a node; {TODAY}: one, and nodes as full as measured"
NOT_ON_THREADS = (
    f"{TODAY}: not measured, as no launch had two ranks on a core: the site's topology declares no "
    "hardware threads (threads_per_core), or the cases say why they were skipped"
)


def _printed_key(each: PrintedKernel) -> tuple[str, str, str, Layout, Layout]:
    """Return kernel, size and library, and the two layouts."""
    first = Layout(each.processes, each.per_node)
    second = Layout(each.over_processes, each.over_per_node)
    return each.kernel, each.size, each.library, first, second


def describe_missing_kernels(machines: Mapping[str, Sequence[MeasuredKernel]]) -> str:
    """Describe what of the kernels no session has, and what measures it."""
    times = arrange_kernels(machines)
    if not times:
        return f"Kernels: in a session of their own: {COMMAND}"
    readings = {placement.table for layouts in times.values() for placement in list_placements(layouts)}
    lacking = [
        *([] if "Table 6" in readings else ["table 6, which needs two nodes"]),
        *([] if "Table 7" in readings else ["table 7, which needs 1 and 2 processes a node"]),
        *([] if BY_THREADS in readings else ["table 8, which needs cores with hardware threads"]),
    ]
    return f"Kernels: not measured: {'; '.join(lacking)}" if lacking else ""
