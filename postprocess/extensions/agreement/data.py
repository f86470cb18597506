"""Convert launch results to the samples by which programs are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from postprocess.extensions.agreement.compare import ProgramSample, Topic
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch
from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.mpicost import COMPARED


def topic_of(case: Case) -> Topic:
    """Return what a case is about, whichever program measures it."""
    place = f"{case.system}:{case.partition}"
    return Topic(place, case.environment, case.layout, case.routine, case.bytes)


def list_topics(planned: Sequence[PlannedLaunch]) -> dict[Topic, dict[str, str]]:
    """List, for each topic, the programs that were to measure it, with the reason why one was skipped."""
    found: dict[Topic, dict[str, str]] = {}
    for launch in planned:
        for case in select_compared_cases(launch):
            found.setdefault(topic_of(case), {})[launch.program] = ""
        for skip in launch.skips:
            if is_compared(launch, skip.case):
                found.setdefault(topic_of(skip.case), {})[launch.program] = skip.reason
    return found


def extract_samples(finished: Sequence[FinishedLaunch]) -> Iterator[ProgramSample]:
    """Extract the values of the launches that ended well."""
    for run in finished:
        for case in select_compared_cases(run.launch):
            if measured := run.measurements.get(case.variable):
                yield ProgramSample(
                    topic_of(case),
                    run.launch.program,
                    run.launch.number,
                    measured.value,
                    measured.unit,
                    measured.record.slowest_mean if measured.record else measured.headline,
                )


def select_compared_cases(launch: PlannedLaunch) -> list[Case]:
    """Select the cases of a launch that are compared."""
    return [case for case in launch.cases if is_compared(launch, case)]


def is_compared(launch: PlannedLaunch, case: Case) -> bool:
    """Return whether a case is compared: sizes that only warm up are not."""
    return case.bytes in launch.method.get(COMPARED, [case.bytes])
