"""Finalise a session: print verdicts, store trials, write summary and report, keep Spack lock files."""

import json
import shlex
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from postprocess.analyses.drift_report import drift_note
from postprocess.base import files
from postprocess.base.files import write_output, write_summary
from postprocess.base.formats import parse_utc
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.judging.evaluate import evaluate_flagged
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch
from postprocess.model.session import Request, Session
from postprocess.model.verdict import CaseResult, Verdict, compute_exit_status, describe_unjudged
from postprocess.references.catalog import load_catalog
from postprocess.references.provenance import find_calibration_date
from postprocess.report import session_report, trial_selection
from postprocess.report.exports import PartitionNodes, format_junit, format_openmetrics
from postprocess.report.terminal import print_verdict_table
from postprocess.results import store
from postprocess.results.store import StoreRow, build_rows
from postprocess.results.summary import SessionSummary, summarise_session
from postprocess.session.lifecycle.context import SessionContext
from postprocess.session.lifecycle.past import read_past
from spack_envs.layout import SpackLayout


def format_monitored(context: SessionContext, summary: SessionSummary) -> str:
    """Format a session as OpenMetrics, with the nodes of its partitions and the moments of its references."""
    nodes = {
        name: PartitionNodes(each.count, each.away) for name, each in context.prepared.usable_nodes.items()
    }
    return format_openmetrics(summary, nodes, find_calibration_moments(context, summary.results))


def find_calibration_moments(context: SessionContext, results: Iterable[CaseResult]) -> dict[Case, float]:
    """Find when the reference of each case was measured, in Unix time; nothing where no file tells."""
    cases = [result.case for result in results if result.reference is not None]
    places = {(f"{case.system}:{case.partition}", case.environment) for case in cases}
    sets = load_catalog(context.reference_roots, sorted(places)).sets
    found = {}
    for case in cases:
        known = sets.get((f"{case.system}:{case.partition}", case.environment))
        if calibration := known.find_calibration(case) if known else None:
            found[case] = parse_utc(find_calibration_date(calibration, case.key)).timestamp()
    return found


COMMAND_SECONDS = 60  #: that a user's command may take


def finish_session(
    context: SessionContext,
    session: Session,
    finished: Sequence[FinishedLaunch],
    results: Sequence[CaseResult],
    causes: Sequence[str] = (),
    whole: bool = True,
) -> int:
    """Store every trial, write summary and report, then show the verdicts; the exit status.

    What is measured is kept before anything is printed; a full disk does not hide the verdicts.

    :param causes: confirmed causes in common, each of which fails the session
    :param whole: False if something that was to be measured has no case, which fails it too
    """
    failed = causes or not whole or context.progress.faults
    status = 1 if failed else compute_exit_status(results, session.strict)
    summary = build_session_summary(context, session, finished, results, status, causes)
    where = f"trials: {context.work.store}"
    try:
        with context.progress.phase("analysis"):
            summary, pages = write_files(context, session, finished, summary)
            where = f"report: {pages[1]} (./plumbline report --open)\n{where}" if pages else where
    finally:
        if is_main_session(context, session):
            show_verdicts(context, summary)
    return end_session(context, session, summary, where)


def keep_session(
    context: SessionContext, session: Session, finished: Sequence[FinishedLaunch], results: Sequence[CaseResult]
) -> Path | None:
    """Store every trial of a part of what was asked for, and write its summary and report; show nothing.

    Returns the page of the report, if there is one.
    """
    status = compute_exit_status(results, session.strict)
    summary = build_session_summary(context, session, finished, results, status)
    with context.progress.phase("analysis"):
        _, pages = write_files(context, session, finished, summary)
    if is_main_session(context, session):
        link_latest(context, session)
    return pages[1] if pages else None


