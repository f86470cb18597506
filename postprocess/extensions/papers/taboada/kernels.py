"""The application kernels of sessions: speed-up, efficiency, and the placements of Taboada et al."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.extensions.papers.common.presentation import Number, write_plain, write_share, write_time
from postprocess.extensions.papers.common.printed import History, PrintedKernel
from postprocess.model.routines.kernels import KERNELS, RETURNS_NOTHING, WITHOUT_RETURN
from postprocess.model.verdict import WITHOUT_VALUE, CaseResult
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


KernelTimes = Mapping[KernelPlace, Mapping[Layout, KernelTime]]


class Placement(NamedTuple):
    """A reading of one of the tables: which two layouts it holds against each other."""

    table: str
    reading: str
    first: Layout
    second: Layout


def collect_kernels(sessions: Mapping[str, Sequence[CaseResult]]) -> dict[str, list[CaseResult]]:
    """Collect the usable kernels by machine: a partition, with its session where several have some."""
    kept = {
        name: [
            result
            for result in results
            if result.case.program == KERNELS and result.value and result.verdict not in WITHOUT_VALUE
        ]
        for name, results in sessions.items()
    }
    several = sum(bool(results) for results in kept.values()) > 1
    found: dict[str, list[CaseResult]] = {}
    for name, results in kept.items():
        for result in results:
            machine = f"{name}:{result.case.partition}" if several else result.case.partition
            found.setdefault(machine, []).append(result)
    return found


def arrange_kernels(machines: Mapping[str, Sequence[CaseResult]]) -> KernelTimes:
    """Arrange the times of kernels by layout, the one without the return beside the whole."""
    seconds: dict[tuple[KernelPlace, Layout, bool], float] = {}
    for machine, results in machines.items():
        for result in results:
            case = result.case
            whole = case.routine.removesuffix(WITHOUT_RETURN)
            kernel, _, size = whole.partition("_")
            place = KernelPlace(machine, case.environment, kernel, size)
            layout = Layout(case.processes, case.per_node)
            seconds[place, layout, whole == case.routine] = result.value or 0.0
    found: dict[KernelPlace, dict[Layout, KernelTime]] = {}
    for place, layout, is_whole in sorted(seconds):
        if is_whole:
            time = seconds[place, layout, True]
            rest = seconds.get((place, layout, False))
            found.setdefault(place, {})[layout] = KernelTime(time, rest)
    return found


def build_kernel_tables(machines: Mapping[str, Sequence[CaseResult]], history: History) -> list[TextTable]:
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


def list_placements(layouts: Iterable[Layout]) -> list[Placement]:
    """List the readings of tables 6 and 7 that some layouts allow: the sparser one over the denser one.

    As printed: one and two processes a node. Today: one process a node, and nodes as full as were measured.
    """
    there = {*layouts}
    most = max((each.per_node for each in there), default=1)
    found = []
    for reading, dense in [(AS_PRINTED, 2), *([(TODAY, most)] if most > 2 else [])]:
        for sparse in (each for each in there if each.per_node == 1):
            nodes = sparse.processes
            found += [
                Placement("Table 6", reading, sparse, Layout(nodes, dense)),
                Placement("Table 7", reading, sparse, Layout(nodes * dense, dense)),
            ]
    return sorted(each for each in found if each.second in there)


TITLES = {
    "Table 6": "the same processes, one on each node over several",
    "Table 7": "the same nodes, one process on each over several",
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
    return [
        TextTable(
            f"Kernels: {title} ({table})",
            (*LABELS, "reading", "layouts"),
            ("ratio", *(f"in print, {name}" for name in libraries)),
            tuple(rows[table]),
            (
                "ratio of times, above 1: the denser placement is faster; layouts: processes x those of a node",
                f"{AS_PRINTED}: one and two processes a node; {TODAY}: one, and nodes as full as measured",
            ),
        )
        for table, title in TITLES.items()
    ]


def _printed_key(each: PrintedKernel) -> tuple[str, str, str, Layout, Layout]:
    """Return kernel, size and library, and the two layouts."""
    first = Layout(each.processes, each.per_node)
    second = Layout(each.over_processes, each.over_per_node)
    return each.kernel, each.size, each.library, first, second


def describe_missing_kernels(machines: Mapping[str, Sequence[CaseResult]]) -> str:
    """Describe what of the kernels no session has, and what measures it."""
    times = arrange_kernels(machines)
    if not times:
        return f"Kernels: in a session of their own: {COMMAND}"
    readings = {placement.table for layouts in times.values() for placement in list_placements(layouts)}
    lacking = [
        *([] if "Table 6" in readings else ["table 6, which needs two nodes"]),
        *([] if "Table 7" in readings else ["table 7, which needs 1 and 2 processes a node"]),
        "table 8, two processes on a core, which no launch has",
    ]
    return f"Kernels: not measured: {'; '.join(lacking)}"
