"""A night from beginning to end: prepare, plan, calibrate what is unknown, run, judge, keep, show."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from postprocess.analyses import alarms
from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.records import recall, remember
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.losses import Family
from postprocess.calibration.machine_load import LoadMonitor, is_disturbed, start_load_monitor
from postprocess.calibration.update import check_planned_trials
from postprocess.judging.common_cause import find_onset_in_store
from postprocess.judging.confirmation import Confirmation, apply_failures, confirm_slow_cases, leave_in_doubt
from postprocess.judging.evaluate import evaluate_launches
from postprocess.judging.notes import (
    RequestedCases,
    describe_fast_cases,
    describe_interposed_libraries,
    describe_waivers,
    doubt_beside_others,
    excuse_headlines,
    excuse_means,
    find_unplanned_cases,
    find_unplanned_environments,
    is_whole,
)
from postprocess.judging.outcome import describe_foreign_lines
from postprocess.judging.suspicion import SessionHistory, read_history
from postprocess.model.case import Case, LaunchPlace
from postprocess.model.launch import FinishedLaunch, select_launch_counts
from postprocess.model.options import PROGRAM
from postprocess.model.plan import PlannedLaunch, drop_plan, list_places
from postprocess.model.routines.mpicost import OWN_PROGRAMS, program_sort_key
from postprocess.model.session import Request, Selection, Session
from postprocess.model.verdict import CaseResult
from postprocess.references import decisions
from postprocess.references.catalog import ReferenceCatalog, describe_unusual_trials
from postprocess.references.decisions import ExpectedFailure
from postprocess.runner.reframe import ReframeDriver
from postprocess.runner.reframe_pass import assess_launches, find_program, make_plan, run_plan
from postprocess.session.lifecycle.context import (
    SessionContext,
    open_session_context,
    refused_session,
    report_plan,
)
from postprocess.session.lifecycle.finish import finish_session, show_first_verdicts
from postprocess.session.lifecycle.validation import UNVERIFIED, DataVerification, verify_data
from postprocess.session.nightly.calibrate import calibrate_unknown, list_uncalibrated
from postprocess.session.nightly.confirm import measure_again, wait_for_another_moment
from postprocess.session.nightly.estimate import (
    LaunchCounts,
    choose_launch_counts,
    describe_launch_counts,
    estimate_night,
)
from postprocess.session.nightly.learning import Lesson, learn_night
from postprocess.session.nightly.nodes import describe_late_nodes, describe_node_facts
from postprocess.session.nightly.transports import TransportProof, prove_measured
from postprocess.session.nightly.turns import (
    choose_resting,
    defer_measured_once,
    describe_turns,
    remember_turns,
    select_without_resting,
    skip_resting,
)
from postprocess.setup import build_at_once
from site_configs.programs.program import find_product

COUNTS = "launch_counts.json"  #: in a work directory; what the last night took
FOLDER = "builds"  #: of a session: what Spack said while it built for several MPIs at once


def list_unbuilt(context: SessionContext, planned: Sequence[PlannedLaunch], program: str) -> list[str]:
    """List the environments that Spack has yet to build a program for."""
    return sorted(
        {
            launch.environment
            for launch in planned
            if launch.program == program
            and launch.cases
            and launch.environment in context.prepared.by_spack
            and find_program(context.work.root, launch) is None
        }
    )


def split_by_builds(context: SessionContext, planned: Sequence[PlannedLaunch]) -> list[list[str]]:
    """Split the programs of a plan: those of the suite come first where Spack must still compile another one.

    That takes minutes, and the first verdicts on the MPIs need not wait for it.
    """
    programs = sorted({launch.program for launch in planned}, key=program_sort_key)
    others = [name for name in programs if name not in OWN_PROGRAMS]
    unbuilt = any(list_unbuilt(context, planned, name) for name in others)
    own = [name for name in programs if name in OWN_PROGRAMS]
    return [own, others] if unbuilt and own else [programs]


def build_part(
    context: SessionContext, session: Session, planned: Sequence[PlannedLaunch], programs: Sequence[str]
) -> None:
    """Build some programs where several MPIs lack them. The session's checks find them, or tell what failed."""
    spack, progress = context.prepared.spack, context.progress
    if spack is None:
        return
    for program in programs:
        environments = list_unbuilt(context, planned, program)
        if len(environments) < 2:
            continue
        progress.say(f"building {program} for {', '.join(environments)}")
        with progress.phase("build"):
            folder = session.directory / FOLDER
            build_at_once(context.work, spack, environments, find_product(program), folder)


