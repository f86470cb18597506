"""Let provisional references learn from nights: each adds its launches as a session, until there are ten.

Only what is inside its band tells how a healthy case differs, and only on a night without a finding, on a
machine that no other work disturbs. A case whose last sessions lie to one side teaches nothing either, so that
no center creeps. Each lesson is a file of the ledger; ``./plumbline references forget SESSION`` takes it back.
Reviewed references never learn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from postprocess.base.formats import parse_utc, plural
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.ledger import (
    CalibrationHeader,
    CalibrationLaunch,
    append_launches,
    collect_launches,
    read_ledger,
    restrict_launch,
)
from postprocess.calibration.losses import family_of
from postprocess.calibration.machine_load import BUSY_SHARE
from postprocess.calibration.samples import ConditionsNow, Now, count_outdated
from postprocess.calibration.update import update_references
from postprocess.judging.notes import assess_disturbance
from postprocess.judging.suspicion import SessionHistory, find_leaning
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch
from postprocess.model.plan import PlannedLaunch
from postprocess.model.reference import MOST_SESSIONS
from postprocess.model.session import Selection, Session
from postprocess.model.verdict import INSIDE, CaseResult
from postprocess.references.catalog import ReferenceCatalog
from postprocess.references.comparability import name_fact
from postprocess.session.lifecycle.context import SessionContext
from postprocess.stats.launches import is_same_place, locate_case


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

    :param causes: confirmed causes in common
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
    if assess_disturbance(lesson.results).busy:
        return "other work disturbed the machine"
    failed = sum(not result.counts_as_healthy(False) for result in lesson.results)
    if failed or causes:
        return f"{plural(failed, 'case')} failed" if failed else "many cases are slow together"
    return ""


def list_recent(ledger: Sequence[CalibrationLaunch]) -> set[str]:
    """List the cases whose last launch is so recent that this night is no session of its own."""
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
        found += [replace(restrict_launch(each, keys), learned=True) for each in some]
    return found


def lay_as_judged(finished: FinishedLaunch, result: CaseResult) -> bool:
    """Return whether the ranks of a launch lay as those of the reference that judged the case."""
    measured = finished.measurements.get(result.case.variable)
    return measured is not None and is_same_place(locate_case(measured.core_latency), result.core_latency)
