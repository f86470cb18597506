"""Measured machines over one that is only in print, by way of a machine that stands for one of its paper's.

Luecke et al. (2001) print ratios and no times: T(ours) / T(NT) is T(ours) / T(torus) over the printed
T(NT) / T(T3E-600), where the torus stands for the T3E-600.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median

import polars as pl

from postprocess.base.formats import size
from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.extensions.papers.common.data import (
    Operation,
    PaperCell,
    PaperMeasurements,
    operation_sort_key,
)
from postprocess.extensions.papers.common.numbers import Number, write_plain, write_ratio
from postprocess.extensions.papers.common.printed import History
from postprocess.extensions.papers.luecke.ratios import find_stand_ins
from postprocess.model.routines.mpicost import EVICT, FLUSH

PLACE = ("system", "partition", "environment")


def read_timers(frame: pl.DataFrame, session: str) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Read resolution and overhead of the clock, in seconds, by system, partition and environment."""
    found: dict[tuple[str, str, str], tuple[float, float]] = {}
    if frame.is_empty():
        return found
    rows = frame.filter((pl.col("session") == session) & (pl.col("program") == "mpicost"))
    for row in rows.select(*PLACE, "provenance").unique().iter_rows(named=True):
        timer = json.loads(row["provenance"] or "{}").get("timer")
        if isinstance(timer, dict) and {"resolution", "overhead"} <= timer.keys():
            place = (row["system"], row["partition"], row["environment"])
            before = found.get(place, (0.0, 0.0))
            told = (float(timer["resolution"]), float(timer["overhead"]))
            found[place] = (max(before[0], told[0]), max(before[1], told[1]))
    return found


def build_timer_table(
    measured: PaperMeasurements,
    timers: Mapping[str, Mapping[tuple[str, str, str], tuple[float, float]]],
    history: History,
) -> TextTable | None:
    """Build a row for each machine and MPI, and those in print; None if no session tells."""
    rows = []
    for machine in measured.machines:
        known = [timers.get(session, {}) for session in measured.sessions[machine]]
        for environment in measured.environments_on(machine):
            place = (*measured.systems[machine], environment)
            if told := [each[place] for each in known if place in each]:
                largest = (write_plain(max(seconds) * 1e6, "us", 3) for seconds in zip(*told, strict=True))
                rows.append((machine, environment, *largest))
    if not rows:
        return None
    printed = [
        (f"{figure.machine} (in print)", NOT_PRINTED, write_plain(figure.value, "us"), NOT_PRINTED)
        for figure in history.figures
        if figure.paper == "Luecke 2003" and figure.quantity == "timer_resolution"
    ]
    return TextTable(
        "The clock",
        ("machine", "MPI"),
        ("resolution (us)", "a reading takes (us)"),
        (*rows, *printed),
        ("in print: of MPI_Wtime; ours: of the clock that mpicost reads, the largest of all launches",),
    )


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
        (*about, *(_over_warm(times, cold) if cold in times else NOT_PRINTED for cold in COLD))
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
            f"in print: {1 / figure.value:g} of {figure.routine} of {figure.bytes} B on the {figure.machine}, "
            f"{figure.processes} processes, flushed"
            for figure in history.figures
            if figure.quantity == "no_flush_over_flush_time"
        ),
    )


def _over_warm(times: dict[str, list[float]], cold: str) -> Number:
    over = median(times[cold]) / median(times[WARM])
    return write_ratio(over, quantity="cold over warm", about={"cache": cold})


def _order(cell: PaperCell) -> tuple[object, ...]:
    return cell.machine, cell.environment, operation_sort_key(cell.operation), cell.processes


NEEDED = (
    "--against {against}: the paper has only ratios, and no session stands for one of its machines "
    "at {count} processes; run ./plumbline nightly --site simulated --partition torus"
)


@dataclass(frozen=True)
class Way:
    """The machine of the sessions by way of which a machine in print is reached."""

    machine: str
    stands_for: str