CALIBRATED = "in the calibration of this night"


@dataclass(frozen=True)
class NightPlan:
    """What a night measures, and what it is judged by."""

    selection: Selection
    everything: list[PlannedLaunch]  #: as many launches of each place as the last night took
    planned: list[PlannedLaunch]  #: one of each place, unless the user asks for a number
    possible: list[PlannedLaunch]  #: the same without turns
    resting: Mapping[Family, str]  #: what is left to a later night, with the reason
    catalog: ReferenceCatalog
    expected: dict[str, list[ExpectedFailure]]
    missing: list[CaseResult]  #: results of cases that have a reference and are not planned
    whole: bool  #: whether everything of the site was asked for


def plan_night(context: SessionContext, reframe: ReframeDriver) -> NightPlan:
    """Plan a night, and read its references."""
    work, request = context.work, context.request
    selection, everything = plan_like_last_night(work, reframe, request)
    possible = list_planned(request, everything)
    catalog = context.load_references(possible)
    if not request.strict:
        check_planned_trials(work.provisional, list_uncalibrated(work.provisional, catalog, possible))
    resting = choose_resting(work.root, request, possible, catalog)
    everything = skip_resting(everything, resting)
    planned = list_planned(request, everything)
    systems = {place.partition(":")[0] for place, _ in list_places(planned)}
    reviewed = [root for root in context.reference_roots if root != work.provisional]
    asked = RequestedCases(request.selection, request.families)
    missing = find_unplanned_environments(context.reference_roots, planned, work.provisional, asked)
    missing += find_unplanned_cases(catalog, planned, work.provisional, asked)
    return NightPlan(
        select_without_resting(selection, resting),
        everything,
        planned,
        possible,
        resting,
        catalog,
        decisions.load_expected_failures(reviewed, systems),
        missing,
        whole=is_whole(request.selection) and not request.families,
    )


def run_nightly(work: WorkDirectory, request: Request, progress: Progress) -> int:
    """Measure and judge. Returns the exit status.

    :raises UsageError: for anything that is the user's to mend.
    """
    began = time.monotonic()
    with work.held():
        context = open_session_context(work, request, progress)
        request = context.request
        session, reframe = context.open_session(request.mode)
        with refused_session(session), progress.phase("set-up"):
            night = plan_night(context, reframe)
        report_plan(night.planned, progress, request.selection.choice)
        for line in (*describe_unusual_trials(night.planned), *describe_turns(night.resting, night.planned)):
            progress.say(line)
        load, finished, catalog, failed = measure_night(context, session, reframe, night)
        beside_others = is_disturbed(load.share() if context.prepared.inventory else None)
        verified, proof, ended = prove_night(context, finished)
        results = judge_night(context, finished, catalog, failed, verified, proof, beside_others)
        with progress.keeping("facts of nodes"):
            for line in describe_node_facts(work.root, finished, session.started_utc):
                progress.note(line)
        with progress.keeping("who was late"):
            for line in describe_late_nodes(work.root, finished):
                progress.note(line)
        history = read_history(work.store, [result.case for result in results])
        conclude = partial(conclude_night, context, session, night, finished, catalog, history, load)
        confirmed = (
            Confirmation(leave_in_doubt(results, catalog, history), ended=ended)
            if ended
            else confirm_night(context, finished, results, catalog, history, began)
        )
        if not confirmed.ended:
            return conclude(confirmed)
        progress.note("confirmation ended early: slow cases that it did not decide on are suspect")
        ended = confirmed.ended
        own = isinstance(ended, Exception) and not isinstance(ended, (UsageError, OSError))
        if isinstance(ended, Exception) and own:
            progress.fault("confirmation and common causes", ended)
        status = conclude(confirmed)  # what was measured is kept
        if own:
            return status
        raise ended


