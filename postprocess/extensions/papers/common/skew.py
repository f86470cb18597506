"""How far apart the processes began a trial: what the synchroniser before it left in its time.

The papers call MPI_Barrier before a trial, and take the longest time of any process. The processes leave a
barrier one after the other: the time of a short call is then, in part or wholly, the wait for the one that
left last. The two of a ping-pong or a swap meet before they are timed; a ring and the collective calls have
nobody to meet.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from postprocess.base.text_table import TextTable
from postprocess.extensions.papers.common.data import Operation, PaperCell, PaperMeasurements
from postprocess.extensions.papers.common.numbers import Number, write_ratio, write_time
from postprocess.model.routines.benchmark import LOOP
from postprocess.model.routines.mpicost import BARRIER, SWAPS, Routine, find_routine

LARGE = 0.25  #: of a time: a skew that is told
RING = "swap_ring_"  #: how the swaps begin whose members do not meet
COLUMNS = ("key", "skew", "late", "dropped")
Skews = Mapping[str, Mapping[str, float]]  #: median in seconds, by session and the key of a case


def read_skews(frame: pl.DataFrame, session: str) -> dict[str, float]:
    """Read the median skew of the counted trials of each case of a session, in seconds, by the case's key."""
    if frame.is_empty() or not {*COLUMNS} <= {*frame.columns}:
        return {}
    found: dict[str, list[float]] = {}
    rows = frame.filter(pl.col("session") == session).select(COLUMNS)
    for row in rows.iter_rows(named=True):
        skews = np.array(row["skew"] or [], dtype=np.float64)
        late = np.array(row["late"] or [False] * skews.size, dtype=bool)
        if late.shape == skews.shape:
            counted = (~late & np.isfinite(skews))[row["dropped"] or 0 :]
            found.setdefault(row["key"], []).extend(skews[row["dropped"] or 0 :][counted])
    return {key: statistics.median(each) for key, each in found.items() if each}


def build_skew_table(measured: PaperMeasurements, skews: Skews) -> TextTable | None:
    """Build a row for each routine whose skew is ``LARGE`` beside its shortest time; None without any.

    Of each routine the least size at the most processes. Left out are pairs that meet before they are timed,
    loops of calls, which overlap, and what replaces another operation.
    """
    rows = tuple(row for cell in _select_cells(measured) for row in _build_row(measured, skews, cell))
    if not rows:
        return None
    return TextTable(
        f"Where the processes began far apart: by {LARGE:.0%} of the time and more",
        ("machine", "MPI", "conditions", "routine", "size", "processes"),
        ("time (us)", "skew (us)", "skew / time"),
        rows,
        (
            "skew: from the first start of a process to the last, the median of the trials; the least size of "
            "each routine at the most processes",
            "who leaves the barrier first waits for the others in its own time: at most the skew is no part of "
            "the call; with --sync window all begin by a common clock",
        ),
    )


def _select_cells(measured: PaperMeasurements) -> list[PaperCell]:
    found: dict[tuple[str, ...], PaperCell] = {}
    for cell, time in measured.times.items():
        operation = cell.operation
        place = (cell.machine, cell.environment, operation.cache, operation.sync, operation.routine)
        told = find_routine(operation.routine)
        waits = operation.sync != LOOP and not _meets(told)
        sent = operation.bytes or operation.routine == BARRIER
        if time is not None and cell.processes > 1 and waits and sent and not told.replaces:
            found[place] = min(found.get(place, cell), cell, key=_order)
    return [found[place] for place in sorted(found)]


def _meets(routine: Routine) -> bool:
    """Return whether the two of each pair meet before they are timed."""
    return routine.in_pairs or (routine.family == SWAPS and not routine.name.startswith(RING))


def _order(cell: PaperCell) -> tuple[int, int]:
    return -cell.processes, cell.operation.bytes


def _build_row(measured: PaperMeasurements, skews: Skews, cell: PaperCell) -> Iterator[tuple[str, ...]]:
    known = [
        each[result.case.key]
        for session in measured.sessions[cell.machine]
        for each in [skews.get(session, {})]
        for result in measured.results[cell]
        if result.case.key in each
    ]
    time, operation = measured.times[cell], cell.operation
    if not known or not time or statistics.median(known) < LARGE * time:
        return
    skew = statistics.median(known)
    yield (
        *(cell.machine, cell.environment, _conditions(operation), operation.routine),
        *(Number(operation.size, operation.bytes), str(cell.processes)),
        *(write_time(time), write_time(skew), write_ratio(skew / time)),
    )


def _conditions(operation: Operation) -> str:
    return f"{operation.cache}, {operation.sync}"
