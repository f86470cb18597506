"""A session from beginning to end: prepare, plan, calibrate what is unknown, run, judge, keep, show."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from postprocess import alarms, atomic, expected, ledger, references_update, store
from postprocess.absent import absent, is_whole, unplanned
from postprocess.acceptance import accepted_notes
from postprocess.accumulation import samples
from postprocess.calibrating import Done, calibrate_all, family
from postprocess.cases import Case
from postprocess.common_since import since_in
from postprocess.confirmation import confirmed
from postprocess.drift_note import drift_note
from postprocess.errors import UsageError
from postprocess.expected import Expectation
from postprocess.formats import plural
from postprocess.judgement import Finished, rows, verdicts
from postprocess.leftovers import end_processes
from postprocess.measure import Pass, cancel_jobs, look_at_plan, make_plan, places, run_plan
from postprocess.plan import PlannedLaunch, planned_cases, read_plan
from postprocess.preparation import Prepared, prepare
from postprocess.progress import Progress
from postprocess.reference_book import ReferenceBook, open_book
from postprocess.reframe_driver import SESSION, Reframe, Selection
from postprocess.report import build_report
from postprocess.rounds import Demand
from postprocess.store import read_sessions
from postprocess.summaries import parse_summary
from postprocess.summary_file import Session, document, write_summary
from postprocess.tables import verdict_table
from postprocess.verdicts import CaseResult, exit_status
from postprocess.workdir import WorkDirectory
from site_configs.machine import busy_share, cpu_times
from spack_envs.layout import Layout

#: Of a calibration that nobody asked for, by program; too few for more than provisional references. One of
#: OSU or IMB takes minutes, and each of its values is a mean already.
AUTOMATIC_LAUNCHES = {"mpicost": 5, "osu": 1, "imb": 1}
LOOK_SECONDS = 0.5  #: for which the machine is watched before anything is measured
BUSY_SHARE = 0.15  #: of all CPUs; a quiet machine's daemons need far less


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    mode: str
    command: Sequence[str]
    site: str
    selection: Selection
    families: Sequence[str] | None = None
    strict: bool = False
    json_file: Path | None = None
    rerun_options: Sequence[str] = ()  #: that a case measured again must be given too
    #: Where a calibration writes, and where references are looked for first.
    references: Path | None = None


@dataclass(frozen=True)
class Desk:
    """What every step of a session needs."""

    work: WorkDirectory
    request: Request
    prepared: Prepared
    progress: Progress

    @property
    def reference_roots(self) -> list[Path]:
        """Where references are looked for, the first first."""
        chosen = [self.request.references] if self.request.references else []
        return chosen + self.work.reference_roots

    def open_session(self, mode: str) -> tuple[Session, Reframe]:
        """A new session, and a ReFrame that works in it."""
        directory = self.work.new_session()
        request = self.request
        session = Session(directory, mode, request.site, request.command, request.strict)
        spack = self.prepared.spack.executable if self.prepared.spack else None
        roots = self.reference_roots
        return session, Reframe(self.work.source, self.work.root, directory, roots, spack)


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
            excuses = expected.load(desk.reference_roots, systems)
            whole = is_whole(request.selection) and not request.families
            gone = absent(desk.reference_roots, planned) if whole else []
            gone += unplanned(book, planned, work.provisional) if whole else []
        say_plan(planned, progress)
        if not request.strict:
            book = calibrate_unknown(desk, planned, book)
        with progress.phase("running"):
            done = run_plan(reframe, request.selection, planned, progress)
        progress.move("running", "build", done.build_seconds)
        with progress.phase("analysis"):
            results = verdicts(done.finished, book, request.site, request.rerun_options)
            for line in accepted_notes(done.finished, book):
                progress.note(line)
        measure = partial(measure_again, desk, book)
        since = partial(since_in, work.store)
        results = confirmed(
            results, done.finished, book, request.selection, measure, progress, since
        )
        results = excused(desk, sorted([*results, *gone], key=by_case), excuses, whole)
        if request.mode == "nightly":
            log_alarms(desk, session, results)
        return keep(desk, session, done.finished, results)


def log_alarms(desk: Desk, session: Session, results: Sequence[CaseResult]) -> None:
    """Log what this night was alarmed by. A log that cannot be written is told, and ends no night."""
    logged = alarms.night_of(session.name, session.started_utc, session.site, results)
    try:
        alarms.append(desk.work.root / alarms.FILE, logged)
    except UsageError as error:
        desk.progress.note(str(error))


def excused(
    desk: Desk,
    results: Sequence[CaseResult],
    known: dict[str, list[Expectation]],
    whole: bool,
) -> list[CaseResult]:
    """The results, with what fails as a reviewed file expects; what is wrong with that file is noted."""
    today = datetime.now(timezone.utc).date()
    for line in expected.notes(results, known, today, whole):
        desk.progress.note(line)
    return expected.applied(results, known, today)


def measure_again(desk: Desk, book: ReferenceBook, selection: Selection) -> list[Finished]:
    """Fresh launches of some cases, in a session of their own that is kept like any other."""
    request = desk.request
    session, _, done = measure_apart(desk, "confirm", "confirming", selection)
    results = verdicts(done.finished, book, request.site, request.rerun_options)
    keep(desk, session, done.finished, results)
    return done.finished


def measure_apart(
    desk: Desk, mode: str, phase: str, selection: Selection
) -> tuple[Session, list[PlannedLaunch], Pass]:
    """Plan and run a selection in a session of its own."""
    session, reframe = desk.open_session(mode)
    planned, done = measure_in(desk, reframe, phase, selection)
    return session, planned, done


def measure_in(
    desk: Desk, reframe: Reframe, phase: str, selection: Selection
) -> tuple[list[PlannedLaunch], Pass]:
    """Plan and run a selection in the session of this ReFrame."""
    with desk.progress.phase(phase):
        planned = make_plan(reframe, selection)
        done = run_plan(reframe, selection, planned, desk.progress)
    desk.progress.move(phase, "build", done.build_seconds)
    return planned, done


def by_case(result: CaseResult) -> Case:
    """What results are sorted by."""
    return result.case


def calibration(work: WorkDirectory, request: Request, progress: Progress, demand: Demand) -> int:
    """Measure references because the user asks for it. Returns the exit status."""
    with work.held():
        desk = open_desk(work, request, progress)
        root = request.references or work.provisional
        _, reframe = desk.open_session("list")
        with progress.phase("set-up"):
            planned = look_at_plan(reframe, request.selection)
        say_plan(planned, progress)
        run = partial(calibrate, desk, root, None)
        read = partial(ledger.read, work.root)
        return calibrate_all(planned, request.selection, demand, read, run, progress)


def open_desk(work: WorkDirectory, request: Request, progress: Progress) -> Desk:
    """Set up what the session needs, after ending what an earlier one left running."""
    for name in end_processes(SESSION, f"{work.sessions}/", prefix=True):
        progress.note(f"ended a process that an earlier session left behind: {name}")
    cancel_jobs(work.sessions.glob("*"), "an earlier session", progress)
    for line in ledger.gather(work.root):
        progress.note(line)
    with progress.phase("set-up"):
        prepared = prepare(work, request.site, request.families, progress)
    progress.say(f"built with {prepared.built_with}")
    if prepared.inventory:
        note_other_work(progress)
    return Desk(work, request, prepared, progress)


def note_other_work(progress: Progress) -> None:
    """Say so if others use this machine now: what is measured beside them, references too, is theirs."""
    before = cpu_times()
    time.sleep(LOOK_SECONDS)
    share = busy_share(before, cpu_times())
    if share > BUSY_SHARE:
        progress.note(
            f"other work keeps this machine {share:.0%} busy: do not trust these times, and calibrate "
            "again when it is quiet (./plumbline calibrate)"
        )


def say_plan(planned: Sequence[PlannedLaunch], progress: Progress) -> None:
    """What is going to run."""
    cases = plural(len(planned_cases(planned)), "case")
    environments = ", ".join(sorted({launch.environment for launch in planned}))
    counts = ", ".join(str(count) for count in sorted({launch.processes for launch in planned}))
    progress.say(f"{cases} on {environments} at {counts} processes")


def calibrate_unknown(
    desk: Desk, planned: Sequence[PlannedLaunch], book: ReferenceBook
) -> ReferenceBook:
    """Calibrate the cases of environments that have no reviewed references; the book with them.

    An environment with a reviewed file keeps its gaps: they are ``no-reference``, and loud.
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
        and any(book.reference(case) is None for case in launch.cases)
    ]
    if not unknown:
        return book
    for launches in sorted({automatic_launches(launch) for launch in unknown}):
        calibrate_some(
            desk, book, [each for each in unknown if automatic_launches(each) == launches], launches
        )
    return open_book(desk.reference_roots, places(planned))


