"""What of a comparison fits into its time: what launches cost, and the selection that may be measured instead.

Programs are left out from the last one on; of the first program large process counts, then routines from the
last one of its table on. The controls stay.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from postprocess.base.sanitize import quote_words
from postprocess.features.compare.data import ComparisonPass, LaunchValues, SharedCase
from postprocess.model.case import LaunchPlace
from postprocess.model.options import PROCESSES, PROGRAM, ROUTINE
from postprocess.model.routines.mpicost import ROUTINES
from postprocess.model.verdict import Verdict
from postprocess.results.launch_costs import ROUGH_START, Job, MeasuredJob
from site_configs.programs.program import PROGRAMS

#: Of the time, for what is not measured yet: launches differ in how long they take
RESERVE = 1.25
BESIDE = 2.0  #: seconds of a pass in which nothing is launched, where none was made yet
SECONDS = "--seconds"
TABLE = {routine.name: number for number, routine in enumerate(ROUTINES)}


@dataclass(frozen=True)
class KnownLaunch:
    """Cases that are launched together, and what that takes."""

    cases: frozenset[SharedCase]
    seconds: float

    def estimate(self, wanted: Collection[SharedCase]) -> float:
        """Estimate the seconds of a launch of some of its cases: it starts as slowly as with all of them."""
        own = len(self.cases.intersection(wanted))
        start = min(ROUGH_START, self.seconds)
        return start + (self.seconds - start) * own / len(self.cases) if own else 0.0


@dataclass(frozen=True)
class SideCost:
    """What a side takes to launch everything once."""

    launches: tuple[KnownLaunch, ...]
    beside: float = BESIDE  #: seconds of the pass in which nothing is launched

    @property
    def cases(self) -> frozenset[SharedCase]:
        """All that it measures."""
        return frozenset[SharedCase]().union(*(launch.cases for launch in self.launches))

    def estimate(self, wanted: Collection[SharedCase]) -> float:
        """Estimate the seconds of a pass over some cases: what is beside its launches shrinks, too."""
        cases = self.cases
        share = len(cases.intersection(wanted)) / max(len(cases), 1)
        fixed = min(BESIDE, self.beside)
        beside = fixed + (self.beside - fixed) * share
        return beside + sum(launch.estimate(wanted) for launch in self.launches)


def read_pass_cost(done: ComparisonPass) -> SideCost | None:
    """Read what a pass took; None if its launches do not tell."""
    launches = [KnownLaunch(select_measured(said), said.seconds) for said in done.launches]
    inside = sum(launch.seconds for launch in launches)
    if not inside:
        return None
    return SideCost(tuple(each for each in launches if each.cases), max(done.seconds - inside, 0.0))


def select_measured(said: LaunchValues) -> frozenset[SharedCase]:
    """Select the cases that a launch had to measure."""
    return frozenset(
        SharedCase.from_key(key) for key, value in said.cases.items() if value.verdict != Verdict.SKIPPED
    )


def list_job_cases(job: Job) -> frozenset[SharedCase]:
    """List what a job measures, whatever the environment."""
    return frozenset(SharedCase.of(case) for launch in job.launches for case in launch.cases)


def foresee_cost(
    jobs: Sequence[Job], known: Mapping[LaunchPlace, MeasuredJob], measured: Sequence[SideCost]
) -> SideCost | None:
    """Foresee what a side takes: as earlier sessions did, else as the same cases do on another side.

    :param known: of earlier sessions, that had all cases of these jobs or more
    :param measured: of other sides
    :return: None if the cost of a job is not known
    """
    launches: list[KnownLaunch] = []
    for job in jobs:
        cases = list_job_cases(job)
        alike = next((each for each in measured if cases <= each.cases), None)
        if before := known.get(job.key[0]):
            whole = KnownLaunch(list_job_cases(before.job), before.seconds)
            launches.append(KnownLaunch(cases, whole.estimate(cases)))
        elif alike:
            parts = ((each, each.cases & cases) for each in alike.launches)
            launches += [KnownLaunch(part, each.estimate(part)) for each, part in parts if part]
        else:
            return None
    return SideCost(tuple(launches), max((each.beside for each in measured), default=BESIDE))


def sum_costs(costs: Iterable[SideCost], wanted: Collection[SharedCase]) -> float:
    """Sum the seconds in which each side launches some cases once."""
    return sum(cost.estimate(wanted) for cost in costs)


@dataclass(frozen=True)
class Part:
    """A part of what was to be measured, as options choose it; empty for all."""

    programs: tuple[str, ...]
    processes: tuple[int, ...] = ()
    routines: tuple[str, ...] = ()

    def takes(self, case: SharedCase) -> bool:
        """Return whether it has a case. The controls come with every routine."""
        return (
            case.program in self.programs
            and (not self.processes or case.place.processes[0] in self.processes)
            and (not self.routines or case.is_control or case.routine in self.routines)
        )

    @property
    def options(self) -> dict[str, str]:
        """The options that choose it."""
        values = {PROGRAM: self.programs, PROCESSES: self.processes, ROUTINE: self.routines}
        return {option.flag: ",".join(map(str, some)) for option, some in values.items() if some}


def list_parts(cases: Collection[SharedCase]) -> Iterator[Part]:
    """List ever smaller parts of some cases, in the order in which things are left out."""
    order = list(PROGRAMS)
    programs = sorted({case.program for case in cases}, key=order.index)
    yield from (Part(tuple(programs[:count])) for count in range(len(programs) - 1, 0, -1))
    first = [case for case in cases if case.program in programs[:1] and not case.is_control]
    processes = sorted({case.place.processes[0] for case in first})
    least = tuple(processes[:1])
    for count in range(len(processes) - 1, 0, -1):
        yield Part(tuple(programs[:1]), tuple(processes[:count]))
    small = {case.routine for case in first if case.place.processes[0] in least}
    routines = sorted(small, key=lambda name: (TABLE.get(name, len(TABLE)), name))
    for count in range(len(routines) - 1, 0, -1):
        yield Part(tuple(programs[:1]), least, tuple(routines[:count]))


def find_fitting(costs: Sequence[SideCost], seconds: float, rounds: int) -> Part | None:
    """Find the largest part of which so many rounds fit; None if none does.

    :param rounds: in each of which every side launches once; the trial run is one of them
    """
    cases = frozenset[SharedCase]().union(*(cost.cases for cost in costs))
    for part in list_parts(cases):
        wanted = {case for case in cases if part.takes(case)}
        if sum_costs(costs, wanted) * rounds * RESERVE <= seconds:
            return part
    return None


def find_least(costs: Sequence[SideCost]) -> tuple[Part, float] | None:
    """Find the smallest part, and the seconds of a round of it; None if there is nothing to leave out."""
    cases = frozenset[SharedCase]().union(*(cost.cases for cost in costs))
    *_, least = [None, *list_parts(cases)]
    if least is None:
        return None
    return least, sum_costs(costs, {case for case in cases if least.takes(case)})


def describe_misfit(
    command: Sequence[str], seconds: int, about: str, once: float, rounds: int, costs: Sequence[SideCost]
) -> str:
    """Describe why a comparison does not fit into its time, with a command that does.

    :param command: of the user
    :param about: what takes how long, in words
    :param once: seconds of a round of everything
    :param rounds: that are needed, the trial run among them
    :param costs: of each side; empty if they are not known
    """
    needed = f"--seconds {seconds}: {about}; everything fits into {SECONDS} {round_up(once * rounds * RESERVE)}"
    if part := find_fitting(costs, seconds, rounds):
        return f"{needed}; this fits: {quote_words(replace_options(command, part.options))}"
    if least := find_least(costs):
        part, shortest = least
        own = part.options | {SECONDS: str(round_up(shortest * rounds * RESERVE))}
        return f"{needed}; the shortest: {quote_words(replace_options(command, own))}"
    return needed


def round_up(seconds: float) -> int:
    """Round seconds up to tens."""
    return 10 * math.ceil(round(seconds, 3) / 10)


def replace_options(command: Sequence[str], options: Mapping[str, str]) -> list[str]:
    """Return a command with these options, in the place of what it says of them."""
    words = drop_options(command, options)
    return [*words, *(word for option in options.items() for word in option)]


def drop_options(command: Sequence[str], flags: Collection[str]) -> list[str]:
    """Return a command without these options, each of which has a value."""
    kept: list[str] = []
    dropping = False
    for word in command:
        if dropping:
            dropping = False
        elif word in flags:
            dropping = True
        elif word.partition("=")[0] not in flags:
            kept.append(word)
    return kept
