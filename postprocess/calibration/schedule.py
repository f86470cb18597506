"""Run a calibration from the first to the last launch, and report what is still missing."""

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

LAUNCHES = 20  #: launches behind a reference by default


@dataclass(frozen=True)
class LaunchTarget:
    """The number of launches that each case needs, and how many a call may take."""

    #: None for the default: simulated time repeats, and one is enough
    launches: int | None = None
    at_most: int | None = None
    afresh: bool = False  #: earlier launches do not count
    seconds: int | None = None  #: take as many launches as fit, if ``launches`` is not given

    def wanted(self, launch: PlannedLaunch) -> int:
        """Return how many launches each case of this launch should have."""
        return self.launches or (1 if launch.exact else LAUNCHES)


@dataclass(frozen=True)
class CalibrationRound:
    """A pass over a part of the plan."""

    family: Family
    cases: tuple[Case, ...]  #: cases of the launches to be made
    routines: tuple[str, ...]  #: empty for all
    launches: int
    wanting: tuple[Case, ...] = ()  #: the cases that lack launches; empty if nothing is missing

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
            if wanted := option.wanted(choice):  # only what this part of the plan has
                here = {option.value_of(case) for case in self.cases}
                choice[option.variable] = [value for value in wanted if value in here]
        return replace(selection, environments=[environment], choice=choice, launches=self.launches)


def count_missing_launches(launch: PlannedLaunch, have: Mapping[Case, int], demand: LaunchTarget) -> int:
    """Count the missing launches of the case with the fewest; 0 if none is missing."""
    fewest = min((have.get(case, 0) for case in launch.cases), default=0)
    return max(demand.wanted(launch) - fewest, 0)


def plan_rounds(
    planned: Iterable[PlannedLaunch],
    have: Mapping[Case, int],
    demand: LaunchTarget,
    taken: Mapping[Family, int],
) -> list[CalibrationRound]:
    """Plan the next rounds, one for each part of the plan that lacks launches.

    :param taken: launches that this call has taken of each part. One is taken even if nothing is missing,
    because only a launch shows whether program, MPI and processor are still the same.
    """
    ordered = sorted((launch for launch in planned if launch.cases), key=family_of)
    rounds = [
        plan_round(family, list(members), have, demand, taken.get(family, 0))
        for family, members in groupby(ordered, key=family_of)
    ]
    return [part for part in rounds if part is not None]


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
    # A launch of mpicost has all routines: a reduced one would differ from the earlier ones.
    whole = len(lacking) == len(launches) or family[2] in OWN_PROGRAMS
    parts = () if whole else tuple(sorted({case.routine for case in cases}))
    wanting = tuple(
        sorted(
            {case for launch in lacking for case in launch.cases if have.get(case, 0) < demand.wanted(launch)}
        )
    )
    return CalibrationRound(family, cases, parts, number, wanting)


def count_joint_launches(found: Sequence[CalibrationRound], planned: Sequence[PlannedLaunch]) -> int:
    """Count the launches of one pass for all rounds; 0 if the rounds differ or do not cover the plan."""
    here = {case for part in found for case in part.cases}
    whole = here == {case for launch in planned for case in launch.cases}
    return found[0].launches if whole and len({part.launches for part in found}) == 1 else 0


MOST_FUTILE_PASSES = 2  #: a part of the plan is given up after this many


@dataclass(frozen=True)
class PassResult:
    """The result of one pass: the launches that count, and what else came of it."""

    launches: Sequence[CalibrationLaunch]
    #: Slowdowns of cases whose references stay, because new ones would absorb them
    held: Mapping[Case, float] = field(default_factory=dict)
    #: cases with a launch that crashed, did not end or had wrong data
    failed: Sequence[CaseResult] = ()
    session: str = ""
    finished: Sequence[FinishedLaunch] = ()  #: all launches, including those that do not count
    files: Sequence[Path] = ()  #: reference files that it wrote
    page: Path | None = None  #: its report
    notes: Mapping[Family, str] = field(default_factory=dict)  #: why references were not changed


#: runs a selection; true if earlier launches no longer count
Run = Callable[[Selection, bool], PassResult]
Read = Callable[[], Sequence[CalibrationLaunch]]  #: reads the current ledger


@dataclass
class CalibrationProgress:
    """The progress of a call in each part of the plan, and its results."""

    taken: dict[Family, int] = field(default_factory=dict)
    #: parts with wrong data in any pass: right data does not make up for it
    incorrect: set[Family] = field(default_factory=set)
    futile: dict[Family, int] = field(default_factory=dict)  #: passes without progress for a case
    held: set[Family] = field(default_factory=set)  #: parts with references that stayed in the last pass
    stalled: set[Family] = field(default_factory=set)  #: parts whose last pass was futile
    asked: set[Case] = field(default_factory=set)  #: cases that were launched
    sessions: set[str] = field(default_factory=set)  #: sessions of the launches that count
    lacking: set[Family] = field(default_factory=set)  #: parts that finally have fewer launches than wanted
    uncounted: set[Case] = field(default_factory=set)  #: cases for which no launch of the call counts

    @property
    def failed(self) -> bool:
        """Whether a case was measured in vain, had wrong data, or would absorb a slowdown."""
        return bool(self.incorrect or self.held or self.uncounted)

    def count(
        self, part: CalibrationRound, done: PassResult, before: Mapping[Case, int], after: Mapping[Case, int]
    ) -> None:
        """Enter a pass; ``before`` and ``after`` are the launches behind each case.

        Launches from before the first pass may belong to another program, so they do not measure its progress.
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
        """Enter the final state.

        :param lacking: the parts of the plan that lack launches
        """
        self.lacking = set(lacking)
        counted = {
            case
            for case, sample in collect_samples(launches).items()
            if any(launch.session in self.sessions for launch in sample.launches)
        }
        self.uncounted = self.asked - counted

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
    """Launch until each case has the wanted number of launches, or no more may be taken. Return the progress.

    A failed pass is tried once more. A case without a result then keeps what it has.
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
    counts = count_launches(read())
    if not demand.afresh:
        return counts
    return {case: number for case, number in counts.items() if plan_part_of(case) in tally.taken}


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
    """Report which parts of the plan still lack launches; return them."""
    counts: dict[Family, list[int]] = {}
    wanted: dict[Family, int] = {}
    for launch in planned:
        family = family_of(launch)
        wanted[family] = max(wanted.get(family, 0), demand.wanted(launch))
        counts.setdefault(family, []).extend(have.get(case, 0) for case in launch.cases)
    lacking = {family for family, numbers in counts.items() if numbers and min(numbers) < wanted[family]}
    for family in sorted(lacking):
        few, most = min(counts[family]), min(max(counts[family]), wanted[family])
        there = f"{few}" if few == most else f"{few} to {most}"
        progress.note(
            f"{', '.join(family)}: {there} of {plural(wanted[family], 'launch', 'es')} count; the same command "
            "again takes what is missing"
        )
    return lacking
