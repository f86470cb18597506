"""What references take from launches: of calibrations, whose end is told here, and of nights.

Only what is inside its band tells how a healthy case differs, and only on a night without a finding, on a
machine that no other work disturbs. A case whose last sessions lie to one side teaches nothing either, so that
no center creeps. Each lesson is a file of the ledger; ``./plumbline references forget SESSION`` takes it back.
Reviewed references never learn.
"""

import os
import shlex
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from postprocess.base.formats import parse_utc, plural
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration import losses
from postprocess.calibration.ledger import (
    CalibrationHeader,
    CalibrationLaunch,
    append_launches,
    collect_launches,
    read_ledger,
    restrict_launch,
)
from postprocess.calibration.losses import family_of
from postprocess.calibration.machine_load import BUSY_SHARE, is_disturbed
from postprocess.calibration.samples import ConditionsNow, Now, count_outdated, describe_places, find_excluded
from postprocess.calibration.schedule import CalibrationProgress, PassResult, plan_part_of
from postprocess.calibration.update import describe_absorbed, update_references
from postprocess.judging.evaluate import evaluate_launches
from postprocess.judging.notes import assess_disturbance, describe_interposed_libraries, describe_shell_effects
from postprocess.judging.suspicion import SessionHistory, find_leaning
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch
from postprocess.model.plan import PlannedLaunch, list_places
from postprocess.model.reference import MOST_SESSIONS
from postprocess.model.session import Selection, Session
from postprocess.model.verdict import INSIDE, CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog, load_catalog
from postprocess.references.comparability import name_fact
from postprocess.session.lifecycle.context import SessionContext, list_prefixes
from postprocess.session.lifecycle.finish import build_session_summary, show_parts
from postprocess.stats.band import is_blind
from postprocess.stats.launches import is_same_place, locate_case


def conclude_calibration(
    context: SessionContext,
    root: Path,
    planned: Sequence[PlannedLaunch],
    passes: Sequence[PassResult],
    tally: CalibrationProgress,
    ledger: Sequence[CalibrationLaunch],
) -> int:
    """Say what came of all passes of a calibration, and show their verdicts in one table; the exit status.

    It is 0 if each case has a reference that judges, though fewer launches may count than were wanted.
    """
    progress, request = context.progress, context.request
    lost = [*list_all_lost(passes), *list_excluded_passes(passes, ledger)]
    places = describe_places(launch for done in passes for launch in done.launches)
    prefixes = list_prefixes(context.prepared.inventory)
    for line in [
        *losses.describe_losses(lost, list_finished(passes)),
        *describe_staying(passes),
        *describe_other_work(passes),
        *places,
        *describe_interposed_libraries(list_finished(passes)),
        *describe_shell_effects(list_finished(passes), os.environ, prefixes),
    ]:
        progress.note(line)
    for path in dict.fromkeys(path for done in passes for path in done.files):
        progress.say_whole(f"references: {path}")
    catalog = load_catalog([root, *context.reference_roots], list_places(planned))
    wrong = str(Verdict.INCORRECT)  # is not made good by right data
    finished = {done.session: done.finished for done in passes}
    counted = losses.restrict_to_counted(finished, [each for each in lost if each.loss.kind != wrong])
    judged = evaluate_launches(counted, catalog, request.site, request.rerun_options, calibrating=True)
    again = shlex.join(request.command)
    results = [replace(refuse_useless(each, tally, catalog), rerun=again) for each in judged]
    unusable = [result for result in results if not result.counts_as_healthy(False)]
    if unusable:
        what = f"{plural(len(unusable), 'case')} could not be calibrated"
        progress.note(f"{what}: mend what is said of them, and run the same command again")
    elif tally.lacking and not tally.failed:
        progress.say("each case has a usable reference all the same")
    status = int(bool(unusable or tally.failed or progress.faults))
    last = context.work.sessions / passes[-1].session
    session = Session(last, request.mode, request.site, request.command, request.strict)
    summary = build_session_summary(context, session, list_finished(passes), results, status)
    show_parts(context, [done.page for done in passes if done.page], summary)
    return status


def list_finished(passes: Sequence[PassResult]) -> list[FinishedLaunch]:
    """List all launches of several passes."""
    return [run for done in passes for run in done.finished]


