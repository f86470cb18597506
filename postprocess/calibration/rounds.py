"""Plan calibration rounds: launches still missing until each case has as many as were asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from postprocess.model.case import Case
from postprocess.model.options import BYTES, PARTITION, PEERS, PER_NODE, PROCESSES, PROGRAM, ROUTINE
from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.mpicost import OWN_PROGRAMS
from postprocess.model.session import Selection

LAUNCHES = 20  #: behind a reference, if nothing else is asked for
Family = tuple[str, str, str]  #: partition, environment and program


@dataclass(frozen=True)
class LaunchTarget:
    """The number of launches that each case needs, and how many a call may take."""

    #: None for the usual number: simulated time repeats, and one is enough
    launches: int | None = None
    at_most: int | None = None
    afresh: bool = False  #: earlier launches do not count
    seconds: int | None = None  #: as many launches as fit into them; then ``launches`` is not given

    def wanted(self, launch: PlannedLaunch) -> int:
        """Return how many launches are wanted for each case of this launch."""
        return self.launches or (1 if launch.exact else LAUNCHES)


@dataclass(frozen=True)
class CalibrationRound:
    """A pass over a part of the plan."""

    family: Family
    cases: tuple[Case, ...]  #: of the launches to be made
    routines: tuple[str, ...]  #: empty for all
    launches: int

    @property
    def processes(self) -> list[int]:
        """Process counts of its launches."""
        return sorted({case.processes for case in self.cases})

    def of(self, selection: Selection) -> Selection:
        """Return the selection, restricted to this part."""
        partition, environment, program = self.family
        choice = selection.choice | {
            PROGRAM.variable: [program],
            PARTITION.variable: [partition.partition(":")[2]],
            PROCESSES.variable: self.processes,
        }
        choice |= {ROUTINE.variable: list(self.routines)} if self.routines else {}
        for option in (PER_NODE, PEERS, BYTES):
            if wanted := option.wanted(choice):  # of what this part of the plan has, and no more
                here = {option.value_of(case) for case in self.cases}
                choice[option.variable] = [value for value in wanted if value in here]
        return replace(selection, environments=[environment], choice=choice, launches=self.launches)


def family_of(launch: PlannedLaunch) -> Family:
    """Return the part of the plan that one round takes."""
    return launch.partition, launch.environment, launch.program


def count_missing_launches(
    launch: PlannedLaunch, have: Mapping[Case, int], demand: LaunchTarget
) -> int:
    """Count the launches that are missing of the case with the fewest; 0 if none is."""
    fewest = min((have.get(case, 0) for case in launch.cases), default=0)
    return max(demand.wanted(launch) - fewest, 0)


def plan_rounds(
    planned: Iterable[PlannedLaunch],
    have: Mapping[Case, int],
    demand: LaunchTarget,
    taken: Mapping[Family, int],
) -> list[CalibrationRound]:
    """Plan the next rounds, one for each part of the plan that lacks launches.

    :param have: launches behind each case
    :param taken: launches that this call has taken of each part. One is taken of each even where nothing is
        missing: only a launch tells whether program, MPI and processor are still those of the earlier ones.
    """
    some = sorted((each for each in planned if each.cases), key=family_of)
    found = [
        plan_round(family, list(members), have, demand, taken.get(family, 0))
        for family, members in groupby(some, key=family_of)
    ]
    return [each for each in found if each is not None]


def plan_round(
    family: Family,
    launches: Sequence[PlannedLaunch],
    have: Mapping[Case, int],
    demand: LaunchTarget,
    taken: int,
) -> CalibrationRound | None:
    """Plan the round of one part of the plan; None if it lacks nothing, or may take no more."""
    lacking = [each for each in launches if count_missing_launches(each, have, demand)]
    number = max((count_missing_launches(each, have, demand) for each in lacking), default=0)
    if not lacking and not taken:
        lacking, number = list(launches), 1
    number = min(number, (demand.at_most or number) - taken if demand.at_most else number)
    if number < 1:
        return None
    cases = tuple(sorted({case for each in lacking for case in each.cases}))
    # A launch of mpicost holds all routines: cut down, it would be another launch than the earlier ones.
    whole = len(lacking) == len(launches) or family[2] in OWN_PROGRAMS
    parts = () if whole else tuple(sorted({case.routine for case in cases}))
    return CalibrationRound(family, cases, parts, number)


def count_joint_launches(
    found: Sequence[CalibrationRound], planned: Sequence[PlannedLaunch]
) -> int:
    """Count the launches of one pass for all rounds; 0 if the rounds differ or are not of the whole plan."""
    here = {case for each in found for case in each.cases}
    whole = here == {case for each in planned for case in each.cases}
    return found[0].launches if whole and len({each.launches for each in found}) == 1 else 0
