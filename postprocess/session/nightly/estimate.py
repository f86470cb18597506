"""How long a night takes, before it begins: its own launches, and before them those of a calibration."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from postprocess.base.formats import duration, plural
from postprocess.base.workdir import WorkDirectory
from postprocess.model.case import LaunchPlace
from postprocess.model.plan import PlannedLaunch
from postprocess.references.catalog import ReferenceCatalog
from postprocess.results.launch_costs import Job, estimate_job_seconds, list_jobs, read_seconds_of_cases
from postprocess.session.nightly.calibrate import choose_automatic_launches, list_uncalibrated

#: Launches of a night, whose median is judged: it has 0.54 of their spread, and that of nine would have 0.41
NIGHT_LAUNCHES = 5
LEAST_SECONDS = 0.1  #: that a launch is taken to last


@dataclass(frozen=True)
class LaunchCounts:
    """How many launches the last night took at each place, as ``recall`` and ``remember`` keep it."""

    schema: int = 1
    counts: list[tuple[LaunchPlace, int]] = field(default_factory=list)


def choose_launch_counts(
    work: WorkDirectory, planned: Sequence[PlannedLaunch], known: Mapping[LaunchPlace, float] | None = None
) -> dict[LaunchPlace, int]:
    """Choose the launches of each place of a plan of one launch each.

    :param known: seconds of a launch at places where they were measured; None to read them
    """
    jobs = list_jobs(planned)
    spending = [job for job in jobs if job.launches[0].budget and not job.launches[0].exact]
    if known is None:
        known = read_seconds_of_cases(work, spending) if spending else {}
    counts = {job.key[0]: 1 for job in jobs}
    return counts | {job.key[0]: count_job_launches(job, known) for job in spending}


def count_job_launches(job: Job, known: Mapping[LaunchPlace, float]) -> int:
    """Count how often a job is launched in a night: as often as its seconds pay, five times at most."""
    seconds = known.get(job.key[0], estimate_job_seconds(job, {}))
    paid = job.launches[0].budget // max(seconds, LEAST_SECONDS)
    return max(1, min(NIGHT_LAUNCHES, int(paid)))


def repeat_launches(planned: Sequence[PlannedLaunch], counts: Mapping[LaunchPlace, int]) -> list[PlannedLaunch]:
    """Return the launches of a plan of one launch each, as often as each is made; for estimates only."""
    return [
        replace(launch, number=number)
        for launch in planned
        for number in range(1, counts.get(LaunchPlace.of_launch(launch), 1) + 1)
    ]


def describe_launch_counts(counts: Mapping[LaunchPlace, int]) -> list[str]:
    """Describe, in a line for each number of launches beyond one, the places that get as many."""
    lines = []
    for number in sorted({*counts.values()} - {1}):
        environments: dict[tuple[str, str], list[str]] = {}
        for place in sorted(place for place, count in counts.items() if count == number):
            layout = f"{place.processes}x{place.per_node}"
            environments.setdefault((place.program, layout), []).append(place.environment)
        layouts: dict[tuple[str, str], list[str]] = {}
        for (program, layout), names in environments.items():
            layouts.setdefault((program, ", ".join(dict.fromkeys(names))), []).append(layout)
        told = [f"{program} {', '.join(some)} on {names}" for (program, names), some in layouts.items()]
        lines.append(f"{plural(number, 'launch', 'es')}, whose median is judged: {'; '.join(told)}")
    return lines


ROUGHLY = "roughly: not all of it was measured here yet"


@dataclass(frozen=True)
class NightEstimate:
    """Seconds of a night. Builds and waiting in a queue are not in them."""

    night: float  #: of the launches that are judged
    calibration: float  #: of those that only the first night makes; 0 if it makes none
    launches: int  #: of the calibration
    measured: bool  #: whether all of it is as long as it was before, and nothing is guessed
    deferred: float = 0.0  #: of ``night``, which the first night leaves to later ones
    #: Launches of each place, as they are chosen if nothing is calibrated first
    counts: Mapping[LaunchPlace, int] = field(default_factory=dict)

    @property
    def tonight(self) -> float:
        """Seconds of the launches that this night judges."""
        return self.night - self.deferred

    def describe(self, mode: str = "nightly") -> Iterator[str]:
        """Describe it in words: tonight, and every later night; or now, and later, of what is no night."""
        now, later = ("now", "later") if mode == "run" else ("tonight", "every later night")
        rough = "" if self.measured else f" ({ROUGHLY})"
        if not self.calibration:
            yield f"{now} and {later}: about {duration(self.night)}{rough}"
            return
        number = plural(self.launches, "launch", "es")
        first = f"{duration(self.calibration)} for {number} of a first calibration"
        total = duration(self.calibration + self.tonight)
        yield f"{now}: about {total}, of it {first}{rough}"
        yield f"{later}: about {duration(self.night)}"


def estimate_night(
    work: WorkDirectory,
    planned: Sequence[PlannedLaunch],
    catalog: ReferenceCatalog,
    launches: int | None,
    calibrates: bool = True,
) -> NightEstimate:
    """Estimate a night of a plan.

    :param planned: one launch of each case if ``launches`` is None, and the night chooses; else all of them
    :param calibrates: whether it calibrates what has no reference
    """
    known = read_seconds_of_cases(work, list_jobs(planned))
    counts = choose_launch_counts(work, planned, known) if launches is None else {}
    made = list_jobs(repeat_launches(planned, counts) if launches is None else planned)

    def estimate(job: Job) -> float:
        return known.get(job.key[0], estimate_job_seconds(job, {}))

    first = [launch for launch in planned if launch.number == 1]
    unknown = list_uncalibrated(work.provisional, catalog, first) if calibrates else []
    before = [(job, choose_automatic_launches(job.launches[0])) for job in list_jobs(unknown)]
    once = {job.program for job, number in before if number == 1 and not job.launches[0].exact}
    calibrated = {job.key for job, _ in before}
    once -= {job.program for job in made if job.key not in calibrated}
    deferred = [job for job in made if job.program in once]
    return NightEstimate(
        night=sum(map(estimate, made)),
        deferred=sum(map(estimate, deferred)) if launches is None and len(deferred) < len(made) else 0.0,
        calibration=sum(estimate(job) * number for job, number in before),
        launches=sum(number for _, number in before),
        measured=all(job.key[0] in known for job in made),
        counts=counts,
    )