def build_chained_tables(
    measured: PaperMeasurements, history: History, against: str
) -> tuple[list[TextTable], str]:
    """Build a table for each routine in print, and say what is missing where there can be none."""
    count = history.ratios[0].processes
    for machine, names in _ordered(measured, history).items():
        way = Way(machine, names[0])
        tables = [
            table
            for routine in dict.fromkeys(ratio.routine for ratio in history.ratios)
            if (table := _table(measured, history, against, way, routine, count))
        ]
        if tables:
            return tables, ""
    return [], NEEDED.format(against=against, count=count)


def _ordered(measured: PaperMeasurements, history: History) -> dict[str, list[str]]:
    """Return the machines that stand for one in print, that by which the paper divides first."""
    divisors = {ratio.against for ratio in history.ratios}
    stands = find_stand_ins(measured, history)
    return dict(sorted(stands.items(), key=lambda item: not divisors & set(item[1])))


def _printed(history: History, routine: str) -> dict[tuple[str, int], float]:
    """Return printed times over that of the paper's divisor, which has 1, by machine and bytes."""
    rows = [ratio for ratio in history.ratios if ratio.routine == routine]
    ones = {(ratio.against, ratio.bytes): 1.0 for ratio in rows}
    return ones | {(each.machine, each.bytes): each.ratio for each in rows}


def _table(
    measured: PaperMeasurements, history: History, against: str, way: Way, routine: str, count: int
) -> TextTable | None:
    printed = _printed(history, routine)
    sizes = sorted({bytes_ for machine, bytes_ in printed if machine == against})
    stands = find_stand_ins(measured, history)
    rows = []
    for machine in measured.machines:
        for environment in measured.environments_on(machine):
            for cache, sync in sorted({(o.cache, o.sync) for o in measured.operations}):
                cells = [
                    _cell(
                        measured,
                        (machine, environment),
                        Operation(routine, n, cache, sync),
                        way,
                        printed,
                        against,
                        count,
                    )
                    for n in sizes
                ]
                if any(cell != NOT_PRINTED for cell in cells):
                    own = stands.get(machine, [])
                    rows.append(
                        (machine, environment, f"{cache}, {sync}", *_pair(cells, printed, own, sizes, against))
                    )
    if not rows:
        return None
    heads = [head for n in sizes for head in (size(n) if n else "ratio", "in print")]
    return TextTable(
        f"{routine}: time over that of the {against} in print, {count} processes",
        ("machine", "MPI", "conditions"),
        tuple(heads),
        tuple(rows),
        (f"by way of {way.machine}, which stands for the {way.stands_for}",),
        (("routine", routine), ("processes", str(count))),
    )


def _cell(
    measured: PaperMeasurements,
    place: tuple[str, str],
    operation: Operation,
    way: Way,
    printed: Mapping[tuple[str, int], float],
    against: str,
    count: int,
) -> str:
    machine, environment = place
    own = measured.environments_on(way.machine)
    divisor = environment if environment in own else own[0]
    time = measured.time(machine, environment, operation, count)
    reference = measured.time(way.machine, divisor, operation, count)
    known = printed.get((way.stands_for, operation.bytes))
    if time is None or reference is None or known is None:
        return NOT_PRINTED
    return write_ratio(
        time / reference * known / printed[against, operation.bytes],
        quantity="ratio",
        about={"bytes": operation.bytes},
    )


def _pair(
    cells: list[str], printed: Mapping[tuple[str, int], float], own: list[str], sizes: list[int], against: str
) -> list[str]:
    """Return each ratio with that in print of the machine for which ours stands."""
    found = []
    for cell, n in zip(cells, sizes, strict=True):
        told = next((printed[name, n] for name in own if (name, n) in printed), None)
        found += [cell, NOT_PRINTED]
        if told is not None:
            about = {"bytes": n}
            over = told / printed[against, n]
            found[-1] = write_ratio(over, quantity="ratio in print", about=about)
    return found
