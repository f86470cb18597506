"""A session from beginning to end: prepare, plan, calibrate what is unknown, run, judge, keep, show."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from postprocess import atomic, references_update, store
from postprocess.absent import absent, is_whole, unplanned
from postprocess.cases import Case
from postprocess.confirmation import confirmed
from postprocess.errors import UsageError
from postprocess.formats import plural
from postprocess.judgement import Finished, rows, verdicts
from postprocess.leftovers import end_processes
from postprocess.measure import Pass, cancel_jobs, make_plan, places, run_plan
from postprocess.plan import PlannedLaunch, planned_cases, read_plan
from postprocess.preparation import Prepared, prepare
from postprocess.progress import Progress
from postprocess.reference_book import ReferenceBook, open_book
from postprocess.reframe_driver import SESSION, Reframe, Selection
from postprocess.report import build_report
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
        if request.mode == "nightly":
            measure = partial(measure_again, desk, book)
            results = confirmed(results, book, request.selection, measure, progress)
        return keep(desk, session, done.finished, sorted([*results, *gone], key=by_case))


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
    with desk.progress.phase(phase):
        planned = make_plan(reframe, selection)
        done = run_plan(reframe, selection, planned, desk.progress)
    desk.progress.move(phase, "build", done.build_seconds)
    return session, planned, done


def by_case(result: CaseResult) -> Case:
    """What results are sorted by."""
    return result.case


def calibration(work: WorkDirectory, request: Request, progress: Progress) -> int:
    """Measure references because the user asks for it. Returns the exit status."""
    with work.held():
        desk = open_desk(work, request, progress)
        root = request.references or work.provisional
        return calibrate(desk, request.selection, root, only=None)


def open_desk(work: WorkDirectory, request: Request, progress: Progress) -> Desk:
    """Set up what the session needs, after ending what an earlier one left running."""
    for name in end_processes(SESSION, f"{work.sessions}/", prefix=True):
        progress.note(f"ended a process that an earlier session left behind: {name}")
    cancel_jobs(work.sessions.glob("*"), "an earlier session", progress)
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
    calibrate(desk, selection, desk.work.provisional, only=missing)


def calibrate(desk: Desk, selection: Selection, root: Path, only: set | None) -> int:
    """One calibration: a session of its own, whose launches become references. Returns its exit status."""
    progress = desk.progress
    session, planned, done = measure_apart(desk, "calibrate", "calibration", selection)
    try:
        for path in references_update.update(root, session, done.finished, only):
            progress.say(f"references: {path}")
    finally:  # what was measured is kept even if no reference can follow from it
        book = open_book([root, *desk.reference_roots], places(planned))
        request = desk.request
        results = verdicts(done.finished, book, request.site, request.rerun_options)
        status = keep(desk, session, done.finished, results)
    return status


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
    stored = work.store / f"{session.name}{store.SUFFIX}"
    store.write_session(stored, rows(session.name, session.started_utc, finished, results))
    write_summary(session.directory / "summary.json", data)
    keep_locks(work, session)
    return build_report(session.directory, read_sessions(work.store, [session.name]))


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
