"""What launches took: the start, and each trial, from the summaries and records of the sessions that made them.

ReFrame times a job from its submission to its end, waiting in a queue included. mpicost tells in its end record
how long it ran; that over its trials is the cost of a trial, flush and control messages included, and the rest
of the job's time is the start.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from postprocess.base import files, strict_json
from postprocess.base.errors import UsageError
from postprocess.base.formats import duration
from postprocess.base.workdir import WorkDirectory
from postprocess.model.case import LaunchPlace
from postprocess.model.plan import PlannedLaunch, read_plan
from postprocess.model.routines.benchmark import WINDOW_MESSAGES
from postprocess.model.routines.kernels import KERNELS, guess_run_seconds
from postprocess.model.routines.mpicost import FLUSH, WARM
from postprocess.results.summary import SummaryLaunch, load_summary
from site_configs.topology.machine import measure_flush_seconds

ROUGH_TRIAL = 0.001  #: seconds of a trial where nothing is known, without a flush

#: Seconds that SimGrid takes to start a rank, and in a trial for each of p log2 p messages of p ranks. Measured
#: as processor time with 8 to 256 ranks (SimGrid 3.32, November 2026); all p ranks run on one core.
ROUGH_SIMULATED_RANK, ROUGH_SIMULATED_MESSAGE = 0.015, 35e-6

#: seconds of all iterations of a reference benchmark at one size, of small messages
ROUGH_SIZE = 0.03
ROUGH_RATE = 2e9  #: bytes a second of large ones, with the time in which their data is checked

ROUGH_START = 1.0  #: seconds to start a launch

#: What decides how long a job takes: where it is, its number of cases, and what it does to the caches.
Key = tuple[LaunchPlace, int, str]


LAST_SESSIONS = 20  #: that are asked what launches cost

TAIL = 65536  #: bytes at the end of a file of records, in which its end record is


@dataclass(frozen=True)
class LaunchCost:
    """What a launch of all cases of a place takes, in seconds."""

    start: float
    trial: float = 0.0  #: of each case one, its flush included; 0 for a program without trials

    def seconds(self, trials: int) -> float:
        """Return the seconds of one launch of so many trials."""
        return self.start + trials * self.trial


@dataclass(frozen=True)
class WholeLaunch:
    """One launch of all cases of a place, and what it took."""

    place: LaunchPlace
    cases: int
    seconds: float  #: of its jobs
    inside: float = 0.0  #: of that, mpicost's own time
    trials: int = 0  #: of each case


def measure_cost(some: Iterable[WholeLaunch]) -> LaunchCost:
    """Measure what launches of one place cost: the median of those that measured most cases."""
    known = list(some)
    most = max(launch.cases for launch in known)
    whole = [launch for launch in known if launch.cases == most]
    start = median(max(launch.seconds - launch.inside, 0.0) for launch in whole)
    trial = median(launch.inside / launch.trials if launch.trials else 0.0 for launch in whole)
    return LaunchCost(start, trial)


def list_whole_launches(session: Path) -> Iterator[WholeLaunch]:
    """List the launches of a session that all ended well, of each place.

    A session without summary, plan or records tells nothing.
    """
    try:
        launches = load_summary(session / "summary.json").launches
        planned = read_plan(session)
    except UsageError:
        return
    found: dict[tuple[LaunchPlace, int], list[TimedJob]] = {}
    for job in list_timed_jobs(launches):
        found.setdefault((job.place, job.number), []).append(job)
    for (place, number), jobs in found.items():
        if not all(job.ended_well and job.seconds for job in jobs):
            continue
        cases, seconds = sum(job.cases for job in jobs), sum(job.seconds for job in jobs)
        own = [launch for launch in planned if launch.cases and launch_place_of(launch) == (place, number)]
        if place.program != "mpicost":
            yield WholeLaunch(place, cases, seconds)
        elif (told := read_inner_seconds(session, own)) is not None:
            yield WholeLaunch(place, cases, seconds, *told)


def launch_place_of(launch: PlannedLaunch) -> tuple[LaunchPlace, int]:
    return LaunchPlace.of_launch(launch), launch.number


def read_inner_seconds(session: Path, planned: list[PlannedLaunch]) -> tuple[float, int] | None:
    """Read the seconds that mpicost took in these launches, and the trials of each case; None if unknown."""
    trials = {launch.trials for launch in planned}
    seconds = [read_elapsed_seconds(launch.records(session)) for launch in planned]
    if len(trials) != 1 or any(each is None for each in seconds):
        return None
    return sum(each for each in seconds if each is not None), trials.pop()


def read_elapsed_seconds(records: Path) -> float | None:
    """Read the seconds that mpicost ran, by the end record of its file; None if there is none."""
    try:
        with files.open_regular(records) as file:
            file.seek(max(os.fstat(file.fileno()).st_size - TAIL, 0))
            last = strict_json.parse_json(file.read(TAIL).splitlines()[-1].decode())
        return float(last["elapsed"]) if last["record"] == "end" else None
    except (OSError, ValueError, TypeError, LookupError):
        return None


@dataclass(frozen=True)
class TimedJob:
    """The starts of one program, one after the other on the same processors."""

    place: LaunchPlace
    number: int  #: 1 for the first launch of its cases in the session
    cases: int
    seconds: float
    ended_well: bool  #: every start of it


def list_timed_jobs(launches: Iterable[SummaryLaunch]) -> list[TimedJob]:
    """List the jobs of a session that had anything to measure, in the order of their first starts."""
    found: dict[tuple[str, LaunchPlace, int], list[SummaryLaunch]] = {}
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


@dataclass(frozen=True)
class Job:
    """Starts of one program, one after the other on the same processors."""

    launches: tuple[PlannedLaunch, ...]

    @property
    def program(self) -> str:
        return self.launches[0].program

    @property
    def cases(self) -> int:
        return sum(len(launch.cases) for launch in self.launches)

    def is_part_of(self, other: Job) -> bool:
        """Return whether another job has all cases of this one, with as many trials."""
        own, others = (
            {(case, launch.trials) for launch in job.launches for case in launch.cases} for job in (self, other)
        )
        return own <= others

    @property
    def key(self) -> Key:
        """What decides how long it takes."""
        place = LaunchPlace.of_launch(self.launches[0])
        return place, self.cases, self.launches[0].cases[0].cache


def list_jobs(planned: Sequence[PlannedLaunch]) -> list[Job]:
    """List the jobs that have anything to measure, in the order of the plan."""
    found: dict[tuple[object, ...], list[PlannedLaunch]] = {}
    for launch in planned:
        if launch.cases:
            job = launch.test, LaunchPlace.of_launch(launch), launch.number
            found.setdefault(job, []).append(launch)
    return [Job(tuple(launches)) for launches in found.values()]


def estimate_job_seconds(job: Job, known: Mapping[Key, float]) -> float:
    """Estimate the seconds that a job takes: as it did last time, or roughly."""
    rough = 0.0
    for launch in job.launches:
        rough += ROUGH_START + count_sent_bytes(launch) / ROUGH_RATE
        rough += ROUGH_SIMULATED_RANK * launch.processes if launch.exact else 0.0
        if launch.program == KERNELS:
            runs = sum(guess_run_seconds(case.routine, case.processes) for case in launch.cases)
            rough += launch.trials * runs
        else:
            each = ROUGH_SIZE if launch.benchmarks else launch.trials * estimate_trial_seconds(launch)
            rough += len(launch.cases) * each
    return known.get(job.key, rough)


def count_sent_bytes(launch: PlannedLaunch) -> int:
    """Count the bytes that a process sends in all iterations of a start of OSU or IMB: 0 of mpicost."""
    if not launch.benchmarks:
        return 0
    messages = WINDOW_MESSAGES if any(benchmark.window for benchmark in launch.benchmarks) else 1
    return sum(case.bytes for case in launch.cases) * launch.trials * messages


@dataclass(frozen=True)
class MeasuredJob:
    """A job of an earlier session, and what it took."""

    job: Job
    seconds: float


def read_seconds_of_cases(work: WorkDirectory, jobs: Sequence[Job]) -> dict[LaunchPlace, float]:
    """Read the seconds of each job's last launch with all of its cases, or more, and as many trials."""
    return {place: known.seconds for place, known in read_measured_jobs(work, jobs).items()}


