"""Estimate the cost of a night on a site, before anything ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from postprocess.base.formats import align_rows, duration, plural
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.model.plan import PlannedLaunch
from postprocess.results.launch_costs import (
    ROUGH_RATE,
    ROUGH_SIZE,
    ROUGH_START,
    ROUGH_TRIAL,
    Job,
    describe_flush,
    estimate_job_seconds,
    list_jobs,
    read_job_seconds,
)
from postprocess.session.nightly.calibrate import choose_automatic_launches
from site_configs.topology.layouts import Layout

HEAD = ("partition", "environment", "launches", "cases", "nodes", "time", "node-hours")


@dataclass(frozen=True)
class NightCost:
    """What launches take. Nodes are exclusive: a launch on a part of a node costs all of it.

    A simulated machine costs the one node on which it is simulated.
    """

    launches: int
    cases: int
    nodes: int  #: of the largest launch; simulated ones where the machine is
    seconds: float
    node_seconds: float

    @property
    def words(self) -> tuple[str, ...]:
        """For the table, as far as its columns are numbers."""
        hours = f"{self.node_seconds / 3600:.2f}"
        counts = (str(number) for number in (self.launches, self.cases, self.nodes))
        return (*counts, duration(self.seconds), hours)


def estimate_night_cost(launches: Sequence[PlannedLaunch], known: dict) -> NightCost:
    """Estimate the cost of some launches together."""
    together = list_jobs(launches)
    nodes = list(map(count_job_nodes, together))
    exact = [job.launches[0].exact for job in together]
    taken = [1 if simulated else count for simulated, count in zip(exact, nodes, strict=True)]
    seconds = [estimate_job_seconds(each, known) for each in together]
    return NightCost(
        launches=sum(len(job.launches) for job in together),
        cases=len({case for launch in launches for case in launch.cases}),
        nodes=max(nodes, default=0),
        seconds=sum(seconds),
        node_seconds=sum(count * each for count, each in zip(taken, seconds, strict=True)),
    )


def count_job_nodes(job: Job) -> int:
    """Count the nodes that a job needs."""
    first = job.launches[0]
    return len(Layout(first.processes, first.per_node).ranks_per_host)


def show_costs(
    work: WorkDirectory,
    path: Path,
    night: Sequence[PlannedLaunch],
    others: Sequence[PlannedLaunch],
    progress: Progress,
) -> None:
    """Show the table of a night's cost on each partition with each environment, and its sum."""
    known = read_job_seconds(work)
    places = dict.fromkeys((launch.partition, launch.environment) for launch in night)
    rows: list[tuple[str, ...]] = [HEAD]
    for place in places:
        own = [launch for launch in night if (launch.partition, launch.environment) == place]
        rows.append((place[0].partition(":")[2], place[1], *estimate_night_cost(own, known).words))
    for row in align_rows(rows, texts=2):
        progress.say(row)
    total = estimate_night_cost(night, known)
    sums = f"{plural(total.cases, 'case')} in {plural(total.launches, 'launch', 'es')}"
    hours = f"{total.node_seconds / 3600:.2f} node-hours"
    progress.say(f"{path}: a night is {sums}: about {duration(total.seconds)} and {hours}")
    for line in (describe_estimate(night, known), *describe_flush(night)):
        progress.say(line)
    first = estimate_night_cost(repeat_for_calibration(night), known)
    sums = f"{plural(first.launches, 'launch', 'es')} more: about {duration(first.seconds)}"
    hours = f"{first.node_seconds / 3600:.2f} node-hours"
    progress.say(f"a night without references calibrates first, {sums} and {hours}")
    if others:
        more = estimate_night_cost(others, known)
        sums = f"{plural(more.cases, 'case')} in {plural(more.launches, 'launch', 'es')}"
        progress.say(f"checks that are no part of a night: {sums}")


def repeat_for_calibration(night: Sequence[PlannedLaunch]) -> list[PlannedLaunch]:
    """Return the launches of a night as often as a first calibration makes each of them."""
    return [
        replace(launch, number=number)
        for launch in night
        if launch.number == 1
        for number in range(1, choose_automatic_launches(launch) + 1)
    ]


def describe_estimate(launches: Sequence[PlannedLaunch], known: dict) -> str:
    """Describe the source of the estimate: measured in this work directory, or a rule of thumb."""
    together = list_jobs(launches)
    measured = sum(job.key in known for job in together)
    rest = len(together) - measured
    parts = [f"{plural(measured, 'job')} as long as the last time"] if measured else []
    thumb = (
        f"{ROUGH_START:g} s a start, {ROUGH_TRIAL * 1e3:g} ms a trial, {ROUGH_SIZE:g} s a size, "
        f"{ROUGH_RATE / 1e9:g} GB/s"
    )
    parts += [f"{plural(rest, 'job')} roughly, {thumb}"] if rest else []
    return f"estimated: {'; '.join(parts)}; whole nodes, no waiting in a queue"
