"""A night from beginning to end: prepare, plan, calibrate what is unknown, run, judge, keep, show."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from postprocess.analyses.alarms import log
from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.judging.common_cause_onset import since_in
from postprocess.judging.confirmation import confirmed
from postprocess.judging.evaluate import verdicts
from postprocess.judging.missing_cases import Asked, absent, is_whole, unplanned
from postprocess.judging.notes import accepted_notes, fast_notes
from postprocess.model.case import Case
from postprocess.model.launch import Finished
from postprocess.model.plan import places
from postprocess.model.session import Request, Selection, Session
from postprocess.model.verdict import CaseResult
from postprocess.references import expected_failures
from postprocess.references.catalog import ReferenceBook, open_book
from postprocess.references.expected_failures import Expectation
from postprocess.references.trial_count import unusual
from postprocess.runner.reframe_pass import make_plan, run_plan
from postprocess.session.calibrate import calibrate_unknown
from postprocess.session.context import Desk, measure_apart, open_desk, say_plan
from postprocess.session.finish import keep


def night(work: WorkDirectory, request: Request, progress: Progress) -> int:
    """Measure and judge. Returns the exit status.

    :raises UsageError: for anything that is the user's to mend.
    """
    with work.held():
        desk = open_desk(work, request, progress)
        session, reframe = desk.open_session(request.mode)
        with progress.phase("set-up"):
            planned = make_plan(reframe, request.selection)
            book = open_book(desk.reference_roots, places(planned))
            systems = {place.partition(":")[0] for place, _ in places(planned)}
            reviewed = [root for root in desk.reference_roots if root != work.provisional]
            excuses = expected_failures.load(reviewed, systems)
            whole = is_whole(request.selection) and not request.families
            asked = Asked(request.selection, request.families)
            gone = absent(desk.reference_roots, planned, work.provisional, asked)
            gone += unplanned(book, planned, work.provisional, asked)
        say_plan(planned, progress)
        for line in unusual(planned):
            progress.say(line)
        if not request.strict:
            book = calibrate_unknown(desk, planned, book)
        with progress.phase("running"):
            done = run_plan(reframe, request.selection, planned, progress)
        progress.move("running", "build", done.build_seconds)
        with progress.phase("analysis"):
            results = verdicts(done.finished, book, request.site, request.rerun_options)
            for line in accepted_notes(done.finished, book):
                progress.note(line)
            for line in fast_notes(results, book, request.site):
                progress.note(line)
        measure = partial(measure_again, desk, book)
        since = partial(since_in, work.store)
        try:
            results = confirmed(
                results, done.finished, book, request.selection, measure, progress, since
            )
        except BaseException:  # a signal, too: what was measured is kept, what looked slow stands
            progress.note(
                "ended before what looked slow was measured again: it counts as regressed"
            )
            results = excused(desk, sorted([*results, *gone], key=by_case), excuses, whole)
            log_alarms(desk, session, results, looked_again=False)
            keep(desk, session, done.finished, results)
            raise
        results = excused(desk, sorted([*results, *gone], key=by_case), excuses, whole)
        log_alarms(desk, session, results)
        return keep(desk, session, done.finished, results)


def log_alarms(
    desk: Desk, session: Session, results: Sequence[CaseResult], looked_again: bool = True
) -> None:
    """Log what a session was alarmed by, if it was a night. A log that cannot be written ends none."""
    if session.mode != "nightly":
        return
    begun = session.name, session.started_utc, session.site
    logged = log.night_of(*begun, results, looked_again)
    try:
        log.append(desk.work.root / log.FILE, logged)
    except UsageError as error:
        desk.progress.note(str(error))


def excused(
    desk: Desk,
    results: Sequence[CaseResult],
    known: dict[str, list[Expectation]],
    whole: bool,
) -> list[CaseResult]:
    """Mark expected failures (see ``expected.tsv``) and report stale or invalid entries of that file."""
    today = expected_failures.utc_today()
    for line in expected_failures.notes(results, known, today, whole):
        desk.progress.note(line)
    return expected_failures.applied(results, known, today)


def measure_again(desk: Desk, book: ReferenceBook, selection: Selection) -> list[Finished]:
    """Fresh launches of some cases, in a session of their own that is kept like any other."""
    request = desk.request
    session, _, done = measure_apart(desk, "confirm", "confirming", selection)
    results = verdicts(done.finished, book, request.site, request.rerun_options)
    keep(desk, session, done.finished, results)
    return done.finished


def by_case(result: CaseResult) -> Case:
    """What results are sorted by."""
    return result.case