def measure_night(
    context: SessionContext, session: Session, reframe: ReframeDriver, night: NightPlan
) -> tuple[LoadMonitor, list[FinishedLaunch], ReferenceCatalog, list[CaseResult]]:
    """Build, calibrate what is unknown, and measure. Slow builds come after the first verdicts.

    Returns what watches the machine's load, the launches, the references that they are held against, and the
    cases of which a launch of the calibration failed.
    """
    work, request, progress, planned = context.work, context.request, context.progress, night.planned
    with progress.phase("set-up"):
        counts = tell_estimate(context, planned, night.catalog)
    parts = split_by_builds(context, planned)
    build_part(context, session, planned, parts[0])
    catalog, failed = calibrate_part(context, planned, parts[0], night.catalog)
    with progress.phase("set-up"):
        counts = counts if catalog is night.catalog else choose_launch_counts(work, planned)
        selection, planned = plan_night_launches(context, reframe, counts, night)
        planned = defer_measured_once(request, planned, night.catalog, catalog)
    load = start_load_monitor()
    finished = run_part(context, reframe, selection, planned, parts[0])
    for programs in parts[1:]:
        results = evaluate_launches(finished, catalog, request.site, request.rerun_options)
        results = apply_failures(results, failed, CALIBRATED)
        with progress.keeping("first verdicts"):
            show_first_verdicts(context, session, finished, results)
        build_part(context, session, planned, programs)
        before = catalog
        catalog, others = calibrate_part(context, planned, programs, catalog)
        failed += others
        planned = defer_measured_once(request, planned, before, catalog)
        finished += run_part(context, reframe, selection, planned, programs)
    return load, finished, catalog, failed


def conclude_night(
    context: SessionContext,
    session: Session,
    night: NightPlan,
    finished: Sequence[FinishedLaunch],
    catalog: ReferenceCatalog,
    history: SessionHistory,
    load: LoadMonitor,
    confirmed: Confirmation,
) -> int:
    """Mark what is expected, log alarms and keep everything. Returns the exit status."""
    work, progress = context.work, context.progress
    results = sorted([*confirmed.results, *night.missing], key=result_sort_key)
    share = load.share() if context.prepared.inventory else None
    if share is not None and is_disturbed(share):
        results, note = doubt_beside_others(results, share)
        if note:
            progress.note(note)
    with progress.keeping("expected failures"):
        results = mark_expected_failures(context, results, night.expected, night.whole)
    with progress.keeping("learning"):
        lesson = Lesson(session, context.request.selection, finished, results, catalog, history)
        taught = (
            session.mode == "nightly"
            and not confirmed.ended  # what slows it in common is not known then
            and learn_night(work, lesson, confirmed.causes, share)
        )
        if taught:
            progress.note(taught)
    with progress.keeping("turns"):
        if session.mode == "nightly":
            measured = night.possible, night.resting, finished, results
            for line in remember_turns(work.root, session.started_utc, *measured):
                progress.note(line)
    with progress.keeping("log of alarms"):
        log_alarms(context, session, results, confirmed.causes)
    return finish_session(context, session, finished, results, confirmed.causes)


