"""Finalise a session: print verdicts, store trials, write summary and report, keep Spack lock files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from postprocess.analyses.drift.text import drift_note
from postprocess.base import files
from postprocess.base.files import write_summary
from postprocess.base.workdir import WorkDirectory
from postprocess.model.launch import FinishedLaunch
from postprocess.model.session import Session
from postprocess.model.verdict import CaseResult, compute_exit_status
from postprocess.report import trial_selection
from postprocess.report.session_report import build_report
from postprocess.report.terminal import print_verdict_table
from postprocess.results import store
from postprocess.results.rows import build_rows
from postprocess.results.summary import SessionSummary, summarise_session
from postprocess.session.context import SessionContext
from spack_envs.layout import SpackLayout


def finish_session(
    context: SessionContext,
    session: Session,
    finished: Sequence[FinishedLaunch],
    results: Sequence[CaseResult],
) -> int:
    """Show the verdicts, then store every trial and write summary and report; the exit status.

    The verdicts come first, so that a full disk cannot hide them.
    """
    summary = build_session_summary(
        context, session, finished, results, compute_exit_status(results, session.strict)
    )
    if is_main_session(context, session):
        print_verdict_table(summary, context.progress.console.width)
    with context.progress.phase("analysis"):
        markdown, html = write_files(context.work, session, finished, summary)
    where = f"report: {html} and {markdown.name}; trials: {context.work.store}"
    return end_session(context, session, summary, where)


def is_main_session(context: SessionContext, session: Session) -> bool:
    """Return whether a session is the one that was asked for, not the calibration that a night begins with."""
    return session.mode == context.request.mode


def build_session_summary(
    context: SessionContext,
    session: Session,
    finished: Sequence[FinishedLaunch],
    results: Sequence[CaseResult],
    status: int,
) -> SessionSummary:
    """Build the summary of a session that ends with this status, with all that was noted until now."""
    progress, prepared = context.progress, context.prepared
    mpis = prepared.inventory.mpis if prepared.inventory else ()
    told = progress.notes, progress.phases
    return summarise_session(session, prepared.built_with, mpis, finished, results, status, *told)


def end_session(
    context: SessionContext, session: Session, summary: SessionSummary, where: str
) -> int:
    """Write the summary where it was asked for, and say where all is; the exit status."""
    progress, request = context.progress, context.request
    if is_main_session(context, session):
        if request.json_file:
            write_summary(request.json_file, summary.to_dict())
        if session.mode == "nightly" and (line := drift_note(context.work.store)):
            progress.say(line)
        progress.say(f"time: {progress.split()}")
        progress.say(where)
    return summary.exit_status


def write_files(
    work: WorkDirectory,
    session: Session,
    finished: Sequence[FinishedLaunch],
    summary: SessionSummary,
) -> tuple[Path, Path]:
    """Write everything that stays of a session; return the report's two files.

    :raises UsageError: if something cannot be written. What is written by then is whole.
    """
    store_trials(work, session, finished, summary.results)
    write_summary(session.directory / "summary.json", summary.to_dict())
    keep_spack_locks(work, session, finished)
    return build_report(session.directory, summary, trial_selection.of_launches(finished))


def store_trials(
    work: WorkDirectory,
    session: Session,
    finished: Sequence[FinishedLaunch],
    results: Sequence[CaseResult],
) -> None:
    """Put every trial of a session into the store."""
    stored = work.store / f"{session.name}{store.SUFFIX}"
    kept = build_rows(session.name, session.started_utc, finished, results, session.mode)
    store.write_session(stored, kept)


def keep_spack_locks(
    work: WorkDirectory, session: Session, finished: Sequence[FinishedLaunch]
) -> None:
    """Keep with the session by what solution Spack built each environment of it."""
    names = {each.launch.environment for each in finished}
    solutions = {
        name: SpackLayout(work.root).environment(name) / "spack.lock" for name in sorted(names)
    }
    kept = {
        session.directory / "spack" / f"{name}.lock": path.read_bytes()
        for name, path in solutions.items()
        if path.exists()
    }
    files.replace_files(kept)
