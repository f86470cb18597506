"""Calibrations: what a user asks for, and what a night needs that knows no references yet."""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.formats import duration, plural
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration import ledger, update
from postprocess.calibration.ledger import CalibrationLaunch, recover_interrupted
from postprocess.calibration.losses import Family, describe_losses
from postprocess.calibration.machine_load import BESIDE_OTHERS, start_load_monitor, wait_for_idle
from postprocess.calibration.samples import collect_samples, describe_places, list_short_places, select_as_now
from postprocess.calibration.schedule import LaunchTarget, PassResult, calibrate_all
from postprocess.judging.evaluate import evaluate_launches
from postprocess.judging.notes import describe_shell_effects
from postprocess.model.case import Case, LaunchPlace, ReferencePlace
from postprocess.model.options import FAMILY, PROCESSES, PROGRAM
from postprocess.model.plan import PlannedLaunch, list_places, list_planned_cases
from postprocess.model.reference import ENOUGH_LAUNCHES
from postprocess.model.routines.mpicost import AUTOMATIC_FLUSHED
from postprocess.model.session import Request, Selection
from postprocess.model.verdict import FAILED_LAUNCH, CaseResult
from postprocess.references.catalog import ReferenceCatalog, load_catalog
from postprocess.results import launch_costs
from postprocess.runner.reframe_pass import make_plan
from postprocess.session.lifecycle.context import (
    SessionContext,
    list_prefixes,
    measure_in_session,
    open_session_context,
    report_plan,
)
from postprocess.session.lifecycle.finish import keep_session
from postprocess.session.nightly import learning
from postprocess.session.nightly.learning import describe_other_work, describe_staying
from postprocess.session.nightly.transports import FILE as TRANSPORTS
from postprocess.session.nightly.transports import TransportProof, prove_transports
from site_configs.programs.program import PROGRAMS
from site_configs.schema.manual_settings import is_replaced_by


def run_calibration(work: WorkDirectory, request: Request, progress: Progress, demand: LaunchTarget) -> int:
    """Measure references because the user asks for it. Returns the exit status."""
    with work.held():
        context = open_session_context(work, request, progress)
        request = context.request
        root = request.references or work.provisional
        with progress.phase("set-up"):
            planned = context.preview(request.selection)
        update.check_planned_trials(root, planned)
        report_plan(planned, progress, request.selection.choice)
        demand = plan_for_seconds(work, planned, demand, progress)
        refuse_busy_machine(context, planned)
        proof = prove_before(context, planned, asked=True)
        proven = select_proven(planned, proof)
        selection = request.selection
        passes: list[PassResult] = []
        if len(proven) < len(planned):
            environments = sorted({launch.environment for launch in proven})
            selection = replace(selection, environments=environments)

        def run(chosen: Selection, afresh: bool) -> PassResult:
            """Run a pass, and remember by what that talks which it has measured."""
            done = run_calibration_pass(context, root, None, chosen, afresh, take=demand.afresh)
            passes.append(done)
            environments = {launch.place.environment for launch in done.launches}
            if proof:
                with progress.keeping("transports"):
                    proof.remember(work.root / TRANSPORTS, True, environments)
            return done

        def read() -> list[CalibrationLaunch]:
            """Read the launches of the ledger that count beside those of now."""
            launches = learning.read_comparable_launches(work.root, request.selection)
            return select_as_now(launches, now, {done.session for done in passes})

        now = learning.find_conditions_now(context)
        for line in () if demand.afresh else learning.describe_outdated(context, proven, now):
            progress.say(line)
        tally = calibrate_all(proven, selection, demand, read, run, progress)
        status = learning.conclude_calibration(context, root, proven, passes, tally, read()) if passes else 0
        return status or int(len(proven) < len(planned))


def prove_before(
    context: SessionContext, planned: Sequence[PlannedLaunch], asked: bool = False
) -> TransportProof | None:
    """Prove by which transports a plan's MPIs talk, and tell which of them are not calibrated for that.

    They are proven first, so that whatever interrupts a calibration, all that it leaves may count. None if that
    cannot be told.

    :param asked: whether a user calibrates, so that what was known before counts no more
    """
    progress = context.progress
    proof = None
    with progress.keeping("transports"):
        proof = prove_transports(context, context.request.selection, planned, calibrating=asked)
        for environment, fault in proof.find_faults().items():
            progress.note(f"{environment} is not calibrated: {fault}")
        for line in proof.describe() if asked else ():
            progress.note(line)
    return proof