def show_parts(context: SessionContext, pages: Sequence[Path], summary: SessionSummary) -> None:
    """Show the verdicts on several sessions that were kept, and say where their reports are.

    :param pages: their reports, the last one last
    """
    show_verdicts(context, summary)
    progress = context.progress
    progress.say(f"time: {progress.split()}")
    for page in pages:
        progress.say_whole(f"report: {page}{' (./plumbline report --open)' if page is pages[-1] else ''}")
    progress.say_whole(f"trials: {context.work.store}")


def show_verdicts(context: SessionContext, summary: SessionSummary) -> None:
    """Show the table of verdicts with the notes that were not said yet."""
    progress = context.progress
    with progress.keeping("table of verdicts"):
        print_verdict_table(summary, progress.console.width, said=progress.notes)


def link_latest(context: SessionContext, session: Session) -> None:
    """Let the link to the latest session lead to this one."""
    with context.progress.keeping("link to the latest session"):
        files.make_symlink(context.work.latest, Path("sessions", session.name))


def finish_unanalysed(
    context: SessionContext, session: Session, finished: Sequence[FinishedLaunch], error: Exception
) -> int:
    """Keep what a session measured whose analysis failed by a fault of its own; the exit status.

    Each case that was measured is ``incorrect``, with the reason.
    """
    reason = describe_unjudged(error)
    again = shlex.join(context.request.command)
    results = evaluate_flagged(finished, lambda _: reason, Verdict.INCORRECT, again)
    return finish_session(context, session, finished, results)


def show_first_verdicts(
    context: SessionContext, session: Session, finished: Sequence[FinishedLaunch], results: Sequence[CaseResult]
) -> None:
    """Show the verdicts of a night's first program while others are still to be built. Nothing is kept yet."""
    status = compute_exit_status(results, session.strict)
    summary = build_session_summary(context, session, finished, results, status)
    print_verdict_table(summary, context.progress.console.width, first=True)


def is_main_session(context: SessionContext, session: Session) -> bool:
    """Return whether a session is the one that was asked for, not the calibration that a night begins with."""
    return session.mode == context.request.mode


def build_session_summary(
    context: SessionContext,
    session: Session,
    finished: Sequence[FinishedLaunch],
    results: Sequence[CaseResult],
    status: int,
    causes: Sequence[str] = (),
) -> SessionSummary:
    """Build the summary of a session that ends with this status, with all that was noted until now.

    Where a fault of its own keeps it from telling of MPIs and launches, it has the cases alone, and fails.
    """
    progress, prepared = context.progress, context.prepared
    mpis = prepared.inventory.mpis if prepared.inventory else ()
    told = progress.notes, progress.phases
    built = prepared.built_with
    with progress.keeping("summary of the launches", users=False):
        return summarise_session(session, built, mpis, finished, results, status, *told, causes=causes)
    return summarise_session(session, built, (), (), results, status or 1, *told, causes=causes)


def end_session(context: SessionContext, session: Session, summary: SessionSummary, where: str) -> int:
    """Write the summary where it was asked for, and say where all is; the exit status."""
    progress, request = context.progress, context.request
    if is_main_session(context, session):
        publish_summary(request, summary, progress, partial(format_monitored, context))
        with progress.keeping("drift"):
            if session.mode == "nightly" and (line := drift_note(context.work.store)):
                progress.say(line)
        link_latest(context, session)
        progress.say(f"time: {progress.split()}")
        for line in where.splitlines():
            progress.say_whole(line)
    return summary.exit_status or int(bool(progress.faults))


def publish_summary(
    request: Request,
    summary: SessionSummary,
    progress: Progress,
    monitored: Callable[[SessionSummary], str] = format_openmetrics,
) -> None:
    """Write the summary in each form that was asked for, and tell the user's command of a failure.

    :param monitored: formats it as OpenMetrics
    :raises UsageError: if a file cannot be written; the command runs all the same.
    """
    try:
        if request.json_file:
            write_summary(request.json_file, summary.to_dict())
        if request.junit_file:
            write_output(request.junit_file, format_junit(summary))
        if request.openmetrics_file:
            write_output(request.openmetrics_file, monitored(summary))
    finally:
        if request.on_failure and summary.exit_status:
            tell_of_failure(request.on_failure, summary, progress)