def list_all_lost(passes: Sequence[PassResult]) -> list[losses.LostLaunch]:
    """List the launches of several passes that do not count."""
    return [launch for done in passes for launch in losses.list_lost(done.session, done.finished)]


def list_excluded_passes(
    passes: Sequence[PassResult], ledger: Sequence[CalibrationLaunch]
) -> Iterator[losses.LostLaunch]:
    """List the launches of passes that do not count any more, since later ones ran under other conditions."""
    excluded: dict[tuple[str, losses.Family], str] = {}
    for each, differing in find_excluded(ledger):
        place = each.place
        family = f"{place.system}:{place.partition}", place.environment, each.program
        excluded[each.session, family] = ", ".join(map(name_fact, differing))
    for done in passes:
        for run in done.finished:
            family = losses.family_of(run.launch)
            if what := excluded.get((done.session, family)):
                loss = losses.Loss(f"later ones had another {what}")
                cases = frozenset(run.launch.cases)
                yield losses.LostLaunch(done.session, run.launch.name, family, loss, cases, whole=True)


def describe_staying(passes: Sequence[PassResult]) -> Iterator[str]:
    """Describe why references stay as they were, by the last pass over each part of the plan."""
    notes: dict[losses.Family, str] = {}
    held: dict[Case, float] = {}
    for done in passes:
        parts = {losses.family_of(run.launch) for run in done.finished}
        notes = {family: line for family, line in notes.items() if family not in parts} | dict(done.notes)
        held = {case: by for case, by in held.items() if plan_part_of(case) not in parts} | dict(done.held)
    yield from (line for _, line in sorted(notes.items()))
    if held:
        yield describe_absorbed(held)


def describe_other_work(passes: Sequence[PassResult]) -> Iterator[str]:
    """Describe that references see less than they could, since other processes used the machine."""
    shares = [launch.others or 0.0 for done in passes for launch in done.launches]
    if shares and is_disturbed(others := statistics.median(shares)):
        yield (
            f"other processes used {others:.0%} of the machine during the calibration: its references see less "
            "than they could; calibrate --afresh on the idle machine makes better ones"
        )


def refuse_useless(result: CaseResult, tally: CalibrationProgress, catalog: ReferenceCatalog) -> CaseResult:
    """Return a result; ``incomplete`` of a case of which no launch counts, or too few to judge anything.

    A single launch is enough where no more were asked for.
    """
    if not result.counts_as_healthy(False):
        return result
    if result.case in tally.uncounted:
        return replace(result, verdict=Verdict.INCOMPLETE, reason="none of its launches counts")
    reference = catalog.reference(result.case)
    if plan_part_of(result.case) in tally.lacking and reference and is_blind(reference):
        reason = f"{plural(reference.launches, 'launch', 'es')} counted, by which nothing can be judged"
        return replace(result, verdict=Verdict.INCOMPLETE, reason=reason)
    return result


def read_comparable_launches(work: Path, selection: Selection) -> list[CalibrationLaunch]:
    """Read the launches of the ledger that had the same options set by hand."""
    chosen = selection
    asked = CalibrationHeader("", chosen.set_env, chosen.oversubscribe, shell=chosen.shell)
    return [
        launch
        for launch in read_ledger(work)
        if launch.by_hand == asked.by_hand(launch.place.environment, launch.exact)
    ]


def find_conditions_now(context: SessionContext) -> Now:
    """Find how launches run now, by the starts that proved by which transports they talk."""
    return {
        place: ConditionsNow(
            run.launch.program,
            run.conditions,
            {
                pairs: tuple(map(str, paths))
                for (*where, pairs), paths in context.heard.items()
                if tuple(where) == place and paths
            },
        )
        for place, run in context.proven.items()
    }


def describe_outdated(context: SessionContext, planned: Iterable[PlannedLaunch], now: Now) -> Iterator[str]:
    """Describe how many earlier launches of a plan ran otherwise than launches run now, and do not count."""
    families = {family_of(launch) for launch in planned}
    launches = read_comparable_launches(context.work.root, context.request.selection)
    for each in count_outdated(launches, now):
        family = f"{each.place.system}:{each.place.partition}", each.place.environment, each.program
        if family in families:
            count = plural(each.launches, "earlier launch", "es")
            verb = "does" if each.launches == 1 else "do"
            differing = ", ".join(map(name_fact, each.differing))
            yield f"{', '.join(family)}: {count} {verb} not count: another {differing}"


