"""Keep what sessions have measured that were killed before they could store it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.os_errors import describe_fault
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.ledger import assess_without_report
from postprocess.model.launch import FinishedLaunch
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.results import store
from postprocess.results.store import build_rows

MODE = "interrupted"  #: of the rows: they are of no night
#: the test of every launch of a site's own ReFrame: a session of them holds copies
IMPORTED = "imported"
LOOKED_AT = "interrupted"  #: file in the directory of a session that need not be looked at again
REASON = "the session was interrupted before it was judged"


def store_interrupted(work: WorkDirectory) -> Iterator[str]:
    """Store the launches that ended well in interrupted sessions; a line for each that left some.

    To be called while no session runs, and before anything is built anew. Launches of simulated machines are
    left out, as :func:`assess_without_report` does; so are sessions of which a launch was slowed on purpose or
    verified data alone, and imports, which can be had again.
    """
    for directory in sorted(work.sessions.glob("*/plan")):
        session = directory.parent
        kept = work.store / f"{session.name}{store.SUFFIX}"
        if kept.exists() or any((session / each).exists() for each in (LOOKED_AT, "summary.json")):
            continue
        if any(directory.glob(f"{IMPORTED}.*")):
            continue
        try:
            count = store_launches(work, session, kept)
        except Exception as error:  # one session of before must not stop all to come
            why = error if isinstance(error, UsageError) else f"{session}: {describe_fault(error)}"
            yield f"launches of an interrupted session are not stored: {why}"
        else:
            if count:
                yield (f"session {session.name} was interrupted: its launches that ended are stored: {count}")
            (session / LOOKED_AT).touch()


def store_launches(work: WorkDirectory, session: Path, kept: Path) -> int:
    """Store the launches of a session that ended well. Returns how many there are.

    :raises UsageError: if its plan is damaged, or the store cannot be written.
    """
    ended = list(assess_without_report(work.root, session))
    finished = [run for run in ended if run.outcome.records]
    if not finished or any(run.launch.planted or run.launch.validation for run in ended):
        return 0
    started = read_start(session)
    rows = [
        row for run in finished for row in build_rows(session.name, started, [run], leave_unjudged(run), MODE)
    ]
    store.write_session(kept, rows)
    return len(finished)


def leave_unjudged(launch: FinishedLaunch) -> list[CaseResult]:
    """Return a result for each case of a launch: its failure, or else that it was never judged."""
    failures = {case: launch.failure(case) for case in launch.launch.cases}
    return [
        CaseResult(case, failure.verdict, failure.reason)
        if failure and failure.verdict
        else CaseResult(case, Verdict.NO_REFERENCE, REASON)
        for case, failure in failures.items()
    ]


def read_start(session: Path) -> str:
    """Read when a session started off its name.

    :raises UsageError: if it is not named as sessions are.
    """
    try:
        started = datetime.strptime(session.name.partition("-")[0], "%Y%m%dT%H%M%SZ")
    except ValueError:
        fix = "give it back its name, or move it elsewhere"
        raise UsageError(f"{session}: is not named after its time; {fix}") from None
    return started.replace(tzinfo=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
