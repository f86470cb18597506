"""Measured machines over one that is only in print, by way of a machine that stands for one of its paper's.

Luecke et al. (2001) print ratios and no times: T(ours) / T(NT) is T(ours) / T(torus) over the printed
T(NT) / T(T3E-600), where the torus stands for the T3E-600.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from postprocess.base.formats import size
from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.extensions.papers.common.data import Operation, PaperMeasurements
from postprocess.extensions.papers.common.numbers import write_ratio
from postprocess.extensions.papers.common.printed import History
from postprocess.extensions.papers.luecke.ratios import find_stand_ins

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
            for routine in dict.fromkeys(each.routine for each in history.ratios)
            if (table := _table(measured, history, against, way, routine, count))
        ]
        if tables:
            return tables, ""
    return [], NEEDED.format(against=against, count=count)


def _ordered(measured: PaperMeasurements, history: History) -> dict[str, list[str]]:
    """Return the machines that stand for one in print, that by which the paper divides first."""
    divisors = {each.against for each in history.ratios}
    stands = find_stand_ins(measured, history)
    return dict(sorted(stands.items(), key=lambda item: not divisors & set(item[1])))


def _printed(history: History, routine: str) -> dict[tuple[str, int], float]:
    """Return printed times over that of the paper's divisor, which has 1, by machine and bytes."""
    rows = [each for each in history.ratios if each.routine == routine]
    ones = {(each.against, each.bytes): 1.0 for each in rows}
    return ones | {(each.machine, each.bytes): each.ratio for each in rows}


def _table(
    measured: PaperMeasurements,
    history: History,
    against: str,
    way: Way,
    routine: str,
    count: int,
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
                        (
                            machine,
                            environment,
                            f"{cache}, {sync}",
                            *_pair(cells, printed, own, sizes, against),
                        )
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
    cells: list[str],
    printed: Mapping[tuple[str, int], float],
    own: list[str],
    sizes: list[int],
    against: str,
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
