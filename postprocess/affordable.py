"""How many launches of a plan fit into some seconds, by what such launches took before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from postprocess.case_places import LaunchPlace
from postprocess.errors import UsageError
from postprocess.formats import duration, plural
from postprocess.launch_costs import WholeLaunch, cost_of, where, whole_launches
from postprocess.listing import estimate, jobs
from postprocess.plan import PlannedLaunch
from postprocess.progress import Progress
from postprocess.rounds import Demand
from postprocess.trial_budget import Cost, fitting
from postprocess.workdir import WorkDirectory

Costs = Mapping[tuple[LaunchPlace, int], Cost]  #: by place and number of cases


def affordable(
    work: WorkDirectory, planned: Sequence[PlannedLaunch], demand: Demand, progress: Progress
) -> Demand:
    """The demand in launches, where it was told in seconds; the same one where it was not.

    :raises UsageError: if not even one launch fits
    """
    if demand.seconds is None:
        return demand
    once, sure = once_through(planned, known_costs(work))
    launches = fitting(demand.seconds, once)
    about = f"one launch of everything takes about {duration(once)}"
    if not sure:
        about += " (roughly: not all of it was measured here yet)"
    if launches < 1:
        fix = "give more, or choose less to measure"
        raise UsageError(f"--seconds {demand.seconds}: {about}; {fix}")
    progress.say(f"{about}: {plural(launches, 'launch', 'es')} in {duration(demand.seconds)}")
    return replace(demand, launches=launches, seconds=None)


def once_through(planned: Sequence[PlannedLaunch], known: Costs) -> tuple[float, bool]:
    """Seconds of one launch of all of a plan with its trials; and whether all of it was measured before."""
    total, sure = 0.0, True
    some = sorted((each for each in planned if each.cases), key=where)
    for (place, _), members in groupby(some, key=where):
        launches = list(members)
        cost = known.get((place, sum(len(each.cases) for each in launches)))
        if cost is None:
            sure = False
            total += sum(estimate(job, {}) for job in jobs(launches))
        else:
            total += cost.seconds(launches[0].trials)
    return total, sure


def known_costs(work: WorkDirectory) -> Costs:
    """What launches took in all sessions that are still there."""
    found: dict[tuple[LaunchPlace, int], list[WholeLaunch]] = {}
    for session in sorted(path.parent for path in work.sessions.glob("*/summary.json")):
        for each in whole_launches(session):
            found.setdefault((each.place, each.cases), []).append(each)
    return {key: cost_of(some) for key, some in found.items()}