def select_proven(planned: Sequence[PlannedLaunch], proof: TransportProof | None) -> list[PlannedLaunch]:
    """Select the launches of environments whose transports are as they should be, and simulated ones."""
    if proof is None:
        return [launch for launch in planned if launch.exact]
    faults = proof.find_faults()
    return [launch for launch in planned if launch.environment not in faults]


def refuse_busy_machine(context: SessionContext, planned: Sequence[PlannedLaunch]) -> None:
    """Refuse to calibrate on a machine that other processes use.

    :raises UsageError: if they are still busy after a minute
    """
    if share := measure_contention(context, planned):
        raise UsageError(
            f"machine is {share:.0%} busy with other processes; calibrate on an idle machine, or set "
            f"{BESIDE_OTHERS}=1"
        )


def measure_contention(context: SessionContext, planned: Iterable[PlannedLaunch]) -> float:
    """Measure the share of this machine, from 0 to 1, that others use; 0 if that does not matter.

    It does where launches run on this machine, and not in simulated time.
    """
    here = context.prepared.inventory and not all(launch.exact for launch in planned)
    return wait_for_idle(context.progress) if here else 0.0


def calibrate_unknown(
    context: SessionContext, planned: Sequence[PlannedLaunch], catalog: ReferenceCatalog
) -> tuple[ReferenceCatalog, list[CaseResult]]:
    """Calibrate the cases of environments that have no reviewed references.

    Returns the catalog with them, and the cases with a launch that failed meanwhile.

    An environment with a reviewed file keeps its gaps: they are ``no-reference``, and loud. A reference that
    was made with options by hand is none for launches without: it is measured again.
    """
    unknown = list_uncalibrated(context.work.provisional, catalog, planned)
    if unknown and (share := measure_contention(context, unknown)):
        unknown = [launch for launch in unknown if launch.exact]
        context.progress.note(
            f"machine is {share:.0%} busy with other processes: cases without a reference are not "
            f"calibrated, and fail; measure while nothing else runs, or set {BESIDE_OTHERS}=1 and see less"
        )
    unknown = select_proven(unknown, prove_before(context, unknown))
    if not unknown:
        return catalog, []
    passes: list[PassResult] = []
    page = FAMILY in context.request.selection.choice
    for launches in sorted({choose_automatic_launches(launch, page) for launch in unknown}):
        some = [each for each in unknown if choose_automatic_launches(each, page) == launches]
        passes.append(calibrate_cases(context, catalog, some, launches))
    prefixes = list_prefixes(context.prepared.inventory)
    for line in describe_shell_effects(learning.list_finished(passes), os.environ, prefixes):
        context.progress.note(line)
    failed = [result for done in passes for result in done.failed]
    return load_catalog(context.reference_roots, list_places(planned)), failed


def list_uncalibrated(
    provisional: Path, catalog: ReferenceCatalog, planned: Sequence[PlannedLaunch]
) -> list[PlannedLaunch]:
    """List the launches that a night calibrates first: of environments without a reviewed file.

    :param provisional: folder of the references that are not reviewed
    """
    reviewed = {
        place for place, reference_set in catalog.sets.items() if provisional not in reference_set.path.parents
    }
    return [
        launch
        for launch in planned
        if (launch.partition, launch.environment) not in reviewed
        and any(is_without_usable_reference(catalog, launch, case) for case in launch.cases)
    ]


def is_without_usable_reference(catalog: ReferenceCatalog, launch: PlannedLaunch, case: Case) -> bool:
    """Return whether a case has no reference, or one made with options set by hand that the launch lacks."""
    reference_set = catalog.find_set(case)
    if reference_set is None or case not in reference_set.references:
        return True
    return is_replaced_by(reference_set.options_of(case), launch.by_hand)


def choose_automatic_launches(launch: PlannedLaunch, page: bool = False) -> int:
    """Choose the number of launches of an automatic calibration; one in simulated time, which repeats.

    :param page: whether what is measured is for the page of a paper, which needs no reference
    """
    if launch.exact or page:
        return 1
    return AUTOMATIC_FLUSHED if launch_costs.flushes(launch) else PROGRAMS[launch.program].launches