def automatic_launches(launch: PlannedLaunch) -> int:
    """How often a launch is calibrated that nobody calibrated; simulated time repeats."""
    return 1 if launch.exact else AUTOMATIC_LAUNCHES[launch.program]


def calibrate_some(
    desk: Desk, book: ReferenceBook, unknown: Sequence[PlannedLaunch], launches: int
) -> None:
    """Calibrate the cases of these launches that have no reference."""
    worth = (
        "simulated time repeats"
        if all(launch.exact for launch in unknown)
        else "such references are provisional and assert gross changes only (./plumbline calibrate "
        "measures better ones)"
    )
    programs = sorted({launch.program for launch in unknown})
    environments = sorted({launch.environment for launch in unknown})
    desk.progress.note(
        f"no references yet of {', '.join(programs)} for {', '.join(environments)}: "
        f"calibrating with {plural(launches, 'launch', 'es')} each; {worth}"
    )
    chosen = desk.request.selection
    counts = sorted({launch.processes for launch in unknown})
    choice = {**chosen.choice, "processes": counts, "programs": programs}
    selection = replace(chosen, environments=environments, choice=choice, launches=launches)
    missing = {case for case in planned_cases(unknown) if book.reference(case) is None}
    calibrate(desk, desk.work.provisional, missing, selection)


