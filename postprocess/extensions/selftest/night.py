"""What every night of a self-test needs: it is measured, judged and looked at twice as ``nightly`` does it.

By the same functions. Its sessions are of mode ``selftest``: nothing of it counts elsewhere.
"""

from __future__ import annotations

import json
import math
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.base.formats import duration, parse_utc, plural
from postprocess.base.progress import Progress
from postprocess.calibration import ledger, update
from postprocess.extensions.selftest.data import CaseNight, FinishedNight, InjectionNight
from postprocess.judging.confirmation import confirm_slow_cases
from postprocess.judging.evaluate import evaluate_launches
from postprocess.model.case import Case
from postprocess.model.interposed import is_delayed
from postprocess.model.launch import FinishedLaunch
from postprocess.model.options import PLANTED
from postprocess.model.plan import PlannedLaunch, list_places, list_planned_cases, write_launch
from postprocess.model.reference import ENOUGH_LAUNCHES, Reference
from postprocess.model.session import Selection, Session
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog, load_catalog
from postprocess.runner.reframe import ReframeDriver
from postprocess.runner.reframe_pass import make_plan, run_plan
from postprocess.session.lifecycle.context import SessionContext
from postprocess.session.lifecycle.finish import store_trials
from postprocess.session.lifecycle.injections import EVERYTHING, IDLE, Injection, load_library
from postprocess.stats.detection import SLOW_TO_CONFIRM, compute_gross_distance, compute_scatter
from postprocess.stats.sessions import SESSION_GAP, SessionValue, predict_nights
from site_configs.schema.manual_settings import collect_manual_settings


@dataclass(frozen=True)
class SelftestDemand:
    """What the user asked for beyond a session's request."""

    directory: Path
    plants: Sequence[str]
    times: int  #: nights with each plant
    unchanged: int  #: nights
    launches: int  #: of its own calibration
    seed: int | None = None
    sessions: int = 1  #: bursts of its own calibration
    #: Minutes over which the nights are spread; 0: one after the other, and bursts too
    spread: float = 0.0


def take_references(bench: SelftestBench, planned: Sequence[PlannedLaunch], demand: SelftestDemand) -> str:
    """Give the bench references: its own, or those of an earlier self-test. Says where they are from.

    They are taken with the library of delays loaded and idle, as it is in every night.

    :raises UsageError: if those that were asked for by name are too few, or of launches without the library.
    """
    context, progress = bench.context, bench.context.progress
    if root := context.request.references:
        bench.catalog = load_catalog([root], list_places(planned))
        if has_enough_references(bench.catalog, planned, ENOUGH_LAUNCHES):
            return f"references in {root}, {describe_bursts(bench.catalog)}"
        raise UsageError(
            f"{root}: has not {ENOUGH_LAUNCHES} launches of each case with the idle library of delays; "
            "name the references of an earlier self-test, or leave --references out"
        )
    own = demand.directory / "references"
    bench.context = replace(context, request=replace(context.request, references=own))
    bench.catalog = load_catalog(bench.context.reference_roots, list_places(planned))
    if not has_enough_references(bench.catalog, planned, demand.launches):
        progress.say(
            f"calibrating with {plural(demand.launches, 'launch', 'es')} in "
            f"{plural(demand.sessions, 'burst')}, for this self-test only"
        )
        gap = 60 * max((launch.session_gap_minutes for launch in planned), default=0)
        calibrate_bench(bench, own, demand, gap)
        bench.catalog = load_catalog(bench.context.reference_roots, list_places(planned))
    return f"references of its own, {describe_bursts(bench.catalog)}"


def describe_bursts(catalog: ReferenceCatalog) -> str:
    """Describe of how many launches and sessions references are; of one burst they know no other hours.

    What counts is what a reference has in it: a launch of another build or a failed one is in none.
    """
    known = [reference for some in catalog.sets.values() for reference in some.references.values()]
    launches = plural(min((each.launches for each in known), default=0), "launch", "es")
    fewest = min((each.sessions for each in known), default=1)
    bursts = plural(fewest, "session") if fewest > 1 else "of one burst, which knows no other hours"
    return f"{launches}, {bursts}"


