"""Estimate what launches cost, per start and per trial, from the summaries and records of earlier sessions.

ReFrame times a job from its submission to its end, including the wait in a queue. mpicost records how long it
ran. That time divided by its trials is the cost of a trial, including flush and control messages; the rest of
the job's time is the start.
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

ROUGH_TRIAL = 0.001  #: seconds of a trial without a flush if nothing is known

#: Seconds that SimGrid takes to start a rank, and in a trial for each of p log2 p messages of p ranks. Measured
#: as processor time with 8 to 256 ranks (SimGrid 3.32, November 2026); all p ranks run on one core.
ROUGH_SIMULATED_RANK, ROUGH_SIMULATED_MESSAGE = 0.015, 35e-6

#: seconds of all iterations of a reference benchmark at one small size
ROUGH_SIZE = 0.03
ROUGH_RATE = 2e9  #: bytes per second of large messages, including the check of their data

ROUGH_START = 1.0  #: seconds to start a launch

#: What determines the duration of a job: its place, its number of cases, and the state of the caches.
Key = tuple[LaunchPlace, int, str]


LAST_SESSIONS = 20  #: sessions that are searched for costs

TAIL = 65536  #: bytes at the end of a file of records that contain its end record


@dataclass(frozen=True)
class LaunchCost:
    """The seconds that a launch of all cases of a place takes."""

    start: float
    trial: float = 0.0  #: for one trial of every case, with the flush; 0 for a program without trials

    def seconds(self, trials: int) -> float:
        """Return the seconds of one launch with ``trials`` trials."""
        return self.start + trials * self.trial


@dataclass(frozen=True)
class WholeLaunch:
    """One launch of all cases of a place, with its duration."""

    place: LaunchPlace
    cases: int
    seconds: float  #: duration of its jobs
    inside: float = 0.0  #: mpicost's share of them
    trials: int = 0  #: trials of each case


def measure_cost(some: Iterable[WholeLaunch]) -> LaunchCost:
    """Compute the cost of launches of one place: the median of those with the most cases."""
    launches = list(some)
    most = max(launch.cases for launch in launches)
    whole = [launch for launch in launches if launch.cases == most]
    start = median(max(launch.seconds - launch.inside, 0.0) for launch in whole)
    trial = median(launch.inside / launch.trials if launch.trials else 0.0 for launch in whole)
    return LaunchCost(start, trial)


def list_whole_launches(session: Path) -> Iterator[WholeLaunch]:
    """Yield the launches of a session by place, if all jobs of a launch ended well.

    A session without summary, plan or records yields nothing.
    """
    try:
        launches = load_summary(session / "summary.json").launches
        planned = read_plan(session)
    except UsageError:
        return
    by_place: dict[tuple[LaunchPlace, int], list[TimedJob]] = {}
    for job in list_timed_jobs(launches):
        by_place.setdefault((job.place, job.number), []).append(job)
    for (place, number), jobs in by_place.items():
        if not all(job.ended_well and job.seconds for job in jobs):
            continue
        cases, seconds = sum(job.cases for job in jobs), sum(job.seconds for job in jobs)
        members = [launch for launch in planned if launch.cases and launch_place_of(launch) == (place, number)]
        if place.program != "mpicost":
            yield WholeLaunch(place, cases, seconds)
        elif (inner := read_inner_seconds(session, members)) is not None:
            yield WholeLaunch(place, cases, seconds, *inner)


def launch_place_of(launch: PlannedLaunch) -> tuple[LaunchPlace, int]:
    return LaunchPlace.of_launch(launch), launch.number


def read_inner_seconds(session: Path, planned: list[PlannedLaunch]) -> tuple[float, int] | None:
    """Read the seconds that mpicost ran in these launches, and the trials per case; None if unknown."""
    trials = {launch.trials for launch in planned}
    seconds = [read_elapsed_seconds(launch.records(session)) for launch in planned]
    if len(trials) != 1 or any(elapsed is None for elapsed in seconds):
        return None
    return sum(elapsed for elapsed in seconds if elapsed is not None), trials.pop()


def read_elapsed_seconds(records: Path) -> float | None:
    """Read the seconds that mpicost ran from the end record of its file; None if there is none."""
    try:
        with files.open_regular(records) as file:
            file.seek(max(os.fstat(file.fileno()).st_size - TAIL, 0))
            last = strict_json.parse_json(file.read(TAIL).splitlines()[-1].decode())
        return float(last["elapsed"]) if last["record"] == "end" else None
    except (OSError, ValueError, TypeError, LookupError):
        return None


@dataclass(frozen=True)
class TimedJob:
    """A job of an earlier session: starts of one program, one after the other on the same processors."""

    place: LaunchPlace
    number: int  #: 1 for the first launch of its cases in the session
    cases: int
    seconds: float
    ended_well: bool  #: whether every start did


def list_timed_jobs(launches: Iterable[SummaryLaunch]) -> list[TimedJob]:
    """List the jobs of a session that had cases, in the order of their first starts."""
    jobs: dict[tuple[str, LaunchPlace, int], list[SummaryLaunch]] = {}
    for launch in launches:
        if launch.cases:
            job = launch.directory, LaunchPlace.of_launch(launch), launch.launch
            jobs.setdefault(job, []).append(launch)
    return [
        TimedJob(
            place,
            number,
            sum(start.cases for start in starts),
            max(start.seconds for start in starts),
            all(start.outcome == "ok" for start in starts),
        )
        for (_, place, number), starts in jobs.items()
    ]


@dataclass(frozen=True)
class Job:
    """A planned job: starts of one program, one after the other on the same processors."""

    launches: tuple[PlannedLaunch, ...]

    @property
    def program(self) -> str:
        return self.launches[0].program

    @property
    def cases(self) -> int:
        return sum(len(launch.cases) for launch in self.launches)

    def is_part_of(self, other: Job) -> bool:
        """Return whether another job has all cases of this one, with the same numbers of trials."""
        ours, others = (
            {(case, launch.trials) for launch in job.launches for case in launch.cases} for job in (self, other)
        )
        return ours <= others

    @property
    def key(self) -> Key:
        """What determines its duration."""
        place = LaunchPlace.of_launch(self.launches[0])
        return place, self.cases, self.launches[0].cases[0].cache


def list_jobs(planned: Sequence[PlannedLaunch]) -> list[Job]:
    """List the jobs that have cases, in the order of the plan."""
    jobs: dict[tuple[object, ...], list[PlannedLaunch]] = {}
    for launch in planned:
        if launch.cases:
            job = launch.test, LaunchPlace.of_launch(launch), launch.number
            jobs.setdefault(job, []).append(launch)
    return [Job(tuple(launches)) for launches in jobs.values()]


def estimate_job_seconds(job: Job, known: Mapping[Key, float]) -> float:
    """Estimate the seconds of a job: those of its last run, or a rough guess."""
    rough = 0.0
    for launch in job.launches:
        rough += ROUGH_START + count_sent_bytes(launch) / ROUGH_RATE
        rough += ROUGH_SIMULATED_RANK * launch.processes if launch.exact else 0.0
        if launch.program == KERNELS:
            runs = sum(guess_run_seconds(case.routine, case.processes) for case in launch.cases)
            rough += launch.trials * runs
        else:
            case_seconds = ROUGH_SIZE if launch.benchmarks else launch.trials * estimate_trial_seconds(launch)
            rough += len(launch.cases) * case_seconds
    return known.get(job.key, rough)


def count_sent_bytes(launch: PlannedLaunch) -> int:
    """Count the bytes that a process sends in all iterations of a start of OSU or IMB; 0 for mpicost."""
    if not launch.benchmarks:
        return 0
    messages = WINDOW_MESSAGES if any(benchmark.window for benchmark in launch.benchmarks) else 1
    return sum(case.bytes for case in launch.cases) * launch.trials * messages


@dataclass(frozen=True)
class MeasuredJob:
    """A job of an earlier session, with its duration."""

    job: Job
    seconds: float


def read_seconds_of_cases(work: WorkDirectory, jobs: Sequence[Job]) -> dict[LaunchPlace, float]:
    """Read the seconds of each job's last run with at least its cases, and as many trials."""
    return {place: job.seconds for place, job in read_measured_jobs(work, jobs).items()}


