"""Library against library on one machine: the factors of Luecke, Kraeva and Ju (2003)."""

from __future__ import annotations

import statistics

from postprocess.base.formats import factor
from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.extensions.papers.common.data import Operation, PaperMeasurements
from postprocess.extensions.papers.common.numbers import Number, write_ratio


def build_library_tables(measured: PaperMeasurements, basis: str | None = None) -> list[TextTable]:
    """Build a table for each machine with several MPIs: the time with each over that with ``basis``.

    None takes the first. A factor is the geometric mean over the process counts; in brackets the least and the
    most, as the paper has "about a factor of three".
    """
    tables = []
    for machine in measured.machines:
        environments = measured.environments_on(machine)
        chosen = basis if basis in environments else environments[0]
        others = [name for name in environments if name != chosen]
        rows = tuple(
            (*_about(measured, operation), counts, *cells)
            for operation in measured.operations
            for counts, cells in [_factors(measured, machine, chosen, others, operation)]
            if any(cell != NOT_PRINTED for cell in cells)
        )
        if rows:
            tables.append(
                TextTable(
                    f"{machine}: time over that with {chosen}",
                    ("routine", "size", *measured.varying, "processes"),
                    tuple(others),
                    rows,
                    (
                        "geometric mean over the process counts, and in brackets the least and the most",
                    ),
                    (("machine", machine),),
                )
            )
    return tables


def _about(measured: PaperMeasurements, operation: Operation) -> tuple[str, ...]:
    size = Number(operation.size, operation.bytes)
    return (operation.routine, size, *measured.conditions(operation))


def _factors(
    measured: PaperMeasurements,
    machine: str,
    basis: str,
    others: list[str],
    operation: Operation,
) -> tuple[str, list[str]]:
    cells, seen = [], set()
    for name in others:
        ratios = {}
        for count in measured.planned(machine, name, operation):
            time = measured.time(machine, name, operation, count)
            reference = measured.time(machine, basis, operation, count)
            if time is not None and reference is not None:
                ratios[count] = time / reference
        seen |= {*ratios}
        cells.append(_format(list(ratios.values()), name))
    counts = sorted(seen)
    return (f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else "".join(map(str, counts))), cells


def _format(ratios: list[float], environment: str) -> str:
    if not ratios:
        return NOT_PRINTED
    mean, about = statistics.geometric_mean(ratios), {"mpi": environment}
    if len(ratios) == 1:
        return write_ratio(mean, quantity="ratio", about=about)
    text = f"{factor(mean)} ({factor(min(ratios))} to {factor(max(ratios))})"
    ends = [
        Number(text, value, quantity=f"{name} ratio", about=about)
        for name, value in (("least", min(ratios)), ("most", max(ratios)))
    ]
    return Number(text, mean, quantity="mean ratio", about=about, more=ends)