def has_enough_references(catalog: ReferenceCatalog, planned: Sequence[PlannedLaunch], launches: int) -> bool:
    """Return whether each case has a reference of enough launches without options set by hand.

    In a shell whose variables steer an MPI, with the same ones.
    """
    cases = list_planned_cases(planned)
    found = [catalog.reference(case) for case in cases]
    many = all(reference is not None and reference.launches >= launches for reference in found)
    return many and not any(
        has_other_settings(catalog, launch, case) for launch in planned for case in launch.all_cases
    )


def has_other_settings(catalog: ReferenceCatalog, launch: PlannedLaunch, case: Case) -> bool:
    """Return whether other options were set by hand for the launches behind a reference."""
    reference_set = catalog.find_set(case)
    return bool(reference_set and reference_set.options_of(case) != launch.by_hand)


def calibrate_bench(bench: SelftestBench, root: Path, demand: SelftestDemand, gap: float = SESSION_GAP) -> None:
    """Measure references of the self-test's own, the library idle. Bursts that are there already count.

    Their launches are in a ledger in the self-test's own folder.

    :param gap: seconds between two bursts, if time is given
    """
    idle = bench.planting(())
    taken = ledger.read_ledger(demand.directory)
    done = len({launch.session for launch in taken})
    for burst in range(done, demand.sessions):
        if taken and demand.spread:
            last = max(parse_utc(launch.ended_utc).timestamp() for launch in taken)
            pause(last + gap + 1 - time.time(), "the next burst", bench.context.progress)
        launches = share_evenly(demand.launches, demand.sessions)[burst]
        with bench.context.progress.phase("calibration"):
            session, _, finished = bench.measure(bench.context, replace(idle, launches=launches))
        opened = ledger.CalibrationHeader(session.name, bench.libraries, shell=idle.shell)
        new = ledger.collect_launches(opened, session.directory, finished)
        ledger.append_launches(demand.directory, session.name, new)
        taken += new
    update.update_references(root, taken, None)


