"""One pass of ReFrame over the selected checks: plan them, run them, and assess every planned launch."""

import os
import re
import shutil
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from postprocess.base import files
from postprocess.base.errors import UsageError, propose_word
from postprocess.base.processes import end_processes
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.judging.outcome import determine_outcome
from postprocess.model.gpu import GPU, split_name
from postprocess.model.launch import FinishedLaunch
from postprocess.model.options import AGAIN, CHOOSING, PROCESSES, ROUTINE
from postprocess.model.plan import PlannedLaunch, list_planned_cases, read_plan, sync_plan, write_launch
from postprocess.model.routines.mpicost import OWN_PROGRAM, ROUTINES, WARM
from postprocess.model.routines.paper_families import LUECKE
from postprocess.model.session import Selection
from postprocess.parsers import reframe_report
from postprocess.runner.reframe import ReframeDriver, RefusedError
from site_configs.schedulers.base import WAITS, QueueError, Scheduler
from site_configs.schedulers.registry import SCHEDULERS
from site_configs.schema.variables import SESSION
from site_configs.validation.site_files import read_site
from spack_envs.installation import BuiltBinary, read_program


def end_jobs(sessions: Iterable[Path], scheduler: Scheduler) -> list[str]:
    """Cancel the jobs that these sessions left in a scheduler's queue; return their directories' names.

    The scheduler is only asked if a session sent it jobs that were not cleaned up since.

    :raises QueueError: if it does not answer or refuses; the next call can try again.
    """
    if not scheduler.mark:
        return []
    marks = [mark for session in sessions if (mark := session / scheduler.mark).exists()]
    if not marks:
        return []
    homes = {mark.parent.resolve() for mark in marks}
    texts = [files.read_text(mark) for mark in marks]
    queue = [job for job in scheduler.list_own_jobs(texts) if job.active]
    jobs = [job for job in queue if homes & set(Path(os.path.realpath(job.directory)).parents)]
    scheduler.cancel(job.number for job in jobs)
    for mark in marks:
        mark.unlink(missing_ok=True)
    return [f"{job.directory.name} ({job.number}, {job.state})" for job in jobs]


#: ReFrame's line for the end of a test: result, number, total, and the test's name with its parameters,
#: partition and environment.
ENDED = re.compile(r"\[\s+(OK|FAIL|SKIP|XFAIL|XPASS|ABORT)\s*\] \(\s*(\d+)/(\d+)\) (.*)")
STARTED = re.compile(r"\[ RUN\s+\] (.*)")
FIXTURE = re.compile(r"\S+( %\S+)* ~")  #: beginning of the name of a fixture
SHOWN_NAMES = {
    LUECKE: OWN_PROGRAM
}  #: tests under other names for people: a night measures the routines of these papers
NAMED = re.compile(r"(?P<test>\S+) .*@[^+\s]+\+(?P<environment>\S+)")
COMPLAINT = re.compile(r"(ERROR|WARNING|\* Reason): (?P<what>.*)")
#: ReFrame's text around an error of our own checks, which already says what to do.
OWN = re.compile(r"run session stopped: .*?skipping test file '[^']*': value error: (?P<what>.*?):? *")
FIX = "./plumbline list shows environments, routines and counts"


class NoCaseSelected(UsageError):
    """A selection, or a part of it, matches nothing."""


@dataclass(frozen=True)
class PassRecord:
    finished: list[FinishedLaunch]
    build_seconds: float


def make_plan(reframe: ReframeDriver, selection: Selection) -> list[PlannedLaunch]:
    """Make the plan of a selection by a dry run of the checks.

    :raises RefusedError: if a check or the site does not load.
    :raises NoCaseSelected: if the selection, or a part of it, matches nothing.
    """
    process = reframe.start(selection, "--dry-run")
    output = list(reframe.lines(process))
    launches = read_plan(reframe.session)
    if process.returncode != 0:
        fault = find_site_fault(reframe, selection)
        raise RefusedError(fault or explain_end(output, process.returncode), reframe.log)
    if stray := next(find_unplanned_tests(reframe_report.read_report(reframe.report), launches), None):
        fix = "let the check be an MpicostCheck, or take it out of reframe_checks"
        raise UsageError(f"{stray}: plans no case, so its failure would go unseen; {fix}")
    if unmatched := next(find_unmatched_parts(selection, launches), None):
        raise NoCaseSelected(f"{unmatched} matches no case: {propose_part(reframe, selection)}")
    refuse_cold_simulations(launches)
    return launches


