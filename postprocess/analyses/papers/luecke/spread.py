"""How much trials spread and what the filter removes: table I of Luecke, Kraeva and Ju (2003), and its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from postprocess.analyses.papers.common.data import PaperMeasurements
from postprocess.analyses.papers.common.printed import History
from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.report.trial_selection import LaunchTrials


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
    groups: dict[tuple[str, str], list[tuple[str, LaunchSpread]]] = {}
    for cell, results in sorted(measured.results.items()):
        known = [trials.get(session, {}) for session in measured.sessions[cell.machine]]
        name = f"{cell.operation.routine} {cell.operation.size}, p = {cell.processes}"
        for launch in (
            launch for each in known for r in results for launch in each.get(r.case.key, ())
        ):
            if spread := compute_spread(launch):
                groups.setdefault((cell.machine, cell.environment), []).append((name, spread))
    rows = [(*place, *_format_group(group)) for place, group in groups.items()]
    if not rows:
        return None
    return TextTable(
        "Standard deviation of the filtered trials, and what the filter removes",
        ("machine", "MPI"),
        (
            "launches",
            "average",
            "maximum",
            "removed",
            "unfiltered / filtered",
            "most",
            "maximum of",
        ),
        (*rows, *_printed(history)),
        (
            "launches: of a case each; removed: share of all trials but the first of each launch",
            "in print: table I and section 2 of Luecke, Kraeva and Ju (2003), of one launch of each test",
        ),
    )


def _format_group(group: Sequence[tuple[str, LaunchSpread]]) -> tuple[str, ...]:
    spreads = [spread for _, spread in group]
    widest, largest = max(group, key=lambda each: each[1].deviation)
    removed = sum(each.removed for each in spreads) / sum(each.trials for each in spreads)
    factors = [each.unfiltered for each in spreads]
    return (
        str(len(spreads)),
        f"{np.mean([each.deviation for each in spreads]):.2%}",
        f"{largest.deviation:.2%}",
        f"{removed:.2%}",
        f"{np.mean(factors):.3f}",
        f"{max(factors):.3f}",
        widest,
    )


def _printed(history: History) -> list[tuple[str, ...]]:
    """Return the two machines in print. Table I calls the Origin 3000 an Origin 2000."""
    figures = {
        (each.machine.rpartition(": ")[2].rstrip("]"), each.quantity): f"{each.value:.2f}%"
        for each in history.figures
        if each.paper == "Luecke 2003" and each.routine == "all tests"
    }
    quantities = (
        "average_std_dev_filtered",
        "maximum_std_dev_filtered",
        "trials_removed_by_filter",
    )
    return [
        (
            *(f"{machine} (in print)", "all", NOT_PRINTED),
            *(figures[machine, quantity] for quantity in quantities),
            *[NOT_PRINTED] * 3,
        )
        for machine in dict.fromkeys(machine for machine, _ in figures)
    ]
