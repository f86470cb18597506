"""The ratio tables as the papers print them, and how near simulated machines come to the printed figures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from postprocess.base.formats import ratio
from postprocess.base.text_table import MISSING, NOT_PRINTED, TextTable
from postprocess.extensions.papers.common.data import PaperMeasurements
from postprocess.extensions.papers.common.numbers import Number, write_count, write_ratio
from postprocess.extensions.papers.common.printed import History
from postprocess.extensions.papers.luecke.ratios import RatioRow, RatioTable, find_stand_ins

NEAR = 2.0  #: a factor within which a measured ratio counts as near the printed one


def format_ratio_table(measured: PaperMeasurements, table: RatioTable) -> TextTable:
    """Format the table as the paper has it, with a line for each size and machine."""
    has_printed = any(row.printed for row in table.rows)
    sources = sorted({row.printed.source for row in table.rows if row.printed})
    rows = []
    for row in table.rows:
        size = Number(row.operation.size, row.operation.bytes)
        about = (size, *measured.conditions(row.operation), row.machine)
        cells = [_cell(row, name) for name in table.environments]
        printed = [_printed(row)] if has_printed else []
        rows.append((*about, *cells, *printed))
    basis = table.basis
    return TextTable(
        f"{table.routine}: time over that of {basis.title}, {basis.processes} processes",
        ("size", *measured.varying, "machine"),
        (*table.environments, *(["printed"] if has_printed else [])),
        tuple(rows),
        (
            f"printed: {'; '.join(sources)}; in brackets: the measured ratio over the printed one; fitted: the "
            "model of the machine was made from it",
        )
        if sources
        else (),
        (("routine", table.routine), ("processes", str(basis.processes))),
    )


def describe_nearness(
    measured: PaperMeasurements, history: History, tables: Iterable[RatioTable]
) -> TextTable | None:
    """Describe how near the ratios are to the printed ones, for each machine and MPI; None if none is printed.

    Ratios to which a model was fitted are left out.
    """
    found: dict[tuple[str, str], list[float | None]] = {}
    for table in tables:
        for row in table.rows:
            for name in row.ratios if row.is_evidence else ():
                found.setdefault((row.machine, name), []).append(row.over_printed(name))
    if not found:
        return None
    stands = find_stand_ins(measured, history)
    rows = [
        (machine, " and ".join(stands[machine]), name, *_nearness(factors))
        for (machine, name), factors in found.items()
    ]
    return TextTable(
        "How near the ratios come to the printed ones",
        ("machine", "stands for", "MPI"),
        ("printed", "measured", f"within a factor of {NEAR:g}", "typical factor", "bias"),
        tuple(rows),
        (
            "without the ratios to which a model was fitted",
            "typical factor: geometric mean of how far measured and printed are apart, either way; "
            "bias: geometric mean of measured over printed",
        ),
    )


def describe_stand_ins(measured: PaperMeasurements, history: History) -> list[str]:
    """Describe where each machine that stands for one of the papers differs from it, and why."""
    names = {place: machine for machine, place in measured.systems.items()}
    return [
        f"{names[each.system, each.partition]} for the {each.machine}: {each.remark}"
        for each in history.stand_ins
        if (each.system, each.partition) in names
    ]


def _printed(row: RatioRow) -> str:
    if row.printed is None:
        return NOT_PRINTED
    text = f"{row.printed.ratio:g}" + (" (fitted)" if row.fitted else "")
    note = "fitted" if row.fitted else ""
    return Number(text, row.printed.ratio, quantity="printed ratio", note=note)


def _cell(row: RatioRow, environment: str) -> str:
    if environment not in row.ratios:
        return NOT_PRINTED
    value, factor = row.ratios[environment], row.over_printed(environment)
    if value is None:
        return MISSING
    about = {"mpi": environment}
    text = ratio(value, 1.0)
    if factor is None:
        return Number(text, value, quantity="ratio", about=about)
    over = write_ratio(factor, quantity="ratio over printed ratio", about=about)
    return Number(f"{text} ({over})", value, quantity="ratio", about=about, more=[over])


def _nearness(factors: Sequence[float | None]) -> tuple[str, ...]:
    logs = [math.log(factor) for factor in factors if factor is not None]
    near = sum(abs(log) <= math.log(NEAR) for log in logs)
    if not logs:
        return (write_count(len(factors)), write_count(0), MISSING, MISSING, MISSING)
    typical = math.exp(statistics.fmean(map(abs, logs)))
    bias = math.exp(statistics.fmean(logs))
    counts = (write_count(len(factors)), write_count(len(logs)), write_count(near))
    return (*counts, write_ratio(typical), write_ratio(bias))