def find_site_fault(reframe: ReframeDriver, selection: Selection) -> str:
    """Find the first fault of a site file that yields no configuration, with its line; empty if none.

    ReFrame names no line of a file that is not Python, or that ends Python.
    """
    try:
        reading = read_site(WorkDirectory(reframe.work, reframe.source), selection.site)
    except UsageError:
        return ""
    first = next(iter(reading.faults), None)
    if reading.configuration is not None or first is None:
        return ""
    where = f"{selection.site}:{first.line}" if first.line else selection.site
    return f"{where}: {first.text}"


def refuse_cold_simulations(launches: Sequence[PlannedLaunch]) -> None:
    """Refuse to cool the caches of a simulated machine: it has none, and every launch would be incorrect.

    :raises UsageError: names the partition
    """
    for launch in launches:
        if cold := next((case for case in launch.cases if launch.exact and case.cache != WARM), None):
            raise UsageError(
                f"--cache {cold.cache}: the machine {launch.partition} is simulated and has no caches; "
                f"choose --cache {WARM}, the default there"
            )


def find_unplanned_tests(
    entries: Iterable[reframe_report.ReportedTest], launches: Sequence[PlannedLaunch]
) -> Iterator[str]:
    """Find tests that ReFrame would run outside the plan, so that no verdict would cover them."""
    planned = {(launch.test, launch.partition, launch.environment) for launch in launches if launch.all_cases}
    for entry in entries:
        if not entry.fixture and (entry.test, entry.partition, entry.environment) not in planned:
            yield entry.test


def find_unmatched_parts(selection: Selection, launches: Sequence[PlannedLaunch]) -> Iterator[str]:
    """Find the parts of a selection that match no case of the plan."""
    cases = list_planned_cases(launches)
    choice = selection.choice
    if AGAIN in choice and cases:
        return  # a confirmation run measures a part of the selection, and checks for missing cases itself
    environments = {case.environment for case in cases}
    sought = [("--environment", selection.environments, environments)]
    sought += [
        (option.flag, option.wanted(choice), {option.value_of(case) for case in cases})
        for option in CHOOSING
        if option.several
    ]
    sought += [("--set-env", () if selection.environments else [*selection.set_env], environments)]
    if not cases:
        words = [f"{option} {','.join(map(str, wanted))}" for option, wanted, _ in sought if wanted]
        yield f"the selection ({' '.join(words)})" if words else "the selection"
    for option, wanted, present in sought:
        yield from (f"{option} {word}" for word in wanted if word not in present)


def propose_part(reframe: ReframeDriver, selection: Selection) -> str:
    """Propose a correction for a selection that matches nothing, or say where all choices are listed.

    A dry run of everything finds the choices.
    """
    words = [
        (option, word)
        for option in CHOOSING
        if option.several and (option.kind is str or option is PROCESSES)
        for word in option.wanted(selection.choice)
    ]
    if not words:
        return FIX
    chosen = {option.variable for option, _ in words}
    choice = {name: value for name, value in selection.choice.items() if name not in chosen}
    beside = replace(reframe, session=reframe.session / "all")
    list(beside.lines(beside.start(replace(selection, choice=choice), "--dry-run")))
    cases = list_planned_cases(read_plan(beside.session))
    for option, word in words:
        values = {option.value_of(case) for case in cases}
        if (word == GPU or split_name(str(word))[1]) and GPU not in {case.program for case in cases}:
            return "no partition here has two GPUs that the site file declares; see docs/gpu.md"
        if option is PROCESSES and values and word > max(values):
            return f"the most is {max(values)} processes here; --oversubscribe takes more than cores ({FIX})"
        values |= {routine.name for routine in ROUTINES} if option is ROUTINE else set()
        if option.kind is str and word not in values and (near := propose_word(word, values)):
            return f"{near} ({FIX})"
    return FIX


