"""Calibrations: what a user asks for, and what a night needs that knows no references yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.formats import duration, plural
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration import ledger, regression_guard, update
from postprocess.calibration.ledger import Taken
from postprocess.calibration.machine_load import kept_busy, watch
from postprocess.calibration.recovery import gather
from postprocess.calibration.rounds import Demand, Family
from postprocess.calibration.samples import samples
from postprocess.calibration.schedule import Done, calibrate_all, family
from postprocess.judging.evaluate import verdicts
from postprocess.model.case import Case, LaunchPlace
from postprocess.model.mpicost import AUTOMATIC_LAUNCHES
from postprocess.model.options import PROCESSES, PROGRAM
from postprocess.model.plan import PlannedLaunch, places, planned_cases
from postprocess.model.session import Request, Selection
from postprocess.model.verdict import CaseResult
from postprocess.references.catalog import ReferenceBook, open_book
from postprocess.results.launch_costs import (
    WholeLaunch,
    cost_of,
    estimate,
    jobs,
    where,
    whole_launches,
)
from postprocess.runner.reframe_pass import look_at_plan
from postprocess.session.context import Desk, measure_in, open_desk, say_plan
from postprocess.session.finish import keep
from postprocess.stats.trial_allocation import Cost, fitting
from site_configs.schema.manual_settings import gives_way


def calibration(work: WorkDirectory, request: Request, progress: Progress, demand: Demand) -> int:
    """Measure references because the user asks for it. Returns the exit status."""
    with work.held():
        desk = open_desk(work, request, progress)
        root = request.references or work.provisional
        _, reframe = desk.open_session("list")
        with progress.phase("set-up"):
            planned = look_at_plan(reframe, request.selection)
        say_plan(planned, progress)
        demand = affordable(work, planned, demand, progress)
        refuse_busy(desk, planned)
        run = partial(calibrate, desk, root, None, take=demand.take or demand.afresh)
        read = partial(taken_alike, work.root, request.selection)
        return calibrate_all(planned, request.selection, demand, read, run, progress)


def refuse_busy(desk: Desk, planned: Sequence[PlannedLaunch]) -> None:
    """Refuse to calibrate on a machine that other processes use.

    :raises UsageError: if they are still busy after a minute
    """
    if share := 0.0 if desk.request.beside_others else others(desk, planned):
        raise UsageError(
            f"machine is {share:.0%} busy with other processes; calibrate on an idle machine, or pass "
            "--beside-others"
        )


def others(desk: Desk, planned: Iterable[PlannedLaunch]) -> float:
    """Share of this machine, from 0 to 1, that others use; 0 if that does not matter.

    It does where launches run on this machine, and not in simulated time.
    """
    here = desk.prepared.inventory and not all(each.exact for each in planned)
    return kept_busy(desk.progress) if here else 0.0


def taken_alike(work: Path, selection: Selection) -> list[Taken]:
    """The launches of the ledger that had the same set by hand; as a rule nothing."""
    chosen = selection
    asked = ledger.Opened("", chosen.set_env, chosen.oversubscribe, shell=chosen.shell)
    return [
        each
        for each in ledger.read(work)
        if each.by_hand == asked.by_hand(each.place.environment, each.exact)
    ]


def calibrate_unknown(
    desk: Desk, planned: Sequence[PlannedLaunch], book: ReferenceBook
) -> ReferenceBook:
    """Calibrate the cases of environments that have no reviewed references; the book with them.

    An environment with a reviewed file keeps its gaps: they are ``no-reference``, and loud. A reference that
    was made with options by hand is none for launches without: it is measured again.
    """
    reviewed = {
        place
        for place, shelf in book.shelves.items()
        if desk.work.provisional not in shelf.path.parents
    }
    unknown = [
        launch
        for launch in planned
        if (launch.partition, launch.environment) not in reviewed
        and any(is_unknown(book, launch, case) for case in launch.cases)
    ]
    if unknown and (share := others(desk, unknown)):
        unknown = [launch for launch in unknown if launch.exact]
        desk.progress.note(
            f"machine is {share:.0%} busy with other processes: cases without a reference are not "
            "calibrated; run ./plumbline calibrate on the idle machine"
        )
    if not unknown:
        return book
    for launches in sorted({automatic_launches(launch) for launch in unknown}):
        calibrate_some(
            desk, book, [each for each in unknown if automatic_launches(each) == launches], launches
        )
    return open_book(desk.reference_roots, places(planned))


def is_unknown(book: ReferenceBook, launch: PlannedLaunch, case: Case) -> bool:
    """Whether a case has no reference, or one made with what is set by hand and the launch lacks."""
    shelf = book.shelf(case)
    if shelf is None or case not in shelf.references:
        return True
    return gives_way(shelf.options_of(case), launch.by_hand)


def automatic_launches(launch: PlannedLaunch) -> int:
    """How often a launch is calibrated that nobody calibrated; simulated time repeats."""
    return 1 if launch.exact else AUTOMATIC_LAUNCHES[launch.program]


def calibrate_some(
    desk: Desk, book: ReferenceBook, unknown: Sequence[PlannedLaunch], launches: int
) -> None:
    """Calibrate the cases of these launches that have no reference, or one with other options by hand."""
    worth = (
        "Simulated time repeats exactly"
        if all(launch.exact for launch in unknown)
        else "These references are provisional: only large changes are detected; run ./plumbline calibrate "
        "for better ones"
    )
    programs = sorted({launch.program for launch in unknown})
    environments = sorted({launch.environment for launch in unknown})
    missing = {case for each in unknown for case in each.all_cases if is_unknown(book, each, case)}
    some = any(map(book.reference, missing))
    others = " (existing ones were measured with other settings)" if some else ""
    desk.progress.note(
        f"no usable references for {', '.join(programs)} on {', '.join(environments)}{others}; "
        f"calibrating with {plural(launches, 'launch', 'es')}. {worth}"
    )
    chosen = desk.request.selection
    counts = sorted({launch.processes for launch in unknown})
    choice = {**chosen.choice, PROCESSES.variable: counts, PROGRAM.variable: programs}
    selection = replace(chosen, environments=environments, choice=choice, launches=launches)
    calibrate(desk, desk.work.provisional, missing, selection)


def calibrate(
    desk: Desk,
    root: Path,
    only: set[Case] | None,
    selection: Selection,
    afresh: bool = False,
    take: bool = False,
) -> Done:
    """One pass of a calibration: a session of its own, whose launches are kept and become references.

    :param only: cases that may be written; None for all
    :param afresh: whether earlier launches of these cases count no more
    :param take: whether a reference is replaced, too, if that absorbs a slowdown
    """
    progress, work = desk.progress, desk.work
    session, reframe = desk.open_session("calibrate")
    opened = ledger.open_calibration(
        session.directory, selection.set_env, selection.oversubscribe, afresh, selection.shell
    )
    since = watch()
    try:
        planned, done = measure_in(desk, reframe, "calibration", selection)
    except BaseException:  # interrupted, too: what ended well counts
        for line in gather(work.root):
            progress.say(line)
        raise
    held: dict[Case, float] = {}
    share = since.share() if desk.prepared.inventory else None
    new = ledger.taken(opened, session.directory, done.finished, share)
    ledger.keep(work.root, session.name, new, planned_cases(planned) if afresh else ())
    try:
        update.refuse_mixed(new)
        cases = {case for case in samples(new) if only is None or case in only}
        known = taken_alike(work.root, selection)
        only_new = only is not None
        hold = None if take or only_new else held.update
        for path in update.update(root, known, cases, only_new, progress.note, hold):
            progress.say(f"references: {path}")
        if held:
            progress.note(regression_guard.told(held))
    finally:  # what was measured is kept even if no reference can follow from it
        book = open_book([root, *desk.reference_roots], places(planned))
        request = desk.request
        results = verdicts(done.finished, book, request.site, request.rerun_options)
        keep(desk, session, done.finished, results)
    return Done(new, unwell(results), held)


def unwell(results: Iterable[CaseResult]) -> set[Family]:
    """The parts of the plan of which a case is not healthy. One that is skipped is."""
    return {family(each.case) for each in results if not each.healthy(False)}


Costs = Mapping[tuple[LaunchPlace, int], Cost]  #: by place and number of cases


def affordable(
    work: WorkDirectory, planned: Sequence[PlannedLaunch], demand: Demand, progress: Progress
) -> Demand:
    """The demand in launches, where it was told in seconds; the same one where it was not.

    :raises UsageError: if not even one launch fits
    """
    if demand.seconds is None:
        return demand
    once, sure = once_through(planned, known_costs(work))
    launches = fitting(demand.seconds, once)
    about = f"one launch of everything takes about {duration(once)}"
    if not sure:
        about += " (roughly: not all of it was measured here yet)"
    if launches < 1:
        fix = "give more, or choose less to measure"
        raise UsageError(f"--seconds {demand.seconds}: {about}; {fix}")
    progress.say(f"{about}: {plural(launches, 'launch', 'es')} in {duration(demand.seconds)}")
    return replace(demand, launches=launches, seconds=None)


def once_through(planned: Sequence[PlannedLaunch], known: Costs) -> tuple[float, bool]:
    """Seconds of one launch of all of a plan with its trials; and whether all of it was measured before."""
    total, sure = 0.0, True
    some = sorted((each for each in planned if each.cases), key=where)
    for (place, _), members in groupby(some, key=where):
        launches = list(members)
        cost = known.get((place, sum(len(each.cases) for each in launches)))
        if cost is None:
            sure = False
            total += sum(estimate(job, {}) for job in jobs(launches))
        else:
            total += cost.seconds(launches[0].trials)
    return total, sure


def known_costs(work: WorkDirectory) -> Costs:
    """What launches took in all sessions that are still there."""
    found: dict[tuple[LaunchPlace, int], list[WholeLaunch]] = {}
    for session in sorted(path.parent for path in work.sessions.glob("*/summary.json")):
        for each in whole_launches(session):
            found.setdefault((each.place, each.cases), []).append(each)
    return {key: cost_of(some) for key, some in found.items()}
