"""The application kernels held against the models: a kernel takes T(1) / p for its work, and its messages.

Taboada et al. call their kernels *consistent with the predictions obtained from the models* (sections 6 and 7):
those with few messages gain by processes, the others less or not at all. Here the time of the messages is that
of the models, for the calls that each kernel makes (``suite/kernels``), one after the other. Work that is not
shared evenly, and memory that cores share, are in no model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.extensions.papers.common.measurements import PaperMeasurements
from postprocess.extensions.papers.common.presentation import write_ratio, write_share, write_time
from postprocess.extensions.papers.taboada.kernels import (
    LABELS,
    KernelPlace,
    KernelTime,
    MeasuredKernel,
    arrange_kernels,
)
from postprocess.extensions.papers.taboada.model_fit import GOOD, SEND, FittedModel, MeasuredModel, fit_measured
from postprocess.model.routines.kernels import SIZES
from site_configs.topology.layouts import Layout

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


def _list_series(data: int, p: int) -> list[Calls]:
    return [Calls(SEND, data / 2 / p, 2 * (p - 1))]


def _list_lufact(data: int, p: int) -> list[Calls]:
    rows = math.isqrt(data // WORD)
    steps = [Calls("bcast", WORD * (rows + 1), rows), Calls("bcast", INDEX, rows)]
    return [*steps, Calls(SEND, WORD * rows * (rows + 1) / p, p - 1)]


def _list_sor(data: int, p: int) -> list[Calls]:
    """List a send upwards and one downwards after each half sweep, and the return of the rows."""
    return [Calls(SEND, WORD * math.isqrt(data // WORD), 2 * HALF_SWEEPS), Calls(SEND, data / p, p - 1)]


def _list_sparse(data: int, p: int) -> list[Calls]:
    return [Calls("allreduce_sum", data, PRODUCTS)]


def _list_crypt(data: int, p: int) -> list[Calls]:
    return [Calls(SEND, data / p, 2 * (p - 1))]


CALLS: Mapping[str, Callable[[int, int], list[Calls]]] = {
    "series": _list_series,
    "crypt": _list_crypt,
    "sor": _list_sor,
    "sparse": _list_sparse,
    "lufact": _list_lufact,
}


def list_calls(kernel: str, size: str, processes: int) -> list[Calls]:
    """List what a kernel sends at a size, on its longest way through the processes; nothing of one process."""
    calls = CALLS[kernel](SIZES[kernel][size], processes)
    return calls if processes > 1 else []


def build_model_comparison(
    machines: Mapping[str, Sequence[MeasuredKernel]], measured: PaperMeasurements
) -> TextTable:
    """Build a row for each kernel at each count of processes that the models know; none without both."""
    models = fit_measured(measured)
    rows: list[tuple[str, ...]] = []
    for machine, kernels in machines.items():
        case = kernels[0].result.case
        own = [m for m in models if measured.systems[m.place.machine] == (case.system, case.partition)]
        times = arrange_kernels({machine: kernels})
        for place in sorted(times, key=lambda each: (each.environment, ORDER.index(each.kernel), each.size)):
            here = [model for model in own if model.place.environment == place.environment]
            for layout, time in select_densest(times[place]).items():
                rows += _build_row(place, layout, time, times[place].get(Layout(1, 1)), here)
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


def describe_missing_models(table: TextTable, machines: Mapping[str, Sequence[MeasuredKernel]]) -> str:
    """Describe what is needed beside kernels to hold them against the models; nothing if that was done."""
    if table.rows or not machines:
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
    cells = (write_time(work), write_time(sent), write_time(predicted), write_share(sent / predicted))
    ratio = write_ratio(time.whole / predicted) if predicted > 0 else NOT_PRINTED
    return [(*place, str(layout.processes), str(layout.per_node), *cells, write_time(time.whole), ratio)]


def find_fit(models: Sequence[MeasuredModel], routine: str, processes: int) -> FittedModel | None:
    """Find a model that may be derived from: of a send that of two processes, else of this count."""
    for model in models:
        fit = next(iter(model.fits.values()), None) if routine == SEND else model.fits.get(processes)
        if model.routine == routine and fit and fit.is_good:
            return fit
    return None
