"""What launches took: the start, and each trial, from the summaries and records of the sessions that made them.

ReFrame times a job from its submission to its end, waiting in a queue included. mpicost tells in its end record
how long it ran; that over its trials is the cost of a trial, flush and control messages included, and the rest
of the job's time is the start.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from postprocess.case_places import LaunchPlace
from postprocess.errors import UsageError
from postprocess.launch_times import TimedJob, timed_jobs
from postprocess.plan import PlannedLaunch, read_plan
from postprocess.summaries import load_summary
from postprocess.trial_budget import Cost

TAIL = 65536  #: bytes at the end of a file of records, in which its end record is


@dataclass(frozen=True)
class WholeLaunch:
    """One launch of all cases of a place, and what it took."""

    place: LaunchPlace
    cases: int
    seconds: float  #: of its jobs
    inside: float = 0.0  #: of that, mpicost's own time
    trials: int = 0  #: of each case


def costs_of(sessions: Iterable[Path]) -> dict[LaunchPlace, Cost]:
    """The cost of a launch by place: the median of those that measured most cases there.

    A session without summary, plan or records tells nothing.
    """
    found: dict[LaunchPlace, list[WholeLaunch]] = {}
    for session in sessions:
        for each in whole_launches(session):
            found.setdefault(each.place, []).append(each)
    return {place: cost_of(some) for place, some in found.items()}


def cost_of(some: Iterable[WholeLaunch]) -> Cost:
    """What launches of one place cost: the median of those that measured most cases."""
    known = list(some)
    most = max(each.cases for each in known)
    whole = [each for each in known if each.cases == most]
    start = median(max(each.seconds - each.inside, 0.0) for each in whole)
    return Cost(start, median(each.inside / each.trials if each.trials else 0.0 for each in whole))


def whole_launches(session: Path) -> Iterator[WholeLaunch]:
    """The launches of a session that all ended well, of each place."""
    try:
        launches = load_summary(session / "summary.json").launches
        planned = read_plan(session)
    except UsageError:
        return
    found: dict[tuple[LaunchPlace, int], list[TimedJob]] = {}
    for job in timed_jobs(launches):
        found.setdefault((job.place, job.number), []).append(job)
    for (place, number), jobs in found.items():
        if not all(job.ended_well and job.seconds for job in jobs):
            continue
        cases, seconds = sum(job.cases for job in jobs), sum(job.seconds for job in jobs)
        own = [each for each in planned if each.cases and where(each) == (place, number)]
        if place.program != "mpicost":
            yield WholeLaunch(place, cases, seconds)
        elif (told := inside(session, own)) is not None:
            yield WholeLaunch(place, cases, seconds, *told)


def where(launch: PlannedLaunch) -> tuple[LaunchPlace, int]:
    """Place and number of a planned launch."""
    return LaunchPlace.of_launch(launch), launch.number


def inside(session: Path, planned: list[PlannedLaunch]) -> tuple[float, int] | None:
    """mpicost's own seconds in these launches, and the trials of each case; None if that is not told."""
    trials = {each.trials for each in planned}
    seconds = [elapsed(each.records(session)) for each in planned]
    if len(trials) != 1 or any(each is None for each in seconds):
        return None
    return sum(each for each in seconds if each is not None), trials.pop()


def elapsed(records: Path) -> float | None:
    """Seconds that mpicost ran, by the end record of its file; None if there is none."""
    try:
        with records.open("rb") as file:
            file.seek(max(records.stat().st_size - TAIL, 0))
            last = json.loads(file.read().splitlines()[-1])
        return float(last["elapsed"]) if last["record"] == "end" else None
    except (OSError, ValueError, TypeError, LookupError):
        return None