def read_measured_jobs(work: WorkDirectory, jobs: Sequence[Job]) -> dict[LaunchPlace, MeasuredJob]:
    """Read, for each job, the last one that had all of its cases, or more, and as many trials.

    A case tells the state of the caches: what others cost does not count. Only the last sessions are asked.
    """
    wanted = {job.key[0]: job for job in jobs}
    known: dict[LaunchPlace, MeasuredJob] = {}
    for path in sorted(work.sessions.glob("*/summary.json"), reverse=True)[:LAST_SESSIONS]:
        if not wanted.keys() - known.keys():
            break
        try:
            told: dict[LaunchPlace, list[float]] = {}
            for job in list_timed_jobs(load_summary(path).launches):
                if job.ended_well and job.place in wanted.keys() - known.keys():
                    told.setdefault(job.place, []).append(job.seconds)
            measured = {each.key[0]: each for each in list_jobs(read_plan(path.parent) if told else [])}
        except UsageError:
            continue  # of another version, or damaged: it tells nothing of the time
        for place in told.keys() & measured.keys():
            if wanted[place].is_part_of(measured[place]):
                known[place] = MeasuredJob(measured[place], median(told[place]))
    return known


def estimate_trial_seconds(launch: PlannedLaunch) -> float:
    """Estimate the seconds of a trial of mpicost where nothing is known, with the flush as measured here."""
    if launch.exact:
        return ROUGH_SIMULATED_MESSAGE * launch.processes * math.log2(max(launch.processes, 2))
    return ROUGH_TRIAL + (measure_flush_seconds() if flushes(launch) else 0.0)


def read_job_seconds(work: WorkDirectory) -> dict[Key, float]:
    """Read how long jobs took in earlier sessions, in seconds, the newest last."""
    known: dict[Key, float] = {}
    for path in sorted(work.sessions.glob("*/summary.json")):
        try:
            summary = load_summary(path)
        except UsageError:
            continue  # of another version, or damaged: it tells nothing of the time
        caches = {LaunchPlace.of(result.case): result.case.cache for result in summary.results}
        for job in list_timed_jobs(summary.launches):
            if job.ended_well:
                known[job.place, job.cases, caches.get(job.place, WARM)] = job.seconds
    return known


def flushes(launch: PlannedLaunch) -> bool:
    """Return whether a launch walks through memory before each trial. Simulated processors have no caches."""
    return not launch.exact and any(case.cache == FLUSH for case in launch.cases)


def describe_flush(planned: Sequence[PlannedLaunch]) -> Iterator[str]:
    """Describe how long a flush takes here and how many there are; empty if no launch flushes."""
    trials = sum(launch.trials * len(launch.cases) for launch in planned if flushes(launch))
    if trials:
        each = measure_flush_seconds()
        yield (
            f"--cache flush: a walk through the caches takes {1e3 * each:.3g} ms here, "
            f"{duration(each * trials)} before {trials} trials; --cache evict takes a small part of that"
        )
