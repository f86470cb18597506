"""The application kernels of sessions: speed-up, efficiency, placements, and how the models predict them.

Taboada et al. call their kernels *consistent with the predictions obtained from the models* (sections 6 and 7):
those with few messages gain by processes, the others less or not at all. Here the time of the messages is that
of the models, for the calls that each kernel makes (``suite/kernels``), one after the other. Work that is not
shared evenly, and memory that cores share, are in no model.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from postprocess.base.formats import NOT_PRINTED, TextTable
from postprocess.extensions.papers import cells
from postprocess.extensions.papers.measurements import PaperMeasurements
from postprocess.extensions.papers.printed import History
from postprocess.extensions.papers.taboada_models import GOOD, SEND, FittedModel, MeasuredModel, fit_measured
from postprocess.model.routines.kernels import KERNELS, RETURNS_NOTHING, SIZES, WITHOUT_RETURN
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


KernelTimes = Mapping[KernelPlace, Mapping[Layout, KernelTime]]


@dataclass(frozen=True)
class MeasuredKernels:
    """The usable times of kernels, and of each machine its system and partition."""

    times: KernelTimes = field(default_factory=dict)
    systems: Mapping[str, tuple[str, str]] = field(default_factory=dict)


class Placement(NamedTuple):
    """A reading of one of the tables: which two layouts it holds against each other."""

    table: str
    reading: str
    first: Layout
    second: Layout


def collect_kernels(sessions: Sequence[SessionSummary]) -> MeasuredKernels:
    """Collect the usable kernels. A machine is a partition, with its session where several have some."""
    kept = {summary.session: [*filter(_is_usable_kernel, summary.results)] for summary in sessions}
    several = sum(map(bool, kept.values())) > 1
    found: dict[tuple[KernelPlace, Layout], dict[bool, tuple[float, int]]] = {}
    systems: dict[str, tuple[str, str]] = {}
    for summary in sessions:
        dense = {
            (launch.partition, launch.environment, launch.processes, launch.per_node): launch.ranks_per_core
            for launch in summary.launches
            if launch.program == KERNELS
        }
        for result in kept[summary.session]:
            case = result.case
            machine = f"{summary.session}:{case.partition}" if several else case.partition
            systems[machine] = (case.system, case.partition)
            whole = case.routine.removesuffix(WITHOUT_RETURN)
            kernel, _, size = whole.partition("_")
            key = (KernelPlace(machine, case.environment, kernel, size), Layout(case.processes, case.per_node))
            of = (f"{case.system}:{case.partition}", case.environment, case.processes, case.per_node)
            found.setdefault(key, {})[whole == case.routine] = (result.value or 0.0, dense.get(of, 1))
    times: dict[KernelPlace, dict[Layout, KernelTime]] = {}
    for (place, layout), own in sorted(found.items(), key=lambda item: item[0]):
        if True in own:
            (time, ranks), rest = own[True], own.get(False, (None, 1))[0]
            times.setdefault(place, {})[layout] = KernelTime(time, rest, ranks)
    return MeasuredKernels(times, systems)


def _is_usable_kernel(result: CaseResult) -> bool:
    return bool(result.case.program == KERNELS and result.value and result.verdict not in WITHOUT_VALUE)


def build_kernel_tables(kernels: MeasuredKernels, history: History) -> list[TextTable]:
    return [_speed_ups(kernels.times), *_placements(kernels.times, history)]


def _speed_ups(times: KernelTimes) -> TextTable:
    rows = []
    for place, layouts in times.items():
        one = layouts.get(Layout(1, 1))
        for layout, time in layouts.items():
            rest = time.without_return
            rows.append(
                (
                    *(*place, str(layout.processes), str(layout.per_node)),
                    cells.time(time.whole),
                    NOT_PRINTED if rest is None else cells.time(rest),
                    NOT_PRINTED if rest is None else cells.share(1 - rest / time.whole),
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
    return cells.plain(gain, digits=3, about={"processes": processes}), cells.share(gain / processes)


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
    found = [placement for placement in found if placement.second in there]
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
    printed: dict[tuple[str, str, str, Layout, Layout], str] = {}
    for each in history.kernels:
        first, second = Layout(each.processes, each.per_node), Layout(each.over_processes, each.over_per_node)
        told = cells.Number(f"{each.ratio:.2f}", each.ratio)
        printed[each.kernel, each.size, each.library, first, second] = told
    rows: dict[str, list[tuple[str, ...]]] = {table: [] for table in TITLES}
    for place, layouts in times.items():
        for table, reading, first, second in list_placements(layouts):
            ratio = layouts[first].whole / layouts[second].whole
            told = cells.Number(f"{ratio:.2f}", ratio, quantity="ratio", note=f"{reading}, over {second}")
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
                *([ONE_NODE] if any(row[5].startswith(f"{ALONE} over ") for row in rows[table]) else []),
            ),
        )
        for table, title in TITLES.items()
    ]


NEEDS = {
    "Table 6": "two nodes",
    "Table 7": "1 and 2 processes a node",
    BY_THREADS: "cores with hardware threads",
}
ALONE = Layout(1, 1)
ONE_NODE = f"{ALONE} over more: one node, where the ratio is the speed-up; the paper has 4 and 8 nodes"
READINGS = f"{AS_PRINTED}: one and two processes a node; {TODAY}: one, and nodes as full as measured"
NOT_ON_THREADS = (
    f"{TODAY}: not measured, as no launch had two ranks on a core: the site's topology declares no "
    "hardware threads (threads_per_core), or the cases say why they were skipped"
)


def describe_missing_kernels(kernels: MeasuredKernels) -> str:
    """Describe what of the kernels no session has, and what measures it."""
    if not kernels.times:
        return f"Kernels: in a session of their own: {COMMAND}"
    readings = {placement.table for layouts in kernels.times.values() for placement in list_placements(layouts)}
    lacking = [f"{table.lower()}, which needs {what}" for table, what in NEEDS.items() if table not in readings]
    return f"Kernels: not measured: {'; '.join(lacking)}" if lacking else ""


WORD, INDEX = 8, 4  #: bytes of a double, and of the index of a pivot
HALF_SWEEPS, PRODUCTS = 200, 200  #: of SOR, and of Sparse
MODELS = "./plumbline run --family taboada"  #: what measures them
#: From the fewest messages beside their work to the most, as the paper has it
ORDER = ("series", "crypt", "sor", "sparse", "lufact")


class Calls(NamedTuple):
    """So many calls of an operation, one after the other, with n bytes each by the model's convention."""

    routine: str
    bytes: float
    times: int