def read_measured_jobs(work: WorkDirectory, jobs: Sequence[Job]) -> dict[LaunchPlace, MeasuredJob]:
    """Read, for each job, the last one with at least its cases, and as many trials.

    A case includes the state of the caches, so jobs with another state do not count. Only the last sessions are
    searched.
    """
    wanted = {job.key[0]: job for job in jobs}
    last_jobs: dict[LaunchPlace, MeasuredJob] = {}
    for path in sorted(work.sessions.glob("*/summary.json"), reverse=True)[:LAST_SESSIONS]:
        if not wanted.keys() - last_jobs.keys():
            break
        try:
            durations: dict[LaunchPlace, list[float]] = {}
            for job in list_timed_jobs(load_summary(path).launches):
                if job.ended_well and job.place in wanted.keys() - last_jobs.keys():
                    durations.setdefault(job.place, []).append(job.seconds)
            measured = {
                planned.key[0]: planned for planned in list_jobs(read_plan(path.parent) if durations else [])
            }
        except UsageError:
            continue  # of another version, or damaged: it has no usable times
        for place in durations.keys() & measured.keys():
            if wanted[place].is_part_of(measured[place]):
                last_jobs[place] = MeasuredJob(measured[place], median(durations[place]))
    return last_jobs


def estimate_trial_seconds(launch: PlannedLaunch) -> float:
    """Estimate the seconds of a trial of mpicost if nothing is known; a flush is measured here."""
    if launch.exact:
        return ROUGH_SIMULATED_MESSAGE * launch.processes * math.log2(max(launch.processes, 2))
    return ROUGH_TRIAL + (measure_flush_seconds() if flushes(launch) else 0.0)


def read_job_seconds(work: WorkDirectory) -> dict[Key, float]:
    """Read the seconds of jobs in earlier sessions; the newest session wins."""
    durations: dict[Key, float] = {}
    for path in sorted(work.sessions.glob("*/summary.json")):
        try:
            summary = load_summary(path)
        except UsageError:
            continue  # of another version, or damaged: it has no usable times
        caches = {LaunchPlace.of(result.case): result.case.cache for result in summary.results}
        for job in list_timed_jobs(summary.launches):
            if job.ended_well:
                durations[job.place, job.cases, caches.get(job.place, WARM)] = job.seconds
    return durations


def flushes(launch: PlannedLaunch) -> bool:
    """Return whether a launch flushes the caches before each trial. Simulated processors have no caches."""
    return not launch.exact and any(case.cache == FLUSH for case in launch.cases)


def describe_flush(planned: Sequence[PlannedLaunch]) -> Iterator[str]:
    """Describe how long a flush takes here and how many there are; empty if no launch flushes."""
    trials = sum(launch.trials * len(launch.cases) for launch in planned if flushes(launch))
    if trials:
        flush = measure_flush_seconds()
        yield (
            f"--cache flush: a walk through the caches takes {1e3 * flush:.3g} ms here, "
            f"{duration(flush * trials)} before {trials} trials; --cache evict takes a small part of that"
        )
