"""How many launches a night takes of each case: as many as its seconds pay, and five at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from postprocess.base.formats import plural
from postprocess.base.workdir import WorkDirectory
from postprocess.model.case import LaunchPlace
from postprocess.model.plan import PlannedLaunch
from postprocess.results.launch_costs import (
    Job,
    estimate_job_seconds,
    list_jobs,
    read_seconds_of_cases,
)

#: Launches of a night, whose median is judged: it has 0.54 of their spread, and that of nine would have 0.41
NIGHT_LAUNCHES = 5
LEAST_SECONDS = 0.1  #: that a launch is taken to last


def choose_launch_counts(
    work: WorkDirectory, planned: Sequence[PlannedLaunch]
) -> dict[LaunchPlace, int]:
    """Choose the launches of each place of a plan of one launch each."""
    jobs = list_jobs(planned)
    spending = [job for job in jobs if job.launches[0].budget and not job.launches[0].exact]
    known = read_seconds_of_cases(work, spending) if spending else {}
    counts = {job.key[0]: 1 for job in jobs}
    return counts | {job.key[0]: count_job_launches(job, known) for job in spending}


def count_job_launches(job: Job, known: Mapping[LaunchPlace, float]) -> int:
    """Count how often a job is launched in a night: as often as its seconds pay, five times at most."""
    seconds = known.get(job.key[0], estimate_job_seconds(job, {}))
    paid = job.launches[0].budget // max(seconds, LEAST_SECONDS)
    return max(1, min(NIGHT_LAUNCHES, int(paid)))


def repeat_launches(
    planned: Sequence[PlannedLaunch], counts: Mapping[LaunchPlace, int]
) -> list[PlannedLaunch]:
    """Return the launches of a plan of one launch each, as often as each is made; for estimates only."""
    return [
        replace(each, number=number)
        for each in planned
        for number in range(1, counts.get(LaunchPlace.of_launch(each), 1) + 1)
    ]


def describe_launch_counts(counts: Mapping[LaunchPlace, int]) -> list[str]:
    """Describe, in a line for each number of launches beyond one, the places that get as many."""
    places: dict[int, list[str]] = {}
    for place, count in sorted(counts.items()):
        layout = f"{place.processes}x{place.per_node}"
        places.setdefault(count, []).append(f"{place.program} on {place.environment} {layout}")
    return [
        f"{plural(count, 'launch', 'es')}, whose median is judged: {', '.join(places[count])}"
        for count in sorted(places)
        if count > 1
    ]