@dataclass(frozen=True)
class Lesson:
    """A night that references may learn from."""

    session: Session
    selection: Selection
    finished: Sequence[FinishedLaunch]
    results: Sequence[CaseResult]
    catalog: ReferenceCatalog
    history: SessionHistory


def learn_night(work: WorkDirectory, lesson: Lesson, causes: Sequence[str], others: float | None) -> str:
    """Add what a night measured of well cases to their provisional references; return what to note of it.

    :param others: share of the machine, from 0 to 1, that other work used; None where it is not known
    """
    open_cases = select_learning(work, lesson)
    if not open_cases:
        return ""
    if why := refuse_lesson(lesson, causes, others):
        return f"references learn nothing from this night: {why}"
    leaning = find_leaning(
        [result for result in lesson.results if result.case in open_cases], lesson.history, lesson.catalog
    )
    wanted = {case: each for case, each in open_cases.items() if case not in leaning}
    ledger = read_comparable_launches(work.root, lesson.selection)
    recent = list_recent(ledger)
    wanted = {case: each for case, each in wanted.items() if case.key not in recent}
    kept = [launch for launch in collect_well_launches(lesson, wanted) if launch.values]
    if not kept:
        return ""
    append_launches(work.root, lesson.session.name, kept)
    told = {Case.from_key(key) for launch in kept for key in launch.values}
    update_references(work.provisional, [*ledger, *kept], told)
    left = f"; {plural(len(leaning), 'case')} lean to one side and teach nothing" if leaning else ""
    return (
        f"references of {plural(len(told), 'case')} learn from this night as one of "
        f"{MOST_SESSIONS} sessions{left}; "
        f"./plumbline references forget {lesson.session.name} takes it back"
    )


def select_learning(work: WorkDirectory, lesson: Lesson) -> dict[Case, CaseResult]:
    """Select the cases that were well, by provisional references that still learn."""
    found = {}
    for result in lesson.results:
        known = lesson.catalog.find_set(result.case)
        reference = lesson.catalog.reference(result.case, result.core_latency)
        if known is None or reference is None or reference.exact or result.elsewhere:
            continue
        own = work.provisional in known.path.parents
        judged = result.verdict in INSIDE and result.band is not None and not result.beyond
        if own and judged and not result.slow_headline and reference.sessions < MOST_SESSIONS:
            found[result.case] = result
    return found


def refuse_lesson(lesson: Lesson, causes: Sequence[str], others: float | None) -> str:
    """Say why nothing is learned from a night; empty if something is."""
    if others is not None and others > BUSY_SHARE:
        return f"other processes used {others:.0%} of the machine"
    if assess_disturbance(lesson.results).widespread:
        return "other work disturbed the machine"
    failed = sum(not result.counts_as_healthy(False) for result in lesson.results)
    if failed or causes:
        return f"{plural(failed, 'case')} failed" if failed else "many cases are slow together"
    return ""


def list_recent(ledger: Sequence[CalibrationLaunch]) -> set[str]:
    """List the cases whose last launch is so recent that this night is not a session of its own."""
    now = datetime.now(timezone.utc)
    found: set[str] = set()
    for launch in ledger:
        gap = timedelta(minutes=launch.session_gap_minutes)
        if now - parse_utc(launch.ended_utc) < gap:
            found |= launch.values.keys()
    return found


def collect_well_launches(lesson: Lesson, wanted: dict[Case, CaseResult]) -> list[CalibrationLaunch]:
    """Collect the launches of these cases whose ranks lay where they were judged, as entries of the ledger."""
    selection = lesson.selection
    opened = CalibrationHeader(
        lesson.session.name, selection.set_env, selection.oversubscribe, shell=selection.shell
    )
    found = []
    for finished in lesson.finished:
        keys = {
            case.key
            for case in finished.launch.cases
            if case in wanted and lay_as_judged(finished, wanted[case])
        }
        some = collect_launches(opened, lesson.session.directory, [finished]) if keys else []
        found += [replace(restrict_launch(launch, keys), learned=True) for launch in some]
    return found


def lay_as_judged(finished: FinishedLaunch, result: CaseResult) -> bool:
    """Return whether the ranks of a launch lay as those of the reference that judged the case."""
    measured = finished.measurements.get(result.case.variable)
    return measured is not None and is_same_place(locate_case(measured.core_latency), result.core_latency)