def preview_plan(reframe: ReframeDriver, selection: Selection) -> list[PlannedLaunch]:
    """Make the plan of a selection in a session that is removed, unless an error names its log.

    :raises UsageError: as :func:`make_plan` does.
    """
    kept = False
    try:
        return make_plan(reframe, selection)
    except RefusedError:
        kept = True
        raise
    finally:
        if not kept:
            shutil.rmtree(reframe.session, ignore_errors=True)


def explain_end(output: Sequence[str], status: int | None) -> str:
    """Explain why ReFrame did not do what it should: the signal that ended it, or what it complains of."""
    if status is not None and status < 0:
        return f"ReFrame was ended by signal {-status} ({signal.strsignal(-status)})"
    return extract_complaint(output)


def extract_complaint(output: Sequence[str]) -> str:
    """Extract the line in which ReFrame says what is wrong."""
    complaints = [match["what"] for line in output if (match := COMPLAINT.search(line))]
    last = [line for line in output if line.strip()][-1:] or ["no output"]
    complaint = (complaints or last)[0]
    wrapped = OWN.fullmatch(complaint)
    return wrapped["what"] if wrapped else f"ReFrame refuses: {complaint}"


def run_plan(
    reframe: ReframeDriver, selection: Selection, planned: Sequence[PlannedLaunch], progress: Progress
) -> PassRecord:
    """Run the plan and assess every launch, so that nothing planned is lost."""
    sync_plan(reframe.session)  # a dry run wrote the plan; from now on it records what was measured
    undisturbed = all(launch.exact for launch in planned)
    entries, builds = run(reframe, replace(selection, side_by_side=undisturbed), progress)
    return assess_launches(planned, reframe, entries, builds)


def run_again(
    reframe: ReframeDriver, selection: Selection, progress: Progress
) -> tuple[list[PlannedLaunch], PassRecord]:
    """Run a part of what is already planned. Its own plan is written by the checks while they run.

    If a test wrote no plan, or ReFrame no report, a dry run finds the missing launches, so that nothing is
    lost. It uses a separate directory, because the files in the run's stage directories are still to be read.

    :raises UsageError: as :func:`make_plan` does.
    """
    entries, builds = run(reframe, selection, progress)
    planned = read_plan(reframe.session)
    if not entries or any(find_unplanned_tests(entries, planned)):
        by_name = {launch.name: launch for launch in planned}
        all_of = make_plan(replace(reframe, session=reframe.session / "planned"), selection)
        planned = [by_name.get(launch.name, launch) for launch in all_of]
        for launch in planned:
            write_launch(reframe.session, launch)
    return planned, assess_launches(planned, reframe, entries, builds)


def run(
    reframe: ReframeDriver, selection: Selection, progress: Progress
) -> tuple[list[reframe_report.ReportedTest], float]:
    """Run the checks. Return ReFrame's report of each test, and the seconds in which only builds ran.

    No process of them survives.
    """
    process = reframe.start(selection, "--run")
    output, clock = [], BuildClock()
    try:
        for line in reframe.lines(process):
            output.append(line)
            clock.read(line, time.monotonic())
            show_progress_line(line, progress)
    finally:
        process.end()
        for name in end_processes(SESSION, str(reframe.session)):
            progress.note(f"ended a process that was left behind: {name}")
        cancel_jobs([reframe.session], "this session", progress)
    entries = reframe_report.read_report(reframe.report)
    if not entries:
        progress.note(f"ReFrame left no report: {explain_end(output, process.returncode)}")
    return entries, clock.seconds


