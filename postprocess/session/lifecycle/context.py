"""Session context: request, work directory, prepared environments; and what killed sessions measured."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from rich.console import Console

from postprocess.base.errors import NOT_CHOSEN, UsageError, choose_environment
from postprocess.base.formats import parse_utc, plural
from postprocess.base.os_errors import describe_fault
from postprocess.base.processes import end_processes
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.ledger import assess_without_report, recover_interrupted
from postprocess.calibration.machine_load import note_other_work
from postprocess.model.launch import FinishedLaunch
from postprocess.model.options import BYTES, ROUTINE
from postprocess.model.plan import PlannedLaunch, list_places, list_planned_cases
from postprocess.model.routines.mpicost import NUMBER, OWN_PROGRAM, ROUTINES
from postprocess.model.session import Request, Selection, Session
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.parsers.transports import TransportPath
from postprocess.references.catalog import ReferenceCatalog, load_catalog
from postprocess.results import store
from postprocess.results.launch_costs import describe_flush
from postprocess.results.query import FRESH
from postprocess.results.store import SUFFIX, build_rows, list_sessions
from postprocess.runner.reframe import ReframeDriver, RefusedError
from postprocess.runner.reframe_pass import PassRecord, cancel_jobs, preview_plan, run_again, run_plan
from postprocess.runner.reframe_server import ReframeServer
from postprocess.setup import PreparedMachine, prepare_machine
from site_configs.mpi.inventory import Inventory
from site_configs.mpi.layers import explain_override
from site_configs.schema.variables import SESSION

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
    """Read when a session started off its name. Raises UsageError if it is not named as sessions are."""
    try:
        started = datetime.strptime(session.name.partition("-")[0], "%Y%m%dT%H%M%SZ")
    except ValueError:
        fix = "give it back its name, or move it elsewhere"
        raise UsageError(f"{session}: is not named after its time; {fix}") from None
    return started.replace(tzinfo=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


BACKWARDS = timedelta(minutes=2)  #: that a clock may be set back without a word
LONG = timedelta(days=365)  #: without a session
LIST = "list"  #: the mode that only lists what would run


def describe_clock(work: WorkDirectory, now: datetime | None = None) -> Iterator[str]:
    """Describe, in a line, a clock that is behind a stored session, or far ahead of all of them.

    :param now: of the clock; None for this machine's
    """
    now = now or datetime.now(timezone.utc)
    begun = {}
    if not work.store.is_dir():
        return
    for path in list_sessions(work.store):
        try:
            begun[path] = parse_utc(read_start(path.with_name(path.name.removesuffix(SUFFIX))))
        except UsageError:
            continue
    if not begun:
        return
    last = max(begun, key=lambda path: (begun[path], path.name))
    when, today = (f"{each:%Y-%m-%d %H:%M} UTC" for each in (begun[last], now))
    if begun[last] > now + BACKWARDS:
        what = f"time went backwards: it is {today}, and a stored session began on {when}"
        fix = f"set the clock, or, if it was ahead then, remove {last}"
        yield f"{what}; until then drift, ages and histories leave such sessions out; {fix}"
    elif now - begun[last] > LONG:
        what = f"it is {today}, and the last stored session began on {when}"
        yield f"{what}; if the clock is wrong, set it and remove this session from the store"


@dataclass(frozen=True)
class SessionContext:
    """What every step of a session needs."""

    work: WorkDirectory
    request: Request
    prepared: PreparedMachine
    progress: Progress
    #: What libraries said of their transports since the command began, by partition, environment and
    #: class of pairs
    heard: dict[tuple[str, str, str], Sequence[TransportPath]] = field(default_factory=dict)
    #: The nodes of each such start, of those between nodes
    nodes: dict[tuple[str, str, str], list[frozenset[str]]] = field(default_factory=dict)
    #: Facts of nodes that launches saw since the command began, by partition and node
    node_facts: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    #: A start that told this and ended well, by partition and environment: launches run as it did
    proven: dict[tuple[str, str], FinishedLaunch] = field(default_factory=dict)

    @property
    def reference_roots(self) -> list[Path]:
        """Where references are looked for, the first first."""
        chosen = [self.request.references] if self.request.references else []
        return chosen + self.work.reference_roots

    def open_session(self, mode: str) -> tuple[Session, ReframeDriver]:
        """Open a new session, and a ReFrame that works in it.

        One of fresh launches is never strict: what is suspect there fails the session that they are taken for.
        """
        directory = self.work.new_session()
        request = self.request
        strict = request.strict and not mode.endswith(FRESH)
        session = Session(directory, mode, request.site, request.command, strict)
        spack = self.prepared.spack.executable if self.prepared.spack else None
        where = self.work.source, self.work.root, directory, self.reference_roots
        return session, ReframeDriver(*where, spack, self.prepared.usable_nodes, self.progress)

    @property
    def quiet(self) -> SessionContext:
        """The same, showing nothing of its progress."""
        return replace(self, progress=Progress(Console(quiet=True)))

    def preview(self, selection: Selection) -> list[PlannedLaunch]:
        """Plan a selection in a session that is removed. Raises UsageError as :func:`preview_plan` does."""
        _, reframe = self.open_session(LIST)
        return preview_plan(reframe, selection)

    def load_references(self, planned: Sequence[PlannedLaunch]) -> ReferenceCatalog:
        """Load the references of a plan. Raises UsageError for the first file with a fault."""
        return load_catalog(self.reference_roots, list_places(planned))


def open_session_context(work: WorkDirectory, request: Request, progress: Progress) -> SessionContext:
    """Set up what the session needs, after ending what an earlier one left running."""
    progress.traces = work.faults
    if ReframeServer.running:  # of an earlier session of this process
        ReframeServer.running.stop()
    for name in end_processes(SESSION, f"{work.sessions}/", prefix=True):
        progress.note(f"ended a process that an earlier session left behind: {name}")
    ReframeServer.find(work.sessions)  # loads ReFrame meanwhile
    cancel_jobs(work.sessions.glob("*"), "an earlier session", progress)
    for line in [*describe_clock(work), *recover_interrupted(work.root), *store_interrupted(work)]:
        progress.note(line)
    with progress.phase("set-up"):
        prepared = prepare_machine(work, request.site, request.families, progress)
    request = resolve_environments(work, request, prepared)
    progress.say(f"built with {prepared.built_with}")
    if prepared.inventory and request.mode != LIST:  # which measures nothing
        note_other_work(progress)
    return SessionContext(work, request, prepared, progress)


@contextmanager
def refused_session(session: Session) -> Iterator[None]:
    """Remove a session that is refused before anything was measured, unless the error names its log."""
    try:
        yield
    except RefusedError:
        raise
    except UsageError:
        shutil.rmtree(session.directory, ignore_errors=True)
        raise


def resolve_environments(work: WorkDirectory, request: Request, prepared: PreparedMachine) -> Request:
    """Replace the names of environments that a user gave by those that are meant: ``mpich`` by its release.

    :raises UsageError: naming the option, for a name that is meant for none or for several, or for variables of
        an environment that was not chosen
    """
    selection = request.selection
    if not selection.environments and not selection.set_env:
        return request
    known = prepared.list_environments(work, request.site)
    if not known:  # of a site file with a fault, which ReFrame refuses
        return request
    found = [choose_environment("--environment", word, known) for word in selection.environments]
    full = {name: choose_environment("--set-env", name, known) for name in selection.set_env}
    if other := next((name for name in full if found and full[name] not in found), ""):
        raise UsageError(f"--set-env {other}: {NOT_CHOSEN}")
    set_env: dict[str, dict[str, str]] = {}
    for name, pairs in selection.set_env.items():
        set_env.setdefault(full[name], {}).update(pairs)
    for name, pairs in set_env.items():
        refuse_override(prepared.inventory, name, pairs, f"--set-env {name}")
    chosen = replace(selection, environments=list(dict.fromkeys(found)), set_env=set_env)
    again = [name_in_full(word, full) for word in request.rerun_options]
    return replace(request, selection=chosen, rerun_options=again)


def list_prefixes(inventory: Inventory | None) -> dict[str, str]:
    """List where each MPI of this machine is installed, by environment; none on a site that declares them."""
    return {mpi.name: mpi.prefix for mpi in inventory.mpis} if inventory else {}


def refuse_override(inventory: Inventory | None, environment: str, names: Collection[str], option: str) -> None:
    """Refuse variables with which an MPI would run on another library than the one below it.

    :raises UsageError: naming the option
    """
    mpis = inventory.mpis if inventory else ()
    for mpi in (each for each in mpis if each.name == environment):
        if problem := explain_override(mpi, names):
            raise UsageError(f"{option}: {problem}")


def name_in_full(word: str, full: Mapping[str, str]) -> str:
    """Return an option of a rerun with the full name of its environment; other options as they are.

    :param full: the full name of each environment that variables were set for
    """
    flag, sign, rest = word.partition("=")
    name, colon, assignment = rest.partition(":")
    return f"{flag}{sign}{full[name]}{colon}{assignment}" if flag == "--set-env" else word


def report_plan(
    planned: Sequence[PlannedLaunch], progress: Progress, choice: Mapping[str, Any] | None = None
) -> None:
    """Report the plan, and which of the sizes that a ``choice`` asks for mpicost leaves out."""
    cases = plural(len(list_planned_cases(planned)), "case")
    environments = ", ".join(sorted({launch.environment for launch in planned}))
    counts = ", ".join(str(count) for count in sorted({launch.processes for launch in planned}))
    progress.say(f"{cases} on {environments} at {counts} processes")
    for line in [*describe_flush(planned), *describe_left_out_sizes(planned, choice or {})]:
        progress.say(line)


def describe_left_out_sizes(planned: Sequence[PlannedLaunch], choice: Mapping[str, Any]) -> list[str]:
    """Describe the sizes asked for that some routines of mpicost do not have, if it is launched."""
    named = ROUTINE.wanted(choice)
    lacking = [
        (routine.name, size)
        for routine in ROUTINES
        for size in BYTES.wanted(choice)
        if (routine.name in named if named else routine.test) and not routine.has_size(size)
    ]
    if not lacking or not any(launch.program == OWN_PROGRAM and launch.cases for launch in planned):
        return []
    sizes = ",".join(str(size) for size in dict.fromkeys(size for _, size in lacking))
    routines = ", ".join(dict.fromkeys(routine for routine, _ in lacking))
    return [f"--bytes {sizes}: not measured of {routines}, which compute with {NUMBER}-byte numbers"]


def measure_in_new_session(
    context: SessionContext, mode: str, phase: str, selection: Selection
) -> tuple[Session, list[PlannedLaunch], PassRecord]:
    """Run a part of what is planned already in a session of its own."""
    session, reframe = context.open_session(mode)
    return session, *measure_in_session(context, reframe, phase, selection)


def measure_in_session(
    context: SessionContext,
    reframe: ReframeDriver,
    phase: str,
    selection: Selection,
    planned: list[PlannedLaunch] | None = None,
) -> tuple[list[PlannedLaunch], PassRecord]:
    """Run a plan in the session of this ReFrame. The time of its builds counts as a phase of its own.

    :param planned: the plan of this session; None for a part of an earlier one, which is planned while it runs
    """
    progress = context.progress
    with progress.phase(phase):
        if planned is None:
            planned, done = run_again(reframe, selection, progress)
        else:
            done = run_plan(reframe, selection, planned, progress)
    progress.move(phase, "build", done.build_seconds)
    return planned, done
