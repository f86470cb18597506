"""Cold caches over warm ones, figure 1 of Luecke et al. (2001): all that was measured both ways."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.extensions.papers.common.data import (
    PaperCell,
    PaperMeasurements,
    operation_sort_key,
)
from postprocess.extensions.papers.common.numbers import Number, write_ratio
from postprocess.extensions.papers.common.printed import History
from postprocess.model.routines.mpicost import EVICT, FLUSH

WARM = "warm"
COLD = (FLUSH, EVICT)


def build_cold_table(measured: PaperMeasurements, history: History) -> TextTable | None:
    """Build a row for each operation that an MPI has a warm time and a cold one of; None without any.

    They may be of several sessions; of several times the median counts.
    """
    found: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for cell in sorted(measured.results, key=_order):
        time = measured.times[cell]
        if time is not None:
            operation = replace(cell.operation, cache="")
            place = (*measured.systems[cell.machine], cell.environment)
            size = Number(operation.size, operation.bytes)
            about = (operation.routine, size, operation.sync, str(cell.processes))
            times = found.setdefault((*place, *about), {})
            times.setdefault(cell.operation.cache, []).append(time)
    rows = tuple(
        (
            *about,
            *(_over_warm(times, cold) if cold in times else NOT_PRINTED for cold in COLD),
        )
        for about, times in found.items()
        if WARM in times and len(times) > 1
    )
    if not rows:
        return None
    labels = ("system", "partition", "MPI", "routine", "size", "sync", "processes")
    return TextTable(
        "Time with cold caches over that with warm ones",
        labels,
        COLD,
        rows,
        tuple(
            f"in print: {1 / each.value:g} of {each.routine} of {each.bytes} B on the {each.machine}, "
            f"{each.processes} processes, flushed"
            for each in history.figures
            if each.quantity == "no_flush_over_flush_time"
        ),
    )


def _over_warm(times: dict[str, list[float]], cold: str) -> Number:
    over = median(times[cold]) / median(times[WARM])
    return write_ratio(over, quantity="cold over warm", about={"cache": cold})


def _order(cell: PaperCell) -> tuple[object, ...]:
    return cell.machine, cell.environment, operation_sort_key(cell.operation), cell.processes
