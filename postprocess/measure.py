"""One pass of ReFrame over the selected checks: plan, run, and what became of every planned launch."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from postprocess import reframe_report
from postprocess.errors import UsageError
from postprocess.judgement import Finished
from postprocess.launches import outcome
from postprocess.leftovers import end_processes
from postprocess.plan import PlannedLaunch, read_plan
from postprocess.programs import read_program
from postprocess.progress import Progress
from postprocess.reframe_driver import SESSION, Reframe, Selection

#: ReFrame's line for the end of a test: result, how many of how many, and the test's name.
ENDED = re.compile(r"\[\s+(OK|FAIL|SKIP|XFAIL|XPASS|ABORT)\s*\] \(\s*(\d+)/(\d+)\) (.*)")
STARTED = re.compile(r"\[ RUN\s+\] (.*)")
HASH = re.compile(r" /[0-9a-f]{8} ")
COMPLAINT = re.compile(r"(ERROR|WARNING): (?P<what>.*)")
TAIL = 15  #: lines of ReFrame's output that are shown when it fails


@dataclass(frozen=True)
class Pass:
    """Everything that came of one pass."""

    finished: list[Finished]
    build_seconds: float
    run_seconds: float


def make_plan(reframe: Reframe, selection: Selection) -> list[PlannedLaunch]:
    """What the selection would run, from a dry run of the checks.

    :raises UsageError: if a check or the site does not load, or the selection matches nothing.
    """
    process = reframe.start(selection, "--dry-run")
    output = list(reframe.lines(process))
    launches = read_plan(reframe.session)
    if process.returncode != 0:
        raise UsageError(f"{complaint(output)} (all of it: {reframe.log})")
    if not any(launch.cases for launch in launches):
        raise UsageError(
            "the selection matches no case: ./plumbline list shows environments, routines and counts"
        )
    return launches


def complaint(output: Sequence[str]) -> str:
    """The line in which ReFrame says what is wrong."""
    found = [match["what"] for line in output if (match := COMPLAINT.search(line))]
    last = [line for line in output if line.strip()][-1:] or ["no output"]
    return f"ReFrame refuses: {(found or last)[0]}"


def run_plan(
    reframe: Reframe, selection: Selection, planned: Sequence[PlannedLaunch], progress: Progress
) -> Pass:
    """Run what was planned and find out what became of each launch. Nothing planned gets lost."""
    begin = time.monotonic()
    process = reframe.start(selection, "--run")
    output = []
    try:
        for line in reframe.lines(process):
            output.append(line)
            show(line, progress)
    finally:
        process.terminate() if process.poll() is None else None
        for name in end_processes(SESSION, str(reframe.session)):
            progress.note(f"ended a process that was left behind: {name}")
    entries = reframe_report.read_report(reframe.report)
    if not entries:
        progress.note(f"ReFrame left no report: {complaint(output)}")
    builds = sum(entry.seconds for entry in entries if entry.fixture)
    finished = [finish(launch, reframe, entries) for launch in planned]
    return Pass(finished, builds, time.monotonic() - begin - builds)


def show(line: str, progress: Progress) -> None:
    """Pass on what ReFrame says of the start and the end of a test."""
    if match := ENDED.match(line):
        result, number, total, name = match.groups()
        progress.say(f"  {number}/{total} {result.lower():<5} {short(name)}")
    elif match := STARTED.match(line):
        progress.now(short(match.group(1)))


def short(name: str) -> str:
    """ReFrame's name of a test case without its hash."""
    return HASH.sub(" ", name)


def finish(
    launch: PlannedLaunch, reframe: Reframe, entries: Sequence[reframe_report.Entry]
) -> Finished:
    """What became of one planned launch."""
    entry = reframe_report.find(entries, launch.test, launch.partition, launch.environment)
    blocked = reframe_report.blocked_by(entries, entry) if entry else ""
    return Finished(
        launch=launch,
        outcome=outcome(launch, reframe.session, entry, blocked),
        seconds=entry.seconds if entry else 0.0,
        directory=entry.directory if entry else "",
        asserted=entry.results if entry else {},
        spec=spec_of(reframe.work, launch),
    )


def spec_of(work: Path, launch: PlannedLaunch) -> str:
    """From what the launch's program was built; empty if it was not."""
    try:
        return read_program(work, launch.environment, launch.program).spec
    except UsageError:
        return ""


def places(launches: Iterable[PlannedLaunch]) -> set[tuple[str, str]]:
    """The (``system:partition``, environment) pairs of a plan."""
    return {(launch.partition, launch.environment) for launch in launches}
