"""How long a night takes, before it begins: its own launches, and before them those of a calibration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from postprocess.base.formats import duration, plural
from postprocess.base.workdir import WorkDirectory
from postprocess.model.plan import PlannedLaunch
from postprocess.references.catalog import ReferenceCatalog
from postprocess.results.launch_costs import (
    Job,
    estimate_job_seconds,
    list_jobs,
    read_seconds_of_cases,
)
from postprocess.session.nightly.calibrate import choose_automatic_launches, list_uncalibrated
from postprocess.session.nightly.launch_budget import choose_launch_counts, repeat_launches

ROUGHLY = "roughly: not all of it was measured here yet"


@dataclass(frozen=True)
class NightEstimate:
    """Seconds of a night. Builds and waiting in a queue are not in them."""

    night: float  #: of the launches that are judged
    calibration: float  #: of those that only the first night makes; 0 if it makes none
    launches: int  #: of the calibration
    measured: bool  #: whether all of it is as long as it was before, and nothing is guessed

    def describe(self, mode: str = "nightly") -> Iterator[str]:
        """Describe it in words: tonight, and every later night; or now, and later, of what is no night."""
        now, later = ("now", "later") if mode == "run" else ("tonight", "every later night")
        rough = "" if self.measured else f" ({ROUGHLY})"
        if not self.calibration:
            yield f"{now} and {later}: about {duration(self.night)}{rough}"
            return
        number = plural(self.launches, "launch", "es")
        first = f"{duration(self.calibration)} for {number} of a first calibration"
        total = duration(self.calibration + self.night)
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
    counts = choose_launch_counts(work, planned) if launches is None else {}
    made = list_jobs(repeat_launches(planned, counts) if launches is None else planned)

    def estimate(job: Job) -> float:
        return known.get(job.key[0], estimate_job_seconds(job, {}))

    first = [each for each in planned if each.number == 1]
    unknown = list_uncalibrated(work.provisional, catalog, first) if calibrates else []
    before = [(job, choose_automatic_launches(job.launches[0])) for job in list_jobs(unknown)]
    return NightEstimate(
        night=sum(map(estimate, made)),
        calibration=sum(estimate(job) * number for job, number in before),
        launches=sum(number for _, number in before),
        measured=all(job.key[0] in known for job in made),
    )
