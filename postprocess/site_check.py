"""Checks a site file: all that is wrong with it, and what a night on it costs. ``lint`` of a site is this."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from postprocess.errors import UsageError
from postprocess.formats import duration, plural
from postprocess.listing import ROUGH_START, ROUGH_TRIAL, estimate, key, known_seconds
from postprocess.measure import make_plan
from postprocess.night import AUTOMATIC_LAUNCHES
from postprocess.plan import PlannedLaunch
from postprocess.preparation import site_file
from postprocess.progress import Progress
from postprocess.reframe_driver import SESSION, Reframe, Selection
from postprocess.reframe_report import read_report
from postprocess.workdir import WorkDirectory
from site_configs import site_faults, site_here
from site_configs.common import ONLY_LOOKING
from site_configs.ladder import Layout
from site_configs.reading import Fault, Reading, from_json
from site_configs.scheduler import Scheduler

READ_SECONDS = 120  #: for running a site file; one that asks a scheduler may take a while
HEAD = ("partition", "environment", "launches", "cases", "nodes", "time", "node-hours")


def check(work: WorkDirectory, site: str, progress: Progress) -> int:
    """Check the site of a name or path; 1 if something is wrong."""
    path = site_file(work.source, site)
    found = problems(work, path, progress)
    for problem in found:
        progress.say(problem)
    progress.say(f"{path}: {'ok' if not found else f'{len(found)} wrong'}")
    return 1 if found else 0


def problems(work: WorkDirectory, path: Path, progress: Progress) -> list[str]:
    """All that is wrong with a site file, one line each; the costs of a night are said where nothing is."""
    reading = read_site(work, path)
    found, scheduler = file_problems(reading, path, progress)
    if found:
        return found
    progress.say(f"{path}: trying every check on it, without running any")
    try:
        with progress.phase("dry run"):
            night, others = dry_run(work, path)
    except UsageError as error:
        return [f"{path}: {error}"]
    show_costs(work, path, night, others, progress)
    return [f"{path}: {text}" for text in too_long(reading, night, scheduler)]


def file_problems(
    reading: Reading, path: Path, progress: Progress
) -> tuple[list[str], Scheduler | None]:
    """What is wrong with the file itself, and on its machine with what is there; the machine's scheduler."""
    found, scheduler = site_faults.faults(reading), None
    if not found and site_here.is_here(reading):
        here = site_here.look()
        found, scheduler = site_here.faults(reading, here), here.scheduler
    elif not found:
        patterns = ", ".join(reading.configuration["systems"][0]["hostnames"])
        progress.say(
            f"note: this host is none of {patterns} (hostnames), so modules, compilers and scheduler are "
            "not looked at"
        )
    return [f"{place(path, fault)}: {fault.text}" for fault in found], scheduler


def place(path: Path, fault: Fault) -> str:
    """Where a fault is, as editors and compilers write it."""
    return f"{path}:{fault.line}" if fault.line else str(path)


def read_site(work: WorkDirectory, path: Path) -> Reading:
    """What a site file says, read by a process of its own.

    :raises UsageError: if that does not end well: the file is a program.
    """
    variables = {name: value for name, value in os.environ.items() if name != SESSION}
    variables |= {"PLUMBLINE_HOME": str(work.root), ONLY_LOOKING: "0"}
    with tempfile.TemporaryDirectory(prefix="plumbline-site-") as scratch:
        result = Path(scratch, "reading.json")
        command = [sys.executable, "-m", "site_configs.reading", str(path), str(result)]
        try:
            ended = subprocess.run(
                command,
                cwd=work.source,
                env=variables,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=READ_SECONDS,
                check=False,
            )
            return from_json(result.read_text())
        except subprocess.TimeoutExpired:
            raise UsageError(
                f"{path}: does not end within {READ_SECONDS} s when it is run"
            ) from None
        except OSError:
            said = (ended.stderr.strip() or f"exit code {ended.returncode}").splitlines()[-1]
            raise UsageError(f"{path}: ended the process that reads it: {said}") from None