def calibrate(
    desk: Desk, root: Path, only: set[Case] | None, selection: Selection, afresh: bool = False
) -> Done:
    """One pass of a calibration: a session of its own, whose launches are kept and become references.

    :param only: cases that may be written; None for all
    :param afresh: whether earlier launches of these cases count no more
    """
    progress, work = desk.progress, desk.work
    session, reframe = desk.open_session("calibrate")
    opened = ledger.open_calibration(
        session.directory, selection.set_env, selection.oversubscribe, afresh
    )
    try:
        planned, done = measure_in(desk, reframe, "calibration", selection)
    except BaseException:  # interrupted, too: what ended well counts
        for line in ledger.gather(work.root):
            progress.say(line)
        raise
    new = ledger.taken(opened, session.directory, done.finished)
    ledger.keep(work.root, session.name, new)
    try:
        references_update.refuse_mixed(new)
        cases = {case for case in samples(new) if only is None or case in only}
        known = ledger.read(work.root)
        for path in references_update.update(root, known, cases, only is not None):
            progress.say(f"references: {path}")
    finally:  # what was measured is kept even if no reference can follow from it
        book = open_book([root, *desk.reference_roots], places(planned))
        request = desk.request
        results = verdicts(done.finished, book, request.site, request.rerun_options)
        keep(desk, session, done.finished, results)
    return Done(new, {family(each.case) for each in results if exit_status([each], False)})


def keep(
    desk: Desk, session: Session, finished: Sequence[Finished], results: Sequence[CaseResult]
) -> int:
    """Show the verdicts, then store every trial and write summary and report; the exit status.

    The verdicts come first, so that a full disk cannot hide them.
    """
    progress, request = desk.progress, desk.request
    status = exit_status(results, session.strict)
    data = document(
        session, desk.prepared, finished, results, status, progress.notes, progress.phases
    )
    shown = session.mode == request.mode  # not the calibration that a night begins with
    if shown:
        verdict_table(parse_summary(data), progress.console.width)
    with progress.phase("analysis"):
        markdown, html = write_files(desk.work, session, finished, results, data)
    if shown:
        if request.json_file:
            write_summary(request.json_file, data)
        if session.mode == "nightly" and (line := drift_note(desk.work.store)):
            progress.say(line)
        progress.say(f"time: {progress.split()}")
        progress.say(f"report: {html} and {markdown.name}; trials: {desk.work.store}")
    return status


def write_files(
    work: WorkDirectory,
    session: Session,
    finished: Sequence[Finished],
    results: Sequence[CaseResult],
    data: dict[str, Any],
) -> tuple[Path, Path]:
    """Everything that stays of a session; the report's two files.

    :raises UsageError: if something cannot be written. What is written by then is whole.
    """
    store_trials(work, session, finished, results)
    write_summary(session.directory / "summary.json", data)
    keep_locks(work, session)
    return build_report(session.directory, read_sessions(work.store, [session.name]))


def store_trials(
    work: WorkDirectory,
    session: Session,
    finished: Sequence[Finished],
    results: Sequence[CaseResult],
) -> None:
    """Put every trial of a session into the store."""
    stored = work.store / f"{session.name}{store.SUFFIX}"
    kept = rows(session.name, session.started_utc, finished, results, session.mode)
    store.write_session(stored, kept)


def keep_locks(work: WorkDirectory, session: Session) -> None:
    """Keep with the session by what solution Spack built each environment of it."""
    names = {launch.environment for launch in read_plan(session.directory)}
    solutions = {name: Layout(work.root).environment(name) / "spack.lock" for name in sorted(names)}
    kept = {
        session.directory / "spack" / f"{name}.lock": path.read_bytes()
        for name, path in solutions.items()
        if path.exists()
    }
    atomic.replace(kept)


def check_json_file(path: Path | None) -> None:
    """Find out before measuring whether the summary can be written where it is asked for.

    :raises UsageError: if it cannot.
    """
    if path is None:
        return
    try:
        existed = path.exists()
        path.open("a").close()
        if not existed:
            path.unlink()
    except OSError as error:
        raise UsageError(f"--json {path}: {error.strerror}; choose another file") from None
