"""Try the settings by which an MPI chooses its algorithms, for the operations that lose; measure what they do.

First every setting is launched a few times beside the usual ones; of each operation the one that looked best is
then measured anew, so that it does not profit from having been chosen.
"""

from __future__ import annotations

import math
import shlex
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from postprocess.base.formats import plural
from postprocess.features.guidelines.judge import (
    JudgedGuideline,
    JudgedOverride,
    LaunchTimes,
    OverrideSeries,
    Place,
    extract_times,
    judge_overrides,
    list_losers,
    select_violated,
)
from postprocess.features.guidelines.overrides import Override, list_overrides, merge_overrides
from postprocess.judging.evaluate import evaluate_flagged
from postprocess.model.options import (
    BYTES,
    PARTITION,
    PER_NODE,
    PROCESSES,
    ROUNDS,
    ROUTINE,
    VARIANTS,
)
from postprocess.model.routines.guidelines import Measured
from postprocess.model.session import Selection
from postprocess.model.verdict import FAILED_LAUNCH, Verdict
from postprocess.session.lifecycle.context import SessionContext, measure_in_new_session
from postprocess.session.lifecycle.finish import store_trials

MODE = "guidelines"
LOOKING = 2  #: rounds in which all settings are launched, to choose from them
LEAST_GAIN = 1.05  #: factor by which a setting must look faster to be measured anew


@dataclass(frozen=True)
class OverrideBench:
    """What every pass of the trials needs."""

    context: SessionContext
    selection: Selection
    launches: int  #: in which a setting that looked good is measured anew

    def try_all(
        self, judged: Sequence[JudgedGuideline], launches: Sequence[LaunchTimes]
    ) -> list[JudgedOverride]:
        """Try the settings for every operation that lost, place by place; their effect, judged together."""
        libraries = {times.place: times.library for times in launches}
        exact = any(times.exact for times in launches)
        series: list[OverrideSeries] = []
        for place, operations in list_losers(select_violated(judged)).items():
            candidates = {
                operation: list_overrides(libraries[place], operation.routine)
                for operation in operations
            }
            series += self.try_place(place, candidates)
        return judge_overrides(series, exact)

    def try_place(
        self, place: Place, candidates: Mapping[Measured, Sequence[Override]]
    ) -> list[OverrideSeries]:
        """Try the settings of one place. Operations without one that looked good have no values."""
        progress = self.context.progress
        most = max(map(len, candidates.values()), default=0)
        progress.say(
            f"{place}: {plural(most, 'setting')} for {plural(len(candidates), 'operation')}"
        )
        by_routine = {each.routine: list(found) for each, found in candidates.items()}
        looked = self.measure(place, list(candidates), by_routine, LOOKING)
        best = {each: choose_best(each, looked, found) for each, found in candidates.items()}
        chosen: dict[str, list[Override]] = {}
        for each, override in best.items():
            if override and override not in chosen.setdefault(each.routine, []):
                chosen[each.routine].append(override)
        measured = self.measure(place, [each for each in best if best[each]], chosen, self.launches)
        return [
            OverrideSeries(
                place,
                each,
                override.name if override else "",
                override.variables if override else {},
                len(candidates[each]),
                tuple(list_gains(each, override, measured)) if override else (),
            )
            for each, override in best.items()
        ]

    def measure(
        self,
        place: Place,
        operations: Sequence[Measured],
        overrides: Mapping[str, Sequence[Override]],
        rounds: int,
    ) -> list[tuple[int, Sequence[Override], LaunchTimes]]:
        """Measure operations in rounds: as they are, and with the overrides of all routines in turn.

        Returns round, overrides in force and times of each launch. The n-th overrides of all routines are in
        force together: none of them changes another routine's algorithm.
        """
        deep = max(map(len, overrides.values()), default=0)
        if not deep:
            return []
        settings = [
            [override[n] for override in overrides.values() if n < len(override)]
            for n in range(deep)
        ]
        named = {f"setting{n + 1}": each for n, each in enumerate(settings)}
        variants = [
            {"name": name, "variables": merge_overrides(each)} for name, each in named.items()
        ]
        choice = {
            **self.selection.choice,
            ROUNDS: rounds,
            VARIANTS: variants,
            ROUTINE.variable: sorted({measured.routine for measured in operations}),
            PARTITION.variable: [place.partition.partition(":")[2]],
            PROCESSES.variable: [place.processes],
            PER_NODE.variable: [place.per_node],
        }
        choice.pop(BYTES.variable, None)
        if sizes := sorted({measured.bytes for measured in operations if measured.bytes}):
            choice[BYTES.variable] = sizes
        selection = replace(self.selection, environments=[place.environment], choice=choice)
        session, _, done = measure_in_new_session(self.context, MODE, "overrides", selection)
        again = shlex.join(self.context.request.command)
        results = evaluate_flagged(done.finished, lambda _: None, Verdict.INCORRECT, again)
        store_trials(self.context.work, session, done.finished, results)
        failed = [run for run in done.finished if run.outcome.verdict in FAILED_LAUNCH]
        if failed:
            names = sorted({run.launch.start for run in failed})
            tried = [over.name for name in names for over in named.get(name, ())]
            what = ", ".join(tried) or "no setting"
            count = plural(len(failed), "launch", "es")
            self.context.progress.note(f"{place}: {count} failed with {what}")
        return [
            ((times.number - 1) // (1 + len(named)), named.get(times.setting, ()), times)
            for times in extract_times(done.finished)
        ]


def choose_best(
    operation: Measured,
    looked: Sequence[tuple[int, Sequence[Override], LaunchTimes]],
    candidates: Iterable[Override],
) -> Override | None:
    """Choose the override that looked best for an operation; None if none looked good."""
    gains = {override.name: list_gains(operation, override, looked) for override in candidates}
    found = {
        override: statistics.median(gains[override.name])
        for override in candidates
        if gains[override.name]
    }
    best = max(found, key=lambda each: found[each], default=None)
    return best if best and found[best] > math.log(LEAST_GAIN) else None


def list_gains(
    operation: Measured,
    override: Override,
    measured: Sequence[tuple[int, Sequence[Override], LaunchTimes]],
) -> list[float]:
    """List ln(without / with) an override, of each round that has both."""
    usual = {number: each.times.get(operation) for number, force, each in measured if not force}
    found = []
    for number, force, each in sorted(measured, key=lambda one: one[0]):
        time, other = each.times.get(operation), usual.get(number)
        if override in force and time and other:
            found.append(math.log(other / time))
    return found