@dataclass
class BuildClock:
    """The time in which only builds run, from the lines that ReFrame prints when tests begin and end."""

    running: set[str] = field(default_factory=set)  #: names of tests
    since: float = 0.0
    seconds: float = 0.0

    def read(self, line: str, now: float) -> None:
        """Process a line that came at time ``now``, in seconds."""
        begun, ended = STARTED.match(line), ENDED.match(line)
        if not begun and not ended:
            return
        if self.running and all(map(FIXTURE.match, self.running)):
            self.seconds += now - self.since
        self.since = now
        if begun:
            self.running.add(begun.group(1))
        elif ended:
            self.running.discard(ended.group(4))


def assess_launches(
    planned: Sequence[PlannedLaunch],
    reframe: ReframeDriver,
    entries: Sequence[reframe_report.ReportedTest],
    builds: float,
) -> PassRecord:
    """Assess each launch of a plan; ``builds`` are the seconds of builds."""
    return PassRecord([finish_launch(launch, reframe, entries) for launch in planned], builds)


def cancel_jobs(sessions: Iterable[Path], whose: str, progress: Progress) -> None:
    """Cancel the jobs that sessions left in a queue, and report them."""
    homes = list(sessions)
    for scheduler in SCHEDULERS:
        cancel_jobs_of(scheduler, homes, whose, progress)


def cancel_jobs_of(scheduler: Scheduler, sessions: Sequence[Path], whose: str, progress: Progress) -> None:
    """Cancel jobs as :func:`cancel_jobs` does, in the queue of one scheduler."""
    try:
        for name in end_jobs(sessions, scheduler):
            progress.note(f"cancelled a job that {whose} left in the queue: {name}")
    except (QueueError, OSError) as error:  # everything is measured: nothing may lose it now
        fix = f"{scheduler.list_jobs_command} shows them, and the next session cancels them"
        progress.note(f"jobs of {whose} may still be in the queue ({error}): {fix}")


def show_progress_line(line: str, progress: Progress) -> None:
    """Show what ReFrame prints about the start and the end of a test.

    Results of launches are not shown, because nothing is judged yet.
    """
    if match := ENDED.match(line):
        result, number, total, name = match.groups()
        progress.count(int(number), int(total))
        if result == "FAIL" and FIXTURE.match(name):
            progress.say(f"  not built: {shorten_test_name(name)}")
    elif match := STARTED.match(line):
        progress.now(shorten_test_name(match.group(1)))
    elif line.startswith(WAITS):
        progress.wait(line.removeprefix(WAITS))


def shorten_test_name(name: str) -> str:
    """Shorten ReFrame's name of a test case for people; leave it unchanged if it has another form."""
    match = NAMED.match(name)
    if not match:
        return name
    words = [match["environment"], SHOWN_NAMES.get(match["test"], match["test"])]
    words += [f"{layout} processes" for layout in re.findall(r"%layout=(\d+x\d+)", name)]
    words += [f"launch {int(number) + 1}" for number in re.findall(r"%\.repeat_no=(\d+)", name)]
    return ", ".join(words)


def finish_launch(
    launch: PlannedLaunch, reframe: ReframeDriver, entries: Sequence[reframe_report.ReportedTest]
) -> FinishedLaunch:
    entry = reframe_report.find_test_entry(entries, launch.test, launch.partition, launch.environment)
    blocked = reframe_report.find_blocking_test(entries, entry) if entry else None
    built = find_program(reframe.work, launch)
    return FinishedLaunch(
        launch=launch,
        outcome=determine_outcome(launch, reframe.session, entry, blocked),
        seconds=entry.seconds if entry else 0.0,
        directory=entry.directory if entry else "",
        asserted=entry.results if entry else {},
        spec=built.spec if built else "",
        built=built,
    )


def find_program(work: Path, launch: PlannedLaunch) -> BuiltBinary | None:
    """Return the program of a launch as built; None if it was not built."""
    try:
        return read_program(work, launch.environment, launch.program)
    except UsageError:
        return None
