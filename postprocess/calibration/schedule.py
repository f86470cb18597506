"""Run a calibration from first to last launch, and report what is still missing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from postprocess.base.formats import plural
from postprocess.base.progress import Progress
from postprocess.calibration.ledger import CalibrationLaunch
from postprocess.calibration.losses import Family, family_of
from postprocess.calibration.samples import collect_samples
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch
from postprocess.model.options import BYTES, PARTITION, PEERS, PER_NODE, PROCESSES, PROGRAM, ROUTINE
from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.mpicost import OWN_PROGRAMS
from postprocess.model.session import Selection
from postprocess.model.verdict import CaseResult, Verdict

LAUNCHES = 20  #: behind a reference, if nothing else is asked for


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
    wanting: tuple[Case, ...] = ()  #: the cases that lack launches; none if nothing is missing

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


def count_missing_launches(launch: PlannedLaunch, have: Mapping[Case, int], demand: LaunchTarget) -> int:
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

    :param taken: launches that this call has taken of each part. One is taken of each even where nothing is
        missing: only a launch tells whether program, MPI and processor are still those of the earlier ones.
    """
    some = sorted((launch for launch in planned if launch.cases), key=family_of)
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
    lacking = [launch for launch in launches if count_missing_launches(launch, have, demand)]
    number = max((count_missing_launches(launch, have, demand) for launch in lacking), default=0)
    if not lacking and not taken:
        lacking, number = list(launches), 1
    number = min(number, (demand.at_most or number) - taken if demand.at_most else number)
    if number < 1:
        return None
    cases = tuple(sorted({case for launch in lacking for case in launch.cases}))
    # A launch of mpicost holds all routines: cut down, it would be another launch than the earlier ones.
    whole = len(lacking) == len(launches) or family[2] in OWN_PROGRAMS
    parts = () if whole else tuple(sorted({case.routine for case in cases}))
    wanting = tuple(
        sorted({case for each in lacking for case in each.cases if have.get(case, 0) < demand.wanted(each)})
    )
    return CalibrationRound(family, cases, parts, number, wanting)


def count_joint_launches(found: Sequence[CalibrationRound], planned: Sequence[PlannedLaunch]) -> int:
    """Count the launches of one pass for all rounds; 0 if the rounds differ or are not of the whole plan."""
    here = {case for each in found for case in each.cases}
    whole = here == {case for launch in planned for case in launch.cases}
    return found[0].launches if whole and len({each.launches for each in found}) == 1 else 0


MOST_FUTILE_PASSES = 2  #: after so many, a part of the plan is given up


@dataclass(frozen=True)
class PassResult:
    """The result of one pass: the launches that count, and what else became of it."""

    launches: Sequence[CalibrationLaunch]
    #: How many times as slow cases are whose references stay, for new ones would absorb a slowdown
    held: Mapping[Case, float] = field(default_factory=dict)
    #: cases with a launch that crashed, did not end or brought wrong data
    failed: Sequence[CaseResult] = ()
    session: str = ""
    finished: Sequence[FinishedLaunch] = ()  #: all launches, those that do not count too
    files: Sequence[Path] = ()  #: references that it has written
    page: Path | None = None  #: its report
    notes: Mapping[Family, str] = field(default_factory=dict)  #: why references stay as they were


#: runs a selection; true: earlier launches count no more
Run = Callable[[Selection, bool], PassResult]
Read = Callable[[], Sequence[CalibrationLaunch]]  #: the ledger as it is now


@dataclass
class CalibrationProgress:
    """The progress of a call in each part of the plan, and what came of it."""

    taken: dict[Family, int] = field(default_factory=dict)
    #: in any pass: wrong data is not made good by right data
    incorrect: set[Family] = field(default_factory=set)
    futile: dict[Family, int] = field(default_factory=dict)  #: passes that left a case as it was
    held: set[Family] = field(default_factory=set)  #: some references stayed in the last pass
    stalled: set[Family] = field(default_factory=set)  #: whose last pass was futile
    asked: set[Case] = field(default_factory=set)  #: cases that were launched
    sessions: set[str] = field(default_factory=set)  #: of launches that count
    lacking: set[Family] = field(default_factory=set)  #: parts with fewer launches than are wanted at the end
    uncounted: set[Case] = field(default_factory=set)  #: cases for which no launch of the call counts

    @property
    def failed(self) -> bool:
        """Whether a case was measured in vain, brought wrong data, or would absorb a slowdown."""
        return bool(self.incorrect or self.held or self.uncounted)

    def count(
        self, part: CalibrationRound, done: PassResult, before: Mapping[Case, int], after: Mapping[Case, int]
    ) -> None:
        """Enter a pass; ``before`` and ``after`` are the launches behind each case.

        What is there before the first pass may be another program's, and is no measure of what it has brought.
        """
        first = part.family not in self.taken
        self.taken[part.family] = self.taken.get(part.family, 0) + part.launches
        self.asked |= set(part.cases)
        self.sessions |= {launch.session for launch in done.launches}
        wrong = (result.case for result in done.failed if result.verdict == Verdict.INCORRECT)
        self.incorrect |= {part.family} & set(map(plan_part_of, wrong))
        self.held.discard(part.family)
        self.held |= {part.family} & {plan_part_of(case) for case in done.held}
        gained = count_launches(done.launches)
        wanting = part.wanting or part.cases
        grown = (first or after.get(case, 0) > before.get(case, 0) for case in wanting)
        self.stalled.discard(part.family)
        if not (all(gained.get(case, 0) for case in wanting) and all(grown)):
            self.stalled.add(part.family)
            self.futile[part.family] = self.futile.get(part.family, 0) + 1

    def conclude(self, launches: Sequence[CalibrationLaunch], lacking: Iterable[Family]) -> None:
        """Enter what is there at the end.

        :param lacking: the parts of the plan that lack launches
        """
        self.lacking = set(lacking)
        own = {
            case
            for case, sample in collect_samples(launches).items()
            if any(launch.session in self.sessions for launch in sample.launches)
        }
        self.uncounted = self.asked - own

    def limit_after_failure(self, part: CalibrationRound) -> CalibrationRound:
        """Limit a part to one launch after a pass without progress."""
        return replace(part, launches=1) if part.family in self.stalled else part


