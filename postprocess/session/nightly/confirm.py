"""Measure again what is slow or in doubt: further launches of a night, or a session of its own.

A session that lies 20 minutes after the one before is independent of it. Three that are slow call a case
regressed (:mod:`postprocess.stats.detection`), so that two further sessions decide most of what a night
suspects.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.formats import duration, parse_utc, plural
from postprocess.base.progress import Progress, format_left
from postprocess.base.workdir import WorkDirectory
from postprocess.judging.confirmation import select_retest
from postprocess.judging.evaluate import evaluate_launches
from postprocess.judging.suspicion import SessionHistory, decide_suspicion, list_suspects, read_history
from postprocess.model.case import Case, LaunchPlace
from postprocess.model.launch import FinishedLaunch
from postprocess.model.plan import list_places
from postprocess.model.session import CONFIRM_SHARE, Request, Selection
from postprocess.model.verdict import JUDGED, LOOKED_SLOW, CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog, load_catalog
from postprocess.results.query import CONFIRM, FRESH, JUDGING, NIGHTS
from postprocess.results.summary import SessionSummary, SummaryError, load_summary
from postprocess.session.lifecycle.context import SessionContext, measure_in_new_session, open_session_context
from postprocess.session.lifecycle.finish import finish_session
from postprocess.session.lifecycle.past import write_earlier_pages
from postprocess.session.nightly.estimate import NIGHT_LAUNCHES
from postprocess.session.nightly.transports import TransportProof, prove_measured
from postprocess.stats.detection import APART_MINUTES


def run_confirmation(work: WorkDirectory, request: Request, progress: Progress) -> int:
    """Measure again what is suspect where it was measured last. Returns the exit status.

    :raises UsageError: if no session was judged yet
    """
    judged = list_judged_sessions(work.sessions, request.site)
    if not judged:
        raise UsageError("no nightly run of this site is there; run ./plumbline nightly first")
    suspects, started = find_undecided(judged)
    if not suspects:
        progress.say(f"nothing is suspect in the last session, {judged[0].session}")
        return 0
    wait_until_apart(started, progress)
    with work.held():
        context = open_session_context(work, replace(request, mode=CONFIRM), progress)
        return confirm_suspects(context, suspects)


def confirm_within(work: WorkDirectory, request: Request, progress: Progress, minutes: int, status: int) -> int:
    """Measure again what a night left suspect, until all is decided or so many minutes are over.

    :return: the worst of all sessions
    """
    end = time.monotonic() + 60.0 * minutes
    while time.monotonic() + 60.0 * APART_MINUTES <= end:
        judged = list_judged_sessions(work.sessions, request.site)
        if not find_undecided(judged)[0]:
            break
        status = max(status, run_confirmation(work, request, progress))
        if list_judged_sessions(work.sessions, request.site)[0].session == judged[0].session:
            break  # it decided nothing: what keeps it from that is to be mended first
    return status


NIGHTS_BACK = 4  #: a night of other cases decides nothing on what one before it suspects


def list_judged_sessions(sessions: Path, site: str) -> list[SessionSummary]:
    """List the last sessions of a site that judged cases, the newest first: nights, and those of ``confirm``.

    One whose summary cannot be read is passed over.
    """
    later: list[SessionSummary] = []
    for path in sorted(sessions.glob("*/summary.json"), reverse=True):
        try:
            found = load_summary(path)
        except SummaryError:
            continue
        if found.site == site:
            later.append(found)
        if sum(summary.mode in NIGHTS for summary in later) == NIGHTS_BACK:
            break
    return [summary for summary in later if summary.mode in JUDGING]


def find_undecided(judged: Iterable[SessionSummary]) -> tuple[list[Case], str]:
    """Find the cases that are suspect where they were measured last, and when the last such session began.

    :param judged: sessions, the newest first
    """
    suspects: list[Case] = []
    measured: set[Case] = set()
    started = ""
    for told in judged:
        if own := [case for case in list_suspects(told.results) if case not in measured]:
            suspects += own
            started = max(started, told.started_utc)
        measured |= {result.case for result in told.results if result.value is not None}
    return suspects, started


def wait_until_apart(started: str, progress: Progress) -> None:
    """Wait until a session that begins now is independent of the one that started then (UTC)."""
    end = parse_utc(started).timestamp() + 60.0 * APART_MINUTES
    left = end - datetime.now(timezone.utc).timestamp()
    if left <= 0:
        return
    told = f"sessions that lie {APART_MINUTES} minutes apart are independent"
    progress.say(f"{told}: the next one begins in {duration(left)}")
    with progress.phase("waiting"):
        while (left := end - datetime.now(timezone.utc).timestamp()) > 0:
            progress.now(f"waiting for {format_left(left)} to measure again what is suspect")
            time.sleep(min(left, 1.0))


def confirm_suspects(context: SessionContext, suspects: Sequence[Case]) -> int:
    """Measure suspects in a session of their own, and judge each by all of its sessions; the exit status."""
    places = dict.fromkeys(suspects, ())
    counts = dict.fromkeys(map(LaunchPlace.of, suspects), NIGHT_LAUNCHES)
    context.progress.say(f"measuring {plural(len(suspects), 'suspect case')} again")
    selection = select_retest(context.request.selection, places, 1, counts)
    session, planned, done = measure_in_new_session(context, CONFIRM, "running", selection)
    catalog = load_catalog(context.reference_roots, list_places(planned))
    history = read_history(context.work.store, suspects)
    proof, ended = TransportProof({}), None
    try:
        with context.progress.keeping("transports"):
            proof = prove_measured(context, selection, done.finished)
    except BaseException as error:  # raised again when all is kept
        ended = error
    results = judge_suspects(context.request, done.finished, catalog, suspects, history)
    results = proof.apply(results)
    lost = len(suspects) - len(results)
    if lost:
        context.progress.note(f"{plural(lost, 'suspect case')} could not be measured again")
    status = finish_session(context, session, done.finished, results, whole=not lost)
    with context.progress.keeping("pages of the night before (./plumbline report SESSION tries again)"):
        write_earlier_pages(context.work, session.name)
    status = status or int(bool(context.progress.faults))
    if ended:
        raise ended
    return status


def judge_suspects(
    request: Request,
    finished: Sequence[FinishedLaunch],
    catalog: ReferenceCatalog,
    suspects: Sequence[Case],
    history: SessionHistory,
) -> list[CaseResult]:
    """Judge each suspect by this session and those before; what was measured beside them stays as it is."""
    results = evaluate_launches(finished, catalog, request.site, request.rerun_options)
    wanted = set(suspects)
    found = [
        decide_suspect(result, catalog, history) if result.case in wanted else result for result in results
    ]
    return [result for result in found if result.case in wanted or result.verdict == Verdict.INCORRECT]


def decide_suspect(result: CaseResult, catalog: ReferenceCatalog, history: SessionHistory) -> CaseResult:
    """Decide on a suspect: cleared if it is inside its band now."""
    if result.verdict in JUDGED - LOOKED_SLOW and not result.elsewhere:
        return replace(result, verdict=Verdict.CLEARED, reason="suspect before, and not slow now")
    value = result.headline if result.by_headline else result.value
    reference = catalog.reference(result.case, result.core_latency)
    return decide_suspicion(result, [value] if value else [], reference, history)


def measure_again(
    context: SessionContext, catalog: ReferenceCatalog, selection: Selection
) -> list[FinishedLaunch]:
    """Launch some cases again, in a session of their own that is kept like any other.

    What is slow in it is suspect there, as a row of sessions decides, not these launches alone.
    """
    request = context.request
    mode = request.mode + FRESH
    session, _, done = measure_in_new_session(context, mode, "confirming", selection)
    results = [
        replace(result, verdict=Verdict.SUSPECT) if result.verdict is Verdict.REGRESSED else result
        for result in evaluate_launches(done.finished, catalog, request.site, request.rerun_options)
    ]
    finish_session(context, session, done.finished, results)
    return done.finished


def wait_for_another_moment(minutes: int | None, began: float, progress: Progress) -> None:
    """Wait before what is still slow is measured further: what slows a moment is over by then, or is shown.

    :param minutes: to wait; None for a share of what the night took, so that no night becomes much longer
    :param began: when the night began, by the monotonic clock in seconds
    """
    end = time.monotonic()
    end += (end - began) / CONFIRM_SHARE if minutes is None else 60.0 * minutes
    if end <= time.monotonic():
        return
    told = f"still slow: further launches in {format_left(end - time.monotonic())}"
    progress.say(f"{told} (--confirm-after 0 does not wait for them)")
    with progress.phase("waiting"):
        while (left := end - time.monotonic()) > 0:
            progress.now(f"waiting for {format_left(left)} to measure again what is slow")
            time.sleep(min(left, 1.0))
