"""How long the jobs of a session took. ReFrame times a job; its starts share its directory and its time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from postprocess.case_places import LaunchPlace
from postprocess.summaries import Launch


@dataclass(frozen=True)
class TimedJob:
    """The starts of one program, one after the other on the same processors."""

    place: LaunchPlace
    number: int  #: 1 for the first launch of its cases in the session
    cases: int
    seconds: float
    ended_well: bool  #: every start of it


def timed_jobs(launches: Iterable[Launch]) -> list[TimedJob]:
    """The jobs of a session that had anything to measure, in the order of their first starts."""
    found: dict[tuple[str, LaunchPlace, int], list[Launch]] = {}
    for each in launches:
        if each.cases:
            job = each.directory, LaunchPlace.of_launch(each), each.launch
            found.setdefault(job, []).append(each)
    return [
        TimedJob(
            place,
            number,
            sum(start.cases for start in starts),
            max(start.seconds for start in starts),
            all(start.outcome == "ok" for start in starts),
        )
        for (_, place, number), starts in found.items()
    ]
