"""Scalability by a simple model: time over the model's growth is flat for a routine that scales as it says.

The models are those of Luecke et al. (2001): a message takes alpha + M beta; bcast over a binary tree
log2(p) times that; scatter and gather alpha log2(p) + (p-1) M beta, hence p-1 for long messages;
allgather and alltoall by shifts (p-1) times that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from postprocess.base.formats import plural
from postprocess.base.text_table import MISSING, TextTable
from postprocess.extensions.papers.common.data import Operation, PaperCell, PaperMeasurements
from postprocess.extensions.papers.common.numbers import Number, write_ratio
from postprocess.model.routines.mpicost import ROUTINES, Scaling
from postprocess.model.verdict import CaseResult
from postprocess.report.panels import (
    LINEAR,
    MOST_PANELS,
    Chapter,
    Panel,
    PanelLine,
    PanelPicture,
    Point,
    thin_values,
)

#: The model of each routine that has one.
MODELS = {routine.name: routine.scaling for routine in ROUTINES if routine.scaling is not Scaling.NONE}
LEAST = 8  #: the paper finds bcast flat "except when p < 8"
MOST_ON_PAGE = 120


def compute_divisor(routine: str, processes: int) -> float:
    """Compute the paper's divisor of the time of a routine, without unit: log2(p) or p-1. 96 is taken as it is.

    Raises ValueError if the paper has no model for the routine, or there are fewer than two processes.
    """
    if processes < 2:
        raise ValueError(f"{processes} processes: a model of messages needs two")
    if routine not in MODELS:
        raise ValueError(f"{routine}: no model")
    return math.log2(processes) if MODELS[routine] is Scaling.LOG2 else processes - 1.0


def format_divisor(routine: str) -> str:
    """Format the divisor as people write it."""
    return "log2 p" if MODELS[routine] is Scaling.LOG2 else "(p-1)"


def build_scalability_chapters(measured: PaperMeasurements, strict: bool) -> list[Chapter]:
    """Build a chapter for each machine: a picture of each routine, a panel for each size, a line for each MPI.

    A picture has fewer panels where all of them together would be more than a page can bear.
    """
    found: list[Chapter] = []
    for most in range(MOST_PANELS, 0, -1):
        found = [_chapter(measured, machine, strict, most) for machine in measured.machines]
        found = [chapter for chapter in found if chapter.pictures]
        if sum(len(p.panels) for chapter in found for p in chapter.pictures) <= MOST_ON_PAGE:
            break
    return found


def build_growth_tables(measured: PaperMeasurements) -> list[TextTable]:
    """Build a table for each machine of the growth of time over divisor from few to many processes."""
    return [table for machine in measured.machines if (table := _growth(measured, machine))]


def select_end_counts(counts: Sequence[int]) -> tuple[int, int] | None:
    """Select the first and the last of the sorted counts; one below ``LEAST`` only if there is no other."""
    large = [count for count in counts if count >= LEAST]
    chosen = large if len(large) > 1 else counts
    return (chosen[0], chosen[-1]) if len(chosen) > 1 else None


def _modelled(measured: PaperMeasurements) -> list[Operation]:
    return [operation for operation in measured.operations if operation.routine in MODELS]


def _counts(measured: PaperMeasurements, machine: str, operation: Operation) -> list[int]:
    """List the process counts of two and more at which some MPI has a time, if there are several."""
    counts = [count for count in measured.known(machine, operation) if count > 1]
    return counts if len(counts) > 1 else []


def _growth(measured: PaperMeasurements, machine: str) -> TextTable | None:
    environments = measured.environments_on(machine)
    rows = []
    for operation in _modelled(measured):
        limits = select_end_counts(_counts(measured, machine, operation))
        if limits is None:
            continue
        factors = [_factor(measured, machine, name, operation, limits) for name in environments]
        what = (operation.routine, Number(operation.size, operation.bytes))
        named: tuple[str, ...] = (*what, *measured.conditions(operation))
        span = f"{limits[0]} to {limits[1]}"
        rows.append((*named, format_divisor(operation.routine), span, *factors))
    title = f"Growth of time / divisor on {machine} (1.00: scales as the model says)"
    labels = ("routine", "size", *measured.varying, "divisor", "processes")
    if not rows:
        return None
    notes = ("growth: time / divisor at the most of these processes over that at the fewest",)
    about = (("machine", machine),)
    return TextTable(title, labels, tuple(environments), tuple(rows), notes, about)


def _factor(
    measured: PaperMeasurements, machine: str, environment: str, operation: Operation, limits: tuple[int, int]
) -> str:
    first, last = (
        _scaled(measured.time(machine, environment, operation, count), operation.routine, count)
        for count in limits
    )
    if first is None or last is None:
        return MISSING
    return write_ratio(last / first, quantity="growth", about={"mpi": environment})


def _scaled(time: float | None, routine: str, processes: int) -> float | None:
    return None if time is None else time / compute_divisor(routine, processes)


def _chapter(measured: PaperMeasurements, machine: str, strict: bool, most: int) -> Chapter:
    groups: dict[tuple[str, ...], list[Operation]] = {}
    for operation in _modelled(measured):
        if _counts(measured, machine, operation):
            about = (operation.routine, *measured.name_conditions(operation))
            groups.setdefault(about, []).append(operation)
    pictures = [
        _picture(measured, machine, title, operations, strict, most) for title, operations in groups.items()
    ]
    return Chapter(machine, 0, tuple(pictures))


def _picture(
    measured: PaperMeasurements,
    machine: str,
    title: Sequence[str],
    operations: Sequence[Operation],
    strict: bool,
    most: int,
) -> PanelPicture:
    chosen = thin_values(range(len(operations)), most)
    left_out = len(operations) - len(chosen)
    panels = [
        Panel(operations[n].size, "processes", _lines(measured, machine, operations[n], strict), scale=LINEAR)
        for n in chosen
    ]
    return PanelPicture(
        f"{', '.join(title)}: time / {format_divisor(title[0])}",
        f"{plural(left_out, 'further size')} not drawn" if left_out else "",
        tuple(panels),
    )


def _lines(
    measured: PaperMeasurements, machine: str, operation: Operation, strict: bool
) -> tuple[PanelLine, ...]:
    lines = []
    for style, name in enumerate(measured.environments):
        counts = [count for count in measured.planned(machine, name, operation) if count > 1]
        cells = [PaperCell(machine, name, operation, count) for count in counts]
        points = [_point(measured.results[c][0], measured.times[c], strict) for c in cells]
        if points:
            lines.append(PanelLine(name, style, tuple(points)))
    return tuple(lines)


def _point(result: CaseResult, time: float | None, strict: bool) -> Point:
    by = compute_divisor(result.case.routine, result.case.processes)
    limits = (result.band[0] / by, result.band[1] / by) if result.band else None
    failed = not result.counts_as_healthy(strict)
    return Point(result.case.processes, None if time is None else time / by, limits, failed)