def calibrate_cases(
    context: SessionContext, catalog: ReferenceCatalog, unknown: Sequence[PlannedLaunch], launches: int
) -> PassResult:
    """Calibrate the cases of these launches that have no reference, or one with other options by hand."""
    programs = sorted({launch.program for launch in unknown})
    environments = sorted({launch.environment for launch in unknown})
    missing = {
        case for each in unknown for case in each.all_cases if is_without_usable_reference(catalog, each, case)
    }
    some = any(map(catalog.reference, missing))
    others = " (existing ones were measured with other settings)" if some else ""
    kept = list_kept_launches(context, missing)
    left = max(launches - count_launches(kept, missing), 1)
    exact = all(launch.exact for launch in unknown)
    context.progress.note(
        f"no usable references for {', '.join(programs)} on {', '.join(environments)}{others}; "
        f"calibrating with {plural(left, 'launch', 'es')}{describe_worth(launches, left, exact)}"
    )
    chosen = context.request.selection
    counts = sorted({launch.processes for launch in unknown})
    choice = {**chosen.choice, PROCESSES.variable: counts, PROGRAM.variable: programs}
    selection = replace(chosen, environments=environments, choice=choice, launches=left)
    began = time.monotonic()
    done = run_calibration_pass(context, context.work.provisional, missing, selection)
    passes = [done]
    while short := list_short_places([*kept, *done.launches]):
        names = ", ".join(sorted(short))
        if time.monotonic() - began > PLACES_SECONDS:
            context.progress.note(
                f"the system starts the ranks of {names} on changing cores; "
                f"where fewer than {ENOUGH_LAUNCHES} launches lay, only a larger slowdown is called: "
                "./plumbline calibrate --at-most 10 measures more"
            )
            break
        context.progress.say(f"ranks lay on other cores in some launches of {names}: launching more")
        further = replace(selection, environments=sorted(short), launches=MORE_LAUNCHES)
        added = run_calibration_pass(context, context.work.provisional, None, further, take=True)
        passes.append(added)
        done = replace(done, launches=[*done.launches, *added.launches], failed=[*done.failed, *added.failed])
        if not added.launches:
            break
    losses = describe_losses(learning.list_all_lost(passes), learning.list_finished(passes))
    told = [*losses, *describe_staying(passes), *describe_other_work(passes)]
    for line in [*told, *describe_places([*kept, *done.launches])]:
        context.progress.note(line)
    for path in dict.fromkeys(path for result in passes for path in result.files):
        context.progress.say_whole(f"references: {path}")
    return done


def describe_worth(launches: int, left: int, exact: bool) -> str:
    """Describe what references of so many launches are worth, behind how many a night takes now.

    :param left: of the launches, those that an interrupted calibration did not leave
    :param exact: whether time is simulated
    """
    if exact:
        return ". Simulated time repeats exactly"
    if left < launches:
        return f", beside {launches - left} of a calibration that was interrupted"
    if launches < ENOUGH_LAUNCHES:
        return (
            ". These references are provisional: only large changes are detected; run ./plumbline calibrate "
            "for better ones"
        )
    return (
        ". All of them are of one hour, so differences between days are not in them; "
        f"./plumbline calibrate --launches {2 * launches} on another day adds to them"
    )


def list_kept_launches(context: SessionContext, missing: Iterable[Case]) -> list[CalibrationLaunch]:
    """List the launches of cases without a reference that an interrupted calibration has left."""
    known = learning.read_comparable_launches(context.work.root, context.request.selection)
    keys = {case.key for case in missing}
    now = learning.find_conditions_now(context)
    return [launch for launch in select_as_now(known, now) if not keys.isdisjoint(launch.values)]


def count_launches(launches: Iterable[CalibrationLaunch], cases: Iterable[Case]) -> int:
    samples = collect_samples(launches)
    return min(len(samples[case].launches) if case in samples else 0 for case in cases)


PLACES_SECONDS = 125  #: after which a first calibration launches no more for places that few launches lay in
MORE_LAUNCHES = 5  #: at a time, for these places


