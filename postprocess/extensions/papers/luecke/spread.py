"""How much trials spread and what the filter removes: table I of Luecke, Kraeva and Ju (2003), and its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.extensions.papers.common.data import PaperMeasurements
from postprocess.extensions.papers.common.numbers import Number, write_count, write_share
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
    measured: PaperMeasurements,
    trials: Mapping[str, Mapping[str, Sequence[LaunchTrials]]],
    history: History,
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
        for launch in (
            launch for each in known for r in results for launch in each.get(r.case.key, ())
        ):
            if spread := compute_spread(launch):
                for which in tests:
                    groups.setdefault((*place, which), []).append((name, spread))
    rows = [(*place, *_format_group(groups[place])) for place in sorted(groups, key=_order)]
    if not rows:
        return None
    return TextTable(
        "Table I: standard deviation of the filtered trials, and what the filter removes",
        ("machine", "MPI", "conditions", "tests"),
        (
            *("cases", "average", "maximum", "removed", "unfiltered / filtered", "most"),
            "maximum of",
        ),
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
    quantities = (
        "average_std_dev_filtered",
        "maximum_std_dev_filtered",
        "trials_removed_by_filter",
    )
    return [
        (
            *(f"{machine} (in print)", "all", NOT_PRINTED, SEVEN, NOT_PRINTED),
            *(figures[machine, quantity] for quantity in quantities),
            *[NOT_PRINTED] * 3,
        )
        for machine in dict.fromkeys(machine for machine, _ in figures)
    ]
