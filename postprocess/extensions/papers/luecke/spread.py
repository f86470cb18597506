"""How much trials spread and what the filter removes: table I of Luecke, Kraeva and Ju (2003), and its text."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from postprocess.base.formats import factor
from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.extensions.papers.common.data import Operation, PaperMeasurements
from postprocess.extensions.papers.common.numbers import Number, write_count, write_ratio, write_share
from postprocess.extensions.papers.common.printed import History
from postprocess.report.trial_selection import LaunchTrials

ALL, SEVEN = "all", "the paper's seven"
_POINT_TO_POINT, _SCATTERED = (8, 10_000, 1_000_000), (8, 1_000, 100_000)
#: Of the seven tests, with their sizes
SIZES = dict.fromkeys(("pingpong", "rightshift", "bcast", "reduce_sum"), _POINT_TO_POINT)
SIZES |= dict.fromkeys(("scatter", "gather", "alltoall"), _SCATTERED)


@dataclass(frozen=True)
class LaunchSpread:
    """One case in one launch; the first trial and late ones are left out of all."""

    deviation: float  #: sample standard deviation of the filtered trials over their mean
    trials: int
    removed: int  #: by the filter
    unfiltered: float  #: mean of all trials over that of the filtered ones


def compute_spread(launch: LaunchTrials) -> LaunchSpread | None:
    """Compute the spread of a launch; None of fewer than two trials that are kept."""
    masks = launch.masks()
    kept = launch.times[masks["kept"]]
    if kept.size < 2:
        return None
    every = launch.times[masks["kept"] | masks["spike"]]
    mean = float(np.mean(kept))
    return LaunchSpread(
        float(np.std(kept, ddof=1)) / mean,
        every.size,
        int(np.count_nonzero(masks["spike"])),
        float(np.mean(every)) / mean,
    )


def build_spread_table(
    measured: PaperMeasurements, trials: Mapping[str, Mapping[str, Sequence[LaunchTrials]]], history: History
) -> TextTable | None:
    """Build a row for each machine and MPI, and those in print; None where no case has two trials that count.

    ``trials``: by session and the key of the case.
    """
    groups: dict[tuple[str, ...], list[tuple[str, LaunchSpread]]] = {}
    for cell, results in sorted(measured.results.items()):
        known = [trials.get(session, {}) for session in measured.sessions[cell.machine]]
        operation = cell.operation
        what = f"{operation.routine} {operation.size}".rstrip()
        name = f"{what}, p = {cell.processes}"
        place = (cell.machine, cell.environment, f"{operation.cache}, {operation.sync}")
        tests = (ALL, SEVEN) if operation.bytes in SIZES.get(operation.routine, ()) else (ALL,)
        for launch in (launch for each in known for r in results for launch in each.get(r.case.key, ())):
            if spread := compute_spread(launch):
                for which in tests:
                    groups.setdefault((*place, which), []).append((name, spread))
    rows = [(*place, *_format_group(groups[place])) for place in sorted(groups, key=_order)]
    if not rows:
        return None
    return TextTable(
        "Table I: standard deviation of the filtered trials, and what the filter removes",
        ("machine", "MPI", "conditions", "tests"),
        (*("cases", "average", "maximum", "removed", "unfiltered / filtered", "most"), "maximum of"),
        (*rows, *_printed(history)),
        (
            f"tests: {SEVEN}, at the sizes of Luecke, Kraeva and Ju (2003), as in print; or all that were "
            "measured",
            "cases: each in each of its launches; average and maximum of their standard deviations over "
            "their means; removed: share of all trials but the first of each launch",
            "unfiltered / filtered: of the means, on average; most: the largest; maximum of: the case that "
            "has it",
            "in print: table I and section 2 of Luecke, Kraeva and Ju (2003), of one launch of each test",
        ),
    )


def _order(place: tuple[str, ...]) -> tuple[object, ...]:
    return (*place[:3], place[3] == ALL)


def _format_group(group: Sequence[tuple[str, LaunchSpread]]) -> tuple[str, ...]:
    spreads = [spread for _, spread in group]
    widest, largest = max(group, key=lambda each: each[1].deviation)
    removed = sum(each.removed for each in spreads) / sum(each.trials for each in spreads)
    factors = [each.unfiltered for each in spreads]
    average = float(np.mean([each.deviation for each in spreads]))
    return (
        write_count(len(spreads)),
        *(write_share(each, f"{each:.2%}") for each in (average, largest.deviation, removed)),
        *(Number(f"{each:.3f}", each) for each in (float(np.mean(factors)), max(factors))),
        widest,
    )


def _printed(history: History) -> list[tuple[str, ...]]:
    """Return the two machines in print. Table I calls the Origin 3000 an Origin 2000."""
    figures = {
        (figure.machine, figure.quantity): write_share(figure.value / 100, f"{figure.value:.2f}%")
        for figure in history.figures
        if figure.paper == "Luecke 2003" and figure.routine == "all tests"
    }
    quantities = ("average_std_dev_filtered", "maximum_std_dev_filtered", "trials_removed_by_filter")
    return [
        (
            *(f"{machine} (in print)", "all", NOT_PRINTED, SEVEN, NOT_PRINTED),
            *(figures[machine, quantity] for quantity in quantities),
            *[NOT_PRINTED] * 3,
        )
        for machine in dict.fromkeys(machine for machine, _ in figures)
    ]


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
                    ("geometric mean over the process counts, and in brackets the least and the most",),
                    (("machine", machine),),
                )
            )
    return tables


def _about(measured: PaperMeasurements, operation: Operation) -> tuple[str, ...]:
    size = Number(operation.size, operation.bytes)
    return (operation.routine, size, *measured.conditions(operation))


def _factors(
    measured: PaperMeasurements, machine: str, basis: str, others: list[str], operation: Operation
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