def run_calibration_pass(
    context: SessionContext,
    root: Path,
    only: set[Case] | None,
    selection: Selection,
    afresh: bool = False,
    take: bool = False,
) -> PassResult:
    """Run one pass of a calibration in a session of its own; keep its launches and update references.

    :param only: cases that may be written; None for all
    :param afresh: whether earlier launches of these cases count no more
    :param take: whether a reference is replaced, too, if that absorbs a slowdown
    """
    progress, work = context.progress, context.work
    session, reframe = context.open_session("calibrate")
    opened = ledger.open_calibration(
        session.directory,
        selection.set_env,
        selection.oversubscribe,
        afresh,
        selection.shell,
        transports={" ".join(place): tuple(map(str, paths)) for place, paths in context.heard.items() if paths},
    )
    since = start_load_monitor()
    try:
        if afresh:  # an interrupted session's plan says which launches count no more
            make_plan(reframe, selection)
        planned, done = measure_in_session(context, reframe, "calibration", selection)
    except BaseException:  # interrupted, too: what ended well counts
        for line in recover_interrupted(work.root):
            progress.say(line)
        raise
    held: dict[Case, float] = {}
    notes: dict[Family, str] = {}
    paths: list[Path] = []

    def keep(place: ReferencePlace, program: str, line: str) -> None:
        notes[f"{place.system}:{place.partition}", place.environment, program] = line

    share = since.share() if context.prepared.inventory else None
    new = ledger.collect_launches(opened, session.directory, done.finished, share)
    ledger.append_launches(work.root, session.name, new, list_planned_cases(planned) if afresh else ())
    try:
        update.refuse_mixed(new)
        cases = {case for case in collect_samples(new) if only is None or case in only}
        known = learning.read_comparable_launches(work.root, selection)
        only_new = only is not None
        hold = None if take or only_new else held.update
        paths = update.update_references(root, known, cases, only_new, keep, hold)
    finally:  # what was measured is kept even if no reference can follow from it
        catalog = load_catalog([root, *context.reference_roots], list_places(planned))
        request = context.request
        results = evaluate_launches(
            done.finished, catalog, request.site, request.rerun_options, calibrating=True
        )
        page = keep_session(context, session, done.finished, results)
    failed = [result for result in results if result.verdict in FAILED_LAUNCH]
    return PassResult(new, held, failed, session.name, done.finished, paths, page, notes)


Costs = Mapping[tuple[LaunchPlace, int], launch_costs.LaunchCost]  #: by place and number of cases


def plan_for_seconds(
    work: WorkDirectory, planned: Sequence[PlannedLaunch], demand: LaunchTarget, progress: Progress
) -> LaunchTarget:
    """Plan the launches of a demand that was told in seconds; another demand stays as it is.

    :raises UsageError: if not even one launch fits
    """
    if demand.seconds is None:
        return demand
    once, sure = estimate_one_pass(planned, read_known_costs(work))
    launches = count_fitting_launches(demand.seconds, once)
    about = f"one launch of everything takes about {duration(once)}"
    if not sure:
        about += " (roughly: not all of it was measured here yet)"
    if launches < 1:
        fix = "give more, or choose less to measure"
        raise UsageError(f"--seconds {demand.seconds}: {about}; {fix}")
    progress.say(f"{about}: {plural(launches, 'launch', 'es')} in {duration(demand.seconds)}")
    return replace(demand, launches=launches, seconds=None)


def count_fitting_launches(seconds: float, once: float) -> int:
    """Count the launches of ``once`` seconds that fit into ``seconds``."""
    return int(seconds / once * (1 + 1e-12))  # twenty of them fit into twenty times one


def estimate_one_pass(planned: Sequence[PlannedLaunch], known: Costs) -> tuple[float, bool]:
    """Estimate the seconds of one launch of a whole plan; and whether all of it was measured before."""
    total, sure = 0.0, True
    some = sorted((launch for launch in planned if launch.cases), key=launch_costs.launch_place_of)
    for (place, _), members in groupby(some, key=launch_costs.launch_place_of):
        launches = list(members)
        cost = known.get((place, sum(len(launch.cases) for launch in launches)))
        if cost is None:
            sure = False
            total += sum(launch_costs.estimate_job_seconds(job, {}) for job in launch_costs.list_jobs(launches))
        else:
            total += cost.seconds(launches[0].trials)
    return total, sure


def read_known_costs(work: WorkDirectory) -> Costs:
    """Read the cost of launches from all sessions that are still there."""
    found: dict[tuple[LaunchPlace, int], list[launch_costs.WholeLaunch]] = {}
    for session in sorted(path.parent for path in work.sessions.glob("*/summary.json")):
        for launch in launch_costs.list_whole_launches(session):
            found.setdefault((launch.place, launch.cases), []).append(launch)
    return {key: launch_costs.measure_cost(some) for key, some in found.items()}