def share_evenly(number: int, parts: int) -> list[int]:
    """Divide a number evenly into parts, the larger ones first."""
    return [number // parts + (part < number % parts) for part in range(parts)]


def pause(seconds: float, until: str, progress: Progress) -> None:
    """Wait, and say for what; not if the time has passed already."""
    if seconds > 0:
        progress.say(f"a pause of {duration(seconds)} before {until}")
        time.sleep(seconds)


MODE = "selftest"
RECORDS = "--output="  #: option of mpicost that names the file of its records


@dataclass
class SelftestBench:
    """What every night of a self-test needs."""

    context: SessionContext
    selection: Selection
    catalog: ReferenceCatalog = field(default_factory=ReferenceCatalog)
    #: Plans by what was selected: what one dry run has planned, later sessions need not ask for again.
    plans: dict[str, list[PlannedLaunch]] = field(default_factory=dict)
    #: Where mpicost is installed, by environment; the library of delays is loaded from there into every launch
    prefixes: dict[str, Path] = field(default_factory=dict)

    def measure(
        self, context: SessionContext, selection: Selection
    ) -> tuple[Session, list[PlannedLaunch], list[FinishedLaunch]]:
        session, reframe = context.open_session(MODE)
        planned = self.planned(reframe, selection)
        return session, planned, run_plan(reframe, selection, planned, context.progress).finished

    def planned(self, reframe: ReframeDriver, selection: Selection) -> list[PlannedLaunch]:
        """Return the plan of a session, written down as the checks write it.

        Of one that is known from another session, the launches are new: each has its own token and records.
        """
        environments = selection.choice.get(PLANTED, ())
        choice = {name: value for name, value in selection.choice.items() if name != PLANTED}
        key = json.dumps([choice, list(selection.environments), selection.launches], sort_keys=True)
        if key not in self.plans:
            self.plans[key] = make_plan(reframe, selection)
        planned = [
            replace(
                plan,
                options=tuple(
                    f"{RECORDS}{plan.records(reframe.session)}" if word.startswith(RECORDS) else word
                    for word in plan.options
                ),
                token=secrets.token_hex(16),
                planted=plan.environment in environments,
                by_hand=self.settings(selection, plan.environment),
            )
            for plan in self.plans[key]
        ]
        for launch in planned:
            write_launch(reframe.session, launch)
        return planned

    def night(self, night: InjectionNight) -> FinishedNight:
        begin = time.monotonic()
        context = self.context.quiet
        selection = self.planting(night.plantings)
        session, _, finished = self.measure(context, selection)
        first = self.judged(finished)
        again: list[FinishedLaunch] = []

        def measure(chosen: Selection) -> Sequence[FinishedLaunch]:
            fresh_session, _, fresh = self.measure(context, chosen)
            store_trials(context.work, fresh_session, fresh, self.judged(fresh))
            again.extend(fresh)
            return fresh

        last = confirm_slow_cases(first, finished, self.catalog, selection, measure, context.progress).results
        store_trials(context.work, session, finished, last)
        rows = self.rows(night, first, last, finished, again)
        seconds = round(time.monotonic() - begin, 1)
        return FinishedNight(night.number, session.name, seconds, tuple(context.progress.notes), tuple(rows))

    def judged(self, finished: Sequence[FinishedLaunch]) -> list[CaseResult]:
        return evaluate_launches(finished, self.catalog, self.context.request.site)

    @property
    def libraries(self) -> dict[str, dict[str, str]]:
        """What loads the library of delays, by environment.

        It counts as set by hand: no other night is held against references that were taken with it.
        """
        return {name: load_library(prefix) for name, prefix in self.prefixes.items()}

    def settings(self, selection: Selection, environment: str) -> dict[str, Any]:
        """Return what counts as set by hand for a launch."""
        return collect_manual_settings(self.libraries, selection.oversubscribe, environment, selection.shell)

    def planting(self, plantings: Sequence[Injection]) -> Selection:
        """Return the selection of a night, with its injections; the library is idle elsewhere."""
        idle = [Injection(name, IDLE.name, EVERYTHING) for name in self.prefixes]
        set_env = {
            injection.environment: injection.variables(self.prefixes[injection.environment])
            for injection in (*idle, *plantings)
        }
        choice = self.selection.choice | {PLANTED: sorted(set_env)}
        return replace(self.selection, choice=choice, set_env=set_env)

    def rows(
        self,
        night: InjectionNight,
        first: Sequence[CaseResult],
        last: Sequence[CaseResult],
        finished: Sequence[FinishedLaunch],
        again: Sequence[FinishedLaunch],
    ) -> list[CaseNight]:
        plantings = {injection.environment: injection for injection in night.plantings}
        delayed = find_delayed_environments(finished)
        before = {each.case: each.verdict for each in first}
        rows = []
        for result in last:
            if result.verdict == Verdict.SKIPPED:
                continue
            case, planting = result.case, plantings.get(result.case.environment)
            reference = self.catalog.reference(case, result.core_latency)
            median_of = max(result.launches, 1)
            heard = (run.measurements.get(case.variable) for run in again if case in run.launch.cases)
            rows.append(
                CaseNight(
                    key=case.key,
                    environment=case.environment,
                    routine=case.routine,
                    plant=planting.plant if planting else "",
                    of=planting.routine if planting else "",
                    target=bool(planting and planting.slows(case)),
                    delayed=case.environment in delayed,
                    verdict=str(result.verdict),
                    first=str(before[case]),
                    value=result.value,
                    median=result.summary.median if result.summary else None,
                    reference=result.reference,
                    upper=result.band[1] if result.band else None,
                    launches=result.reference_launches,
                    common=bool(result.cause),
                    median_of=median_of,
                    cause=result.cause,
                    again=tuple(measurement.value for measurement in heard if measurement),
                    **tell_limits(reference, median_of),
                )
            )
        return rows


def tell_limits(reference: Reference | None, median_of: int) -> dict[str, Any]:
    """Tell what band and call limit of a case in one night rest on, as columns of its row."""
    scatter = compute_scatter(reference, median_of) if reference else None
    if reference is None or scatter is None:
        return {"spread": None, "degrees": None}
    fresh = SessionValue(0.0, SLOW_TO_CONFIRM * median_of)  # what confirms
    predicted = predict_nights(reference, [fresh])
    distance = compute_gross_distance(reference, fresh.launches)
    return {
        "spread": scatter.deviation,
        "degrees": scatter.degrees,
        "call": reference.center * math.exp(distance),
        "call_deviation": predicted.deviation,
        "call_degrees": predicted.degrees,
    }


def find_delayed_environments(finished: Sequence[FinishedLaunch]) -> set[str]:
    launches = Counter(run.launch.environment for run in finished)
    delayed = Counter(launched.launch.environment for launched in finished if is_delayed(launched.run))
    return {name for name, number in delayed.items() if 2 * number > launches[name]}