def plan_like_last_night(
    work: WorkDirectory, reframe: ReframeDriver, request: Request
) -> tuple[Selection, list[PlannedLaunch]]:
    """Make a plan with as many launches of each place as the last night took, or as the user asks for.

    A night mostly takes as many as the one before, and then need not plan again.
    """
    selection = request.selection
    if request.launches is None:
        selection = select_launch_counts(selection, dict(recall(work.root / COUNTS, LaunchCounts).counts))
    return selection, make_plan(reframe, selection)


def list_planned(request: Request, everything: Sequence[PlannedLaunch]) -> list[PlannedLaunch]:
    """List the launches of a plan; one of each place until a night has chosen how many it takes."""
    return [launch for launch in everything if launch.number == 1 or request.launches is not None]


def tell_estimate(
    context: SessionContext, planned: Sequence[PlannedLaunch], catalog: ReferenceCatalog
) -> Mapping[LaunchPlace, int]:
    """Say how long the night takes, and let its phases show what is left of that.

    Returns the launches of each place that it counts on; empty if the user asks for a number.
    """
    request, progress = context.request, context.progress
    found = estimate_night(context.work, planned, catalog, request.launches, calibrates=not request.strict)
    for line in found.describe(request.mode):
        progress.say(line)
    progress.expected = {"calibration": found.calibration, "running": found.tonight}
    return found.counts


def prove_night(
    context: SessionContext, finished: Sequence[FinishedLaunch]
) -> tuple[DataVerification, TransportProof, BaseException | None]:
    """Verify the data of OSU and IMB, and read by which transports the MPIs talk.

    A signal is returned: what was measured is still to be judged.
    """
    selection, keeping = context.request.selection, context.progress.keeping
    verified, proof = DataVerification({}, (UNVERIFIED,)), TransportProof({})
    try:
        with keeping("verification of data"):
            verified = verify_data(context, selection, finished)
        with keeping("transports"):
            proof = prove_measured(context, selection, finished)
    except BaseException as error:  # raised again when all is kept
        return verified, proof, error
    return verified, proof, None


def confirm_night(
    context: SessionContext,
    finished: Sequence[FinishedLaunch],
    results: Sequence[CaseResult],
    catalog: ReferenceCatalog,
    history: SessionHistory,
    began: float,
) -> Confirmation:
    """Measure again what looks slow. Whatever ends it, a signal too, is returned with what is known.

    :param began: when the night began, by the monotonic clock in seconds
    """
    request, progress, store = context.request, context.progress, context.work.store
    try:
        return confirm_slow_cases(
            results,
            finished,
            catalog,
            request.selection,
            partial(measure_again, context, catalog),
            progress,
            partial(find_onset_in_store, store),
            history,
            partial(wait_for_another_moment, request.confirm_after, began, progress),
        )
    except BaseException as error:  # nothing that it measured can be told
        doubted = list(results)
        with progress.keeping("what was slow before the confirmation ended"):
            doubted = leave_in_doubt(results, catalog, history)
        return Confirmation(doubted, ended=error)


def judge_night(
    context: SessionContext,
    finished: Sequence[FinishedLaunch],
    catalog: ReferenceCatalog,
    failed: Sequence[CaseResult],
    verified: DataVerification,
    proof: TransportProof,
    beside_others: bool,
) -> list[CaseResult]:
    """Judge all launches of a night, and note what its reader must know of the judgement.

    :param failed: cases of which a launch failed in the night's own calibration
    :param verified: what came of launches that verify data
    :param proof: by which transports its pairs of ranks talk
    :param beside_others: whether other processes used the machine, as far as that is known
    """
    request, progress = context.request, context.progress
    with progress.phase("analysis"):
        results = evaluate_launches(finished, catalog, request.site, request.rerun_options)
        results = apply_failures(results, failed, CALIBRATED)
        results = proof.apply(verified.apply(results))
        results, excused = excuse_headlines(results)
        results, open_means = excuse_means(results, beside_others)
        notes: dict[str, Callable[[], Iterable[str]]] = {
            "waivers": lambda: describe_waivers(finished, catalog),
            "interposed libraries": lambda: describe_interposed_libraries(finished),
            "data not verified": verified.describe,
            "transports": proof.describe,
            "lines of others": lambda: describe_foreign_lines(finished),
            "fast cases": lambda: describe_fast_cases(results, catalog, request.site),
            "other work": lambda: [each for each in (excused, open_means) if each],
            "what is left out": lambda: sorted({launch.launch.left_out for launch in finished} - {""}),
        }
        for what, describe in notes.items():
            with progress.keeping(f"note on {what}"):
                for line in describe():
                    progress.note(line)
    return results


