"""Trials, caches and libraries: table I of Luecke, Kraeva and Ju (2003), and what the papers' texts compare."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from postprocess.base.formats import NOT_PRINTED, TextTable, factor
from postprocess.extensions.papers import cells, measurements
from postprocess.extensions.papers.printed import History
from postprocess.model.routines.mpicost import EVICT, FLUSH
from postprocess.report.trial_selection import LaunchTrials

ALL, SEVEN = "all", "the paper's seven"
_POINT_TO_POINT, _SCATTERED = (8, 10_000, 1_000_000), (8, 1_000, 100_000)
#: Of the seven tests, with their sizes
SIZES = dict.fromkeys(("pingpong", "rightshift", "bcast", "reduce_sum"), _POINT_TO_POINT)
SIZES |= dict.fromkeys(("scatter", "gather", "alltoall"), _SCATTERED)
Trials = Mapping[str, Mapping[str, Sequence[LaunchTrials]]]  #: by session and the key of a case


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


def build_spread_table(measured: measurements.PaperMeasurements, trials: Trials, history: History) -> TextTable:
    """Build a row for each machine and MPI, and those in print; no row if no case has two trials that count."""
    groups: dict[tuple[measurements.Place, bool], list[tuple[str, LaunchSpread]]] = {}
    for cell, results in sorted(measured.results.items()):
        known = [trials.get(session, {}) for session in measured.sessions[cell.machine]]
        operation = cell.operation
        name = f"{f'{operation.routine} {operation.size}'.rstrip()}, p = {cell.processes}"
        of_seven = operation.bytes in SIZES.get(operation.routine, ())
        for launch in (launch for each in known for r in results for launch in each.get(r.case.key, ())):
            if spread := compute_spread(launch):
                for is_all in (False, True) if of_seven else (True,):
                    groups.setdefault((cell.place, is_all), []).append((name, spread))
    rows = [
        (*place.cells, ALL if is_all else SEVEN, *_format_group(groups[place, is_all]))
        for place, is_all in sorted(groups)
    ]
    return TextTable(
        "Table I: standard deviation of the filtered trials, and what the filter removes",
        (*measurements.LABELS, "tests"),
        (
            *("cases", "trials", "average", "maximum", "removed"),
            *("unfiltered / filtered", "most", "maximum of"),
        ),
        (*rows, *_printed_spreads(history)) if rows else (),
        (
            f"tests: {SEVEN}, at the sizes of Luecke, Kraeva and Ju (2003), as in print; or all that were "
            "measured",
            "cases: each in each of its launches; trials: of a launch, without the first and late ones",
            "average and maximum of their standard deviations over their means; removed: share of all trials "
            "but the first of each launch",
            "unfiltered / filtered: of the means, on average; most: the largest; maximum of: the case that "
            "has it",
            "in print: table I and section 2 of Luecke, Kraeva and Ju (2003), of one launch of each test",
        ),
    )


def _format_group(group: Sequence[tuple[str, LaunchSpread]]) -> tuple[str, ...]:
    spreads = [spread for _, spread in group]
    widest, largest = max(group, key=lambda each: each[1].deviation)
    removed = sum(each.removed for each in spreads) / sum(each.trials for each in spreads)
    factors = [each.unfiltered for each in spreads]
    average = float(np.mean([each.deviation for each in spreads]))
    fewest, most = (pick(each.trials for each in spreads) for pick in (min, max))
    return (
        cells.count(len(spreads)),
        cells.count(most) if fewest == most else cells.Number(f"{fewest} to {most}", fewest),
        *(cells.share(value, f"{value:.2%}") for value in (average, largest.deviation, removed)),
        *(cells.Number(f"{value:.3f}", value) for value in (float(np.mean(factors)), max(factors))),
        widest,
    )


def _printed_spreads(history: History) -> list[tuple[str, ...]]:
    """Return the two machines in print. Table I calls the Origin 3000 an Origin 2000."""
    told = {
        (figure.machine, figure.quantity): cells.share(figure.value / 100, f"{figure.value:.2f}%")
        for figure in history.figures
        if figure.paper == "Luecke 2003" and figure.routine == "all tests"
    }
    quantities = ("average_std_dev_filtered", "maximum_std_dev_filtered", "trials_removed_by_filter")
    return [
        (
            *(f"{machine} (in print)", "all", NOT_PRINTED, SEVEN, NOT_PRINTED, NOT_PRINTED),
            *(told[machine, quantity] for quantity in quantities),
            *[NOT_PRINTED] * 3,
        )
        for machine in dict.fromkeys(machine for machine, _ in told)
    ]


WARM = "warm"
COLD = (FLUSH, EVICT)


def build_cold_table(measured: measurements.PaperMeasurements, history: History) -> TextTable:
    """Build a row for each operation that an MPI has a warm time and a cold one of.

    They may be of several sessions; of several times the median counts.
    """
    found: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for cell in sorted(
        measured.results,
        key=lambda c: (c.machine, c.environment, measurements.operation_sort_key(c.operation), c.processes),
    ):
        time, operation = measured.times[cell], cell.operation
        if time is not None:
            about = (
                *(*measured.systems[cell.machine], cell.environment),
                *(operation.routine, operation.size),
                *(operation.sync, str(cell.processes)),
            )
            found.setdefault(about, {}).setdefault(operation.cache, []).append(time)
    return cells.build_grid(
        "Time with cold caches over that with warm ones",
        ("system", "partition", "MPI", "routine", "size", "sync", "processes"),
        (
            (about, {cold: _over_warm(times, cold) for cold in COLD if cold in times})
            for about, times in found.items()
            if WARM in times and len(times) > 1
        ),
        tuple(
            f"in print: {1 / figure.value:g} of {figure.routine} of {figure.bytes} B on the {figure.machine}, "
            f"{figure.processes} processes, flushed"
            for figure in history.figures
            if figure.quantity == "no_flush_over_flush_time"
        ),
        columns=COLD,
    )


def _over_warm(times: Mapping[str, Sequence[float]], cold: str) -> cells.Number:
    over = statistics.median(times[cold]) / statistics.median(times[WARM])
    return cells.ratio(over, quantity="cold over warm", about={"cache": cold})


def build_library_tables(measured: measurements.PaperMeasurements, basis: str | None = None) -> list[TextTable]:
    """Build a table for each machine with several MPIs: the time with each over that with ``basis``.

    None takes the first. A factor is the geometric mean over the process counts; in brackets the least and the
    most, as the paper has "about a factor of three".
    """
    return [_library_table(measured, machine, basis) for machine in measured.machines]


def _library_table(measured: measurements.PaperMeasurements, machine: str, basis: str | None) -> TextTable:
    environments = measured.environments_on(machine)
    chosen = basis if basis in environments else environments[0]
    others = [name for name in environments if name != chosen]
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for operation in measured.operations:
        ratios = {
            name: {
                count: ratio
                for count in measured.planned(machine, name, operation)
                if (ratio := measured.ratio(operation, count, (machine, name), (machine, chosen))) is not None
            }
            for name in others
        }
        if any(ratios.values()):
            counts = cells.span(sorted({count for each in ratios.values() for count in each}))
            about = (operation.routine, operation.size, *measured.conditions(operation), counts)
            rows[about] = {name: _format_factor([*each.values()], name) for name, each in ratios.items()}
    return cells.build_grid(
        f"{machine}: time over that with {chosen}",
        ("routine", "size", *measured.varying, "processes"),
        rows.items(),
        ("geometric mean over the process counts, and in brackets the least and the most",),
        (("machine", machine),),
    )


def _format_factor(ratios: Sequence[float], environment: str) -> str:
    if not ratios:
        return NOT_PRINTED
    mean, about = statistics.geometric_mean(ratios), {"mpi": environment}
    if len(ratios) == 1:
        return cells.ratio(mean, quantity="ratio", about=about)
    text = f"{factor(mean)} ({factor(min(ratios))} to {factor(max(ratios))})"
    ends = [
        cells.Number(text, value, quantity=f"{name} ratio", about=about)
        for name, value in (("least", min(ratios)), ("most", max(ratios)))
    ]
    return cells.Number(text, mean, quantity="mean ratio", about=about, more=ends)