def tell_of_failure(command: str, summary: SessionSummary, progress: Progress) -> None:
    """Run the user's command with the summary on its standard input; say so if it fails or takes too long."""
    text = json.dumps(summary.to_dict(), allow_nan=False)
    try:
        done = subprocess.run(command, shell=True, input=text, text=True, check=False, timeout=COMMAND_SECONDS)
    except subprocess.TimeoutExpired:
        progress.say(f"--on-failure {command}: took longer than {COMMAND_SECONDS} s and was ended")
        return
    if done.returncode:
        progress.say(f"--on-failure {command}: exit status {done.returncode}")


def write_files(
    context: SessionContext, session: Session, finished: Sequence[FinishedLaunch], summary: SessionSummary
) -> tuple[SessionSummary, tuple[Path, Path] | None]:
    """Write everything that stays of a session, the trials first.

    A fault of ours in one step leaves the others, and fails the session. Returns the summary as it was written,
    and the report's two files, if there are any.

    :raises UsageError: if something cannot be written. What is written by then is whole.
    """
    progress, report = context.progress, None
    with progress.keeping("store", users=False):
        results = store_trials(context.work, session, finished, summary.results)
        if results != list(summary.results):
            status = summary.exit_status or compute_exit_status(results, session.strict)
            summary = replace(summary, results=tuple(results), exit_status=status)
    summary = keep_summary(progress, session, summary)
    keep_spack_locks(context.work, session, finished)
    with progress.keeping("report (./plumbline report tries again)", users=False):
        trials = trial_selection.select_launch_trials(finished)
        report = session_report.build_report(
            session.directory, summary, trials, read_past(context.work, summary)
        )
    if report is None:
        summary = keep_summary(progress, session, summary)
    return summary, report


def keep_summary(progress: Progress, session: Session, summary: SessionSummary) -> SessionSummary:
    """Write the summary with all that went wrong until now; return it as it was written."""
    status = summary.exit_status or int(bool(progress.faults))
    summary = replace(summary, notes=tuple(progress.notes), exit_status=status)
    with progress.keeping("summary", users=False):
        write_summary(session.directory / "summary.json", summary.to_dict())
    return summary


def store_trials(
    work: WorkDirectory, session: Session, finished: Sequence[FinishedLaunch], results: Sequence[CaseResult]
) -> list[CaseResult]:
    """Put every trial of a session into the store; return the results.

    A launch of which no row can be made costs its own cases: they are ``incorrect``, and its raw files stay.
    """

    def build(launches: Sequence[FinishedLaunch], told: Sequence[CaseResult]) -> list[StoreRow]:
        return build_rows(session.name, session.started_utc, launches, told, session.mode)

    known = {result.case: result for result in results}
    whole, rows = [], []
    for run in finished:
        try:
            rows += build([run], results)
            whole.append(run)
        except Exception as error:
            known |= {
                case: CaseResult(case, Verdict.INCORRECT, describe_unjudged(error), rerun=known[case].rerun)
                for case in run.launch.cases
            }
    final = [known[each.case] for each in results]
    if len(whole) < len(finished):  # the other launches of a case say its new verdict
        rows = build(whole, final)
    store.write_session(work.store / f"{session.name}{store.SUFFIX}", rows)
    return final


def keep_spack_locks(work: WorkDirectory, session: Session, finished: Sequence[FinishedLaunch]) -> None:
    """Keep with the session by what solution Spack built each environment of it."""
    names = {run.launch.environment for run in finished}
    solutions = {name: SpackLayout(work.root).environment(name) / "spack.lock" for name in sorted(names)}
    kept = {
        session.directory / "spack" / f"{name}.lock": files.read_regular(path)
        for name, path in solutions.items()
        if path.exists()
    }
    files.replace_files(kept)
