"""What would run, and about how long it would take."""

from __future__ import annotations

import json

from postprocess.formats import duration, plural, size
from postprocess.measure import make_plan
from postprocess.night import Request, open_desk
from postprocess.plan import PlannedLaunch
from postprocess.progress import Progress
from postprocess.workdir import WorkDirectory

ROUGH_TRIAL = (
    0.006  #: seconds of a trial where nothing is known: mostly the flushing of a large cache
)
ROUGH_START = 1.0  #: seconds to start a launch


def list_cases(work: WorkDirectory, request: Request, progress: Progress) -> int:
    """Print every case that would run, then how many and about how long. Measures nothing."""
    with work.held():
        desk = open_desk(work, request, progress)
        _, reframe = desk.open_session("list")
        planned = make_plan(reframe, request.selection)
    known = known_seconds(work)
    for launch in planned:
        print(f"{launch.partition} {launch.environment} {launch.processes} processes")
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
    """The sizes of each routine of a launch."""
    found: dict[str, list[str]] = {}
    for case in launch.cases:
        found.setdefault(case.label, []).append(size(case.bytes) if case.bytes else "no payload")
    return found


def key(launch: PlannedLaunch) -> tuple[str, str, int, int]:
    """What decides how long a launch takes."""
    return launch.partition, launch.environment, launch.processes, len(launch.cases)


def estimate(launch: PlannedLaunch, known: dict[tuple[str, str, int, int], float]) -> float:
    """Seconds that a launch takes: as it did last time, or roughly."""
    return known.get(key(launch), ROUGH_START + len(launch.cases) * launch.trials * ROUGH_TRIAL)


def known_seconds(work: WorkDirectory) -> dict[tuple[str, str, int, int], float]:
    """How long launches took in earlier sessions, the newest last."""
    known: dict[tuple[str, str, int, int], float] = {}
    for path in sorted(work.sessions.glob("*/summary.json")):
        try:
            summary = json.loads(path.read_text())
        except (OSError, ValueError):
            continue
        known |= launches_of(summary)
    return known


def launches_of(summary: dict) -> dict[tuple[str, str, int, int], float]:
    """The wall times in one summary."""
    cases: dict[tuple[str, str, int], int] = {}
    for case in summary["cases"]:
        place = (f"{case['system']}:{case['partition']}", case["environment"], case["processes"])
        cases[place] = cases.get(place, 0) + 1
    found = {}
    for launch in summary["launches"]:
        place = (launch["partition"], launch["environment"], launch["processes"])
        if launch["outcome"] == "ok":
            found[(*place, cases.get(place, 0))] = launch["seconds"]
    return found
