"""What would run, and about how long it would take."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from postprocess.errors import UsageError
from postprocess.formats import duration, plural, size
from postprocess.measure import look_at_plan
from postprocess.night import Request, open_desk
from postprocess.plan import PlannedLaunch
from postprocess.progress import Progress
from postprocess.summaries import SessionSummary, load_summary
from postprocess.workdir import WorkDirectory

#: Seconds of a trial where nothing is known: mostly the flushing of a large cache.
ROUGH_TRIAL = 0.006
ROUGH_START = 1.0  #: seconds to start a launch

Key = tuple[
    str, str, int, int, int
]  #: partition, environment, processes, per node, number of cases


def list_cases(work: WorkDirectory, request: Request, progress: Progress) -> int:
    """Print every case that would run, then how many and about how long. Measures nothing."""
    with work.held():
        desk = open_desk(work, request, progress)
        _, reframe = desk.open_session("list")
        planned = look_at_plan(reframe, replace(request.selection, only_looking=True))
    known = known_seconds(work)
    for launch in planned:
        layout = f"{launch.processes} processes, {launch.per_node} per node"
        print(f"{launch.partition} {launch.environment} {layout}")
        for label, sizes in by_routine(launch).items():
            print(f"  {label:<16} {', '.join(sizes)}")
    total = sum(estimate(launch, known) for launch in planned)
    rough = (
        ""
        if all(key(launch) in known for launch in planned)
        else " (roughly: not all of it was measured here yet)"
    )
    cases = plural(sum(len(launch.cases) for launch in planned), "case")
    starts = plural(len(planned), "start")
    print(f"{cases} in {starts} of the program, about {duration(total)}{rough}")
    return 0


def by_routine(launch: PlannedLaunch) -> dict[str, list[str]]:
    """The sizes of each routine of a launch; ping-pong is one, however many its partners are."""
    peers = Counter(case.routine for case in launch.cases if case.peer)
    found: dict[str, dict[str, None]] = {}
    for case in launch.cases:
        shown = size(case.bytes) if case.bytes else "no payload"
        found.setdefault(case.routine, {})[shown] = None
    return {
        f"{routine} x {peers[routine] // len(sizes)}" if peers[routine] else routine: list(sizes)
        for routine, sizes in found.items()
    }


def key(launch: PlannedLaunch) -> Key:
    """What decides how long a launch takes."""
    place = (launch.partition, launch.environment)
    return (*place, launch.processes, launch.per_node, len(launch.cases))


def estimate(launch: PlannedLaunch, known: dict[Key, float]) -> float:
    """Seconds that a launch takes: as it did last time, or roughly."""
    return known.get(key(launch), ROUGH_START + len(launch.cases) * launch.trials * ROUGH_TRIAL)


def known_seconds(work: WorkDirectory) -> dict[Key, float]:
    """How long launches took in earlier sessions, the newest last."""
    known: dict[Key, float] = {}
    for path in sorted(work.sessions.glob("*/summary.json")):
        try:
            known |= launches_of(load_summary(path))
        except UsageError:
            continue  # of another version, or damaged: it tells nothing of the time
    return known


def launches_of(summary: SessionSummary) -> dict[Key, float]:
    """The wall times in one summary."""
    measured = [result.case for result in summary.results]
    cases = Counter(
        (f"{case.system}:{case.partition}", case.environment, case.processes, case.per_node)
        for case in measured
    )
    found = {}
    for launch in summary.launches:
        place = (launch.partition, launch.environment, launch.processes, launch.per_node)
        if launch.outcome == "ok":
            found[(*place, cases[place])] = launch.seconds
    return found