def calibrate_part(
    context: SessionContext,
    planned: Sequence[PlannedLaunch],
    programs: Sequence[str],
    catalog: ReferenceCatalog,
) -> tuple[ReferenceCatalog, list[CaseResult]]:
    """Calibrate what is unknown of some programs of a plan, unless the session is strict.

    Returns the catalog of the whole plan, and the cases with a launch that failed meanwhile.
    """
    if context.request.strict:
        return catalog, []
    part = [launch for launch in planned if launch.program in programs]
    calibrated, failed = calibrate_unknown(context, part, catalog)
    if calibrated is catalog:
        return catalog, failed
    return context.load_references(planned), failed


def run_part(
    context: SessionContext,
    reframe: ReframeDriver,
    selection: Selection,
    planned: Sequence[PlannedLaunch],
    programs: Sequence[str],
) -> list[FinishedLaunch]:
    """Run the launches of some programs of a plan."""
    part = [launch for launch in planned if launch.program in programs]
    running = sorted({launch.program for launch in part if launch.cases})
    if not running:
        return assess_launches(part, reframe, [], 0.0).finished
    if {launch.program for launch in planned} - set(running):
        selection = replace(selection, choice=selection.choice | {PROGRAM.variable: running})
    with context.progress.phase("running"):
        done = run_plan(reframe, selection, part, context.progress)
    context.progress.move("running", "build", done.build_seconds)
    return done.finished


def plan_night_launches(
    context: SessionContext, reframe: ReframeDriver, counts: Mapping[LaunchPlace, int], night: NightPlan
) -> tuple[Selection, list[PlannedLaunch]]:
    """Return the selection and the plan with so many launches of each place; plan again if it has others."""
    progress = context.progress
    if context.request.launches is not None:  # the plan has them
        return night.selection, night.everything
    for line in describe_launch_counts(counts):
        progress.say(line)
    if context.request.mode == "nightly":
        with progress.keeping("numbers of launches"):
            remember(context.work.root / COUNTS, LaunchCounts(counts=sorted(counts.items())))
    chosen = select_launch_counts(night.selection, counts)
    if chosen == night.selection:
        return chosen, night.everything
    drop_plan(reframe.session)
    return chosen, make_plan(reframe, chosen)


def log_alarms(
    context: SessionContext, session: Session, results: Sequence[CaseResult], causes: Sequence[str] = ()
) -> None:
    """Log what a session was alarmed by, if it was a night. A log that cannot be written ends none."""
    if session.mode != "nightly":
        return
    begun = session.name, session.started_utc, session.site
    logged = alarms.summarise_night_alarms(*begun, results, causes)
    try:
        alarms.append_night(context.work.root / alarms.FILE, logged)
    except UsageError as error:
        context.progress.note(str(error))


def mark_expected_failures(
    context: SessionContext, results: Sequence[CaseResult], known: dict[str, list[ExpectedFailure]], whole: bool
) -> list[CaseResult]:
    """Mark expected failures (see ``expected.tsv``) and report stale or invalid entries of that file."""
    today = decisions.utc_today()
    for line in decisions.check_expected_failures(results, known, today, whole):
        context.progress.note(line)
    return decisions.apply_expected_failures(results, known, today)


def result_sort_key(result: CaseResult) -> Case:
    """Return the key that sorts results."""
    return result.case