def plan_part_of(case: Case) -> Family:
    return f"{case.system}:{case.partition}", case.environment, case.program


def count_launches(launches: Iterable[CalibrationLaunch]) -> dict[Case, int]:
    return {case: len(sample.launches) for case, sample in collect_samples(launches).items()}


def calibrate_all(
    planned: Sequence[PlannedLaunch],
    selection: Selection,
    demand: LaunchTarget,
    read: Read,
    run: Run,
    progress: Progress,
) -> CalibrationProgress:
    """Launch until each case has as many launches as are wanted, or no more may be taken; what came of it.

    What fails is tried once more. A case of which nothing comes then is left with what it has.
    """
    tally = CalibrationProgress()
    while todo := [
        tally.limit_after_failure(part)
        for part in plan_rounds(
            [launch for launch in planned if tally.futile.get(family_of(launch), 0) < MOST_FUTILE_PASSES],
            count_known_launches(read, demand, tally),
            demand,
            tally.taken,
        )
    ]:
        have = count_known_launches(read, demand, tally)
        for part in todo:
            report_round(part, planned, have, demand, progress)
        launches = count_joint_launches(todo, planned)
        passes = (
            [(replace(selection, launches=launches), todo)]
            if launches
            else [(part.of(selection), [part]) for part in todo]
        )
        for chosen, parts in passes:
            done = run(chosen, demand.afresh and parts[0].family not in tally.taken)
            now = count_launches(read())
            for part in parts:
                tally.count(part, done, have, now)
    tally.conclude(read(), report_missing(planned, count_launches(read()), demand, progress))
    return tally


def count_known_launches(read: Read, demand: LaunchTarget, tally: CalibrationProgress) -> Mapping[Case, int]:
    """Count the known launches of each case; 0 for those that begin afresh."""
    found = count_launches(read())
    if not demand.afresh:
        return found
    return {case: number for case, number in found.items() if plan_part_of(case) in tally.taken}


def report_round(
    part: CalibrationRound,
    planned: Iterable[PlannedLaunch],
    have: Mapping[Case, int],
    demand: LaunchTarget,
    progress: Progress,
) -> None:
    """Report the progress of a part of the plan, and what is launched next."""
    members = [launch for launch in planned if family_of(launch) == part.family and launch.cases]
    wanted = max(demand.wanted(launch) for launch in members)
    there = min(wanted - count_missing_launches(launch, have, demand) for launch in members)
    partition, environment, program = part.family
    why = "taking" if there < wanted else "enough; to check that they still hold, taking"
    progress.say(
        f"{partition}, {environment}, {program}: {there} of {plural(wanted, 'launch', 'es')} are there; "
        f"{why} {part.launches}"
    )


def report_missing(
    planned: Iterable[PlannedLaunch], have: Mapping[Case, int], demand: LaunchTarget, progress: Progress
) -> set[Family]:
    """Say which parts of the plan still lack launches; return them."""
    counts: dict[Family, list[int]] = {}
    wanted: dict[Family, int] = {}
    for launch in planned:
        family = family_of(launch)
        wanted[family] = max(wanted.get(family, 0), demand.wanted(launch))
        counts.setdefault(family, []).extend(have.get(case, 0) for case in launch.cases)
    lacking = {family for family, some in counts.items() if some and min(some) < wanted[family]}
    for family in sorted(lacking):
        few, most = min(counts[family]), min(max(counts[family]), wanted[family])
        there = f"{few}" if few == most else f"{few} to {most}"
        progress.note(
            f"{', '.join(family)}: {there} of {plural(wanted[family], 'launch', 'es')} count; the same command "
            "again takes what is missing"
        )
    return lacking