def list_calls(kernel: str, size: str, processes: int) -> list[Calls]:
    """List what a kernel sends at a size, on its longest way through the processes; nothing of one process."""
    data, p = SIZES[kernel][size], processes
    rows = math.isqrt(data // WORD)
    calls = {
        "series": [Calls(SEND, data / 2 / p, 2 * (p - 1))],
        "crypt": [Calls(SEND, data / p, 2 * (p - 1))],
        # one upwards and one downwards after each half sweep, and the return of the rows
        "sor": [Calls(SEND, WORD * rows, 2 * HALF_SWEEPS), Calls(SEND, data / p, p - 1)],
        "sparse": [Calls("allreduce_sum", data, PRODUCTS)],
        "lufact": [
            Calls("bcast", WORD * (rows + 1), rows),
            Calls("bcast", INDEX, rows),
            Calls(SEND, WORD * rows * (rows + 1) / p, p - 1),
        ],
    }
    return calls[kernel] if processes > 1 else []


def build_model_comparison(kernels: MeasuredKernels, measured: PaperMeasurements) -> TextTable:
    """Build a row for each kernel at each count of processes that the models know; none without both."""
    models = fit_measured(measured)
    rows: list[tuple[str, ...]] = []
    order = sorted(kernels.times, key=lambda e: (e.machine, e.environment, ORDER.index(e.kernel), e.size))
    for place in order:
        layouts, system = kernels.times[place], kernels.systems[place.machine]
        here = [
            model
            for model in models
            if measured.systems[model.place.machine] == system and model.place.environment == place.environment
        ]
        for layout, time in select_densest(layouts).items():
            rows += _build_row(place, layout, time, layouts.get(Layout(1, 1)), here)
    return TextTable(
        "Kernels beside the models: T(1) / p and the messages",
        (*LABELS, "processes", "per node"),
        (
            "T(1) / p (us)",
            "messages (us)",
            "predicted (us)",
            "messages' share",
            "time (us)",
            "time / predicted",
        ),
        tuple(rows),
        (
            "messages: the calls of the kernel by the models of the same MPI at as many processes, its sends "
            "by that of a send; beyond 1 MiB the models are continued",
            "in print: results are consistent with the models, with ever more messages beside the work from "
            "Series by Crypt, SOR and Sparse to LUFact",
            "work that is not shared evenly, and memory that cores share, are in no model",
            f"left out: kernels with a call that has no model, or one that is off by more than {GOOD:.0%}",
        ),
    )


def describe_missing_models(table: TextTable, kernels: MeasuredKernels) -> str:
    """Describe what is needed beside kernels to hold them against the models; nothing if that was done."""
    if table.rows or not kernels.times:
        return ""
    fix = f"{MODELS}, with the processes of the kernels; then papers S1 --session S2 --paper taboada"
    return f"Kernels beside the models: need kernels of one process and of more, and the models: {fix}"


def select_densest(layouts: Mapping[Layout, KernelTime]) -> dict[Layout, KernelTime]:
    """Select the densest placement of each count of processes above one, with a rank a core: the models'."""
    found = {
        layout.processes: layout
        for layout in sorted(layouts)
        if layout.processes > 1 and layouts[layout].ranks_per_core == 1
    }
    return {layout: layouts[layout] for layout in found.values()}


def _build_row(
    place: KernelPlace,
    layout: Layout,
    time: KernelTime,
    one: KernelTime | None,
    models: Sequence[MeasuredModel],
) -> list[tuple[str, ...]]:
    """Build the row of a kernel; nothing without its time at one process or a model of each call."""
    calls = list_calls(place.kernel, place.size, layout.processes)
    fits = [find_fit(models, call.routine, layout.processes) for call in calls]
    if one is None or not all(fits):
        return []
    sent = sum(call.times * fit.time(call.bytes) for call, fit in zip(calls, fits, strict=True) if fit)
    work = one.whole / layout.processes
    predicted = work + sent
    told = (cells.time(work), cells.time(sent), cells.time(predicted), cells.share(sent / predicted))
    ratio = cells.ratio(time.whole / predicted) if predicted > 0 else NOT_PRINTED
    return [(*place, str(layout.processes), str(layout.per_node), *told, cells.time(time.whole), ratio)]


def find_fit(models: Sequence[MeasuredModel], routine: str, processes: int) -> FittedModel | None:
    """Find a model that may be derived from: of a send that of two processes, else of this count."""
    for model in models:
        fit = next(iter(model.fits.values()), None) if routine == SEND else model.fits.get(processes)
        if model.routine == routine and fit and fit.is_good:
            return fit
    return None