def dry_run(work: WorkDirectory, path: Path) -> tuple[list[PlannedLaunch], list[PlannedLaunch]]:
    """The launches of a night, and those of checks that no night runs. An error leaves its log for people.

    :raises UsageError: if ReFrame refuses the site under any check.
    """
    reframe = Reframe(work.source, work.root, work.new_session(), work.reference_roots, None)
    selection = Selection(path, tag="", only_looking=True)
    launches = [launch for launch in make_plan(reframe, selection) if launch.cases]
    nightly = {each.test for each in read_report(reframe.report) if Selection.tag in each.tags}
    shutil.rmtree(reframe.session, ignore_errors=True)
    night = [launch for launch in launches if launch.test in nightly]
    return night, [launch for launch in launches if launch.test not in nightly]


@dataclass(frozen=True)
class Cost:
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


def cost(launches: Sequence[PlannedLaunch], known: dict) -> Cost:
    """What these launches take together."""
    nodes = [len(Layout(each.processes, each.per_node).ranks_per_host) for each in launches]
    taken = [1 if each.exact else count for each, count in zip(launches, nodes, strict=True)]
    seconds = [estimate(each, known) for each in launches]
    return Cost(
        launches=len(launches),
        cases=sum(len(each.cases) for each in launches),
        nodes=max(nodes, default=0),
        seconds=sum(seconds),
        node_seconds=sum(count * each for count, each in zip(taken, seconds, strict=True)),
    )


def show_costs(
    work: WorkDirectory,
    path: Path,
    night: Sequence[PlannedLaunch],
    others: Sequence[PlannedLaunch],
    progress: Progress,
) -> None:
    """The table of what a night takes on each partition with each environment, and its sum."""
    known = known_seconds(work)
    places = dict.fromkeys((each.partition, each.environment) for each in night)
    rows = [HEAD]
    for place in places:
        own = [each for each in night if (each.partition, each.environment) == place]
        rows.append((place[0].partition(":")[2], place[1], *cost(own, known).words))
    for row in aligned(rows):
        progress.say(row)
    total = cost(night, known)
    sums = f"{plural(total.cases, 'case')} in {plural(total.launches, 'launch', 'es')}"
    hours = f"{total.node_seconds / 3600:.2f} node-hours"
    progress.say(f"{path}: a night is {sums}: about {duration(total.seconds)} and {hours}")
    progress.say(how_estimated(night, known))
    progress.say(
        f"a night without references calibrates first: about {1 + AUTOMATIC_LAUNCHES} times that"
    )
    if others:
        more = cost(others, known)
        sums = f"{plural(more.cases, 'case')} in {plural(more.launches, 'launch', 'es')}"
        progress.say(f"checks that are no part of a night: {sums}")


def how_estimated(launches: Sequence[PlannedLaunch], known: dict) -> str:
    """Where the estimate is from: what was measured in this work directory, else a rule of thumb."""
    measured = sum(key(each) in known for each in launches)
    rest = len(launches) - measured
    parts = [f"{plural(measured, 'launch', 'es')} as long as the last time"] if measured else []
    thumb = f"{ROUGH_START:g} s and {ROUGH_TRIAL * 1e3:g} ms a trial"
    parts += [f"{plural(rest, 'launch', 'es')} roughly, {thumb}"] if rest else []
    return f"estimated: {'; '.join(parts)}; whole nodes, no waiting in a queue"


def aligned(rows: Sequence[Sequence[str]], texts: int = 2) -> list[str]:
    """Rows as lines with their columns under each other: the first ones are texts, the others numbers."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            word.ljust(width) if column < texts else word.rjust(width)
            for column, (word, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def too_long(
    reading: Reading, night: Sequence[PlannedLaunch], scheduler: Scheduler | None
) -> list[str]:
    """Launches that may take longer than their queue lets a job run: they would wait for ever."""
    found = []
    for partition in reading.configuration["systems"][0]["partitions"]:
        limit = site_here.longest(partition, scheduler)
        own = [each for each in night if each.partition.partition(":")[2] == partition["name"]]
        longest = max(own, key=lambda each: each.time_limit, default=None)
        if limit and longest and longest.time_limit > limit:
            layout = f"{longest.processes} processes, {longest.per_node} per node"
            asked = f"a launch of {layout} asks for {duration(longest.time_limit)}"
            fix = "name a queue for longer jobs in access, or fewer nodes in the topology"
            found.append(
                f"partition {partition['name']!r}: {asked}, and its queue ends jobs after "
                f"{duration(limit)}; {fix}"
            )
    return found
