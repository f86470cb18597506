"""Run a calibration from first to last launch, and report what is still missing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from postprocess.base.formats import plural
from postprocess.base.progress import Progress
from postprocess.calibration.ledger import CalibrationLaunch
from postprocess.calibration.rounds import (
    CalibrationRound,
    Family,
    LaunchTarget,
    count_joint_launches,
    count_missing_launches,
    family_of,
    plan_rounds,
)
from postprocess.calibration.samples import collect_samples
from postprocess.model.case import Case
from postprocess.model.plan import PlannedLaunch
from postprocess.model.session import Selection
from postprocess.model.verdict import CaseResult, Verdict

MOST_FUTILE_PASSES = 2  #: after so many, a part of the plan is given up


@dataclass(frozen=True)
class PassResult:
    """The result of one pass: its successful launches, and the parts of the plan with an unhealthy case."""

    launches: Sequence[CalibrationLaunch]
    unhealthy: Collection[Family] = ()
    held: Collection[Case] = ()  #: whose references stay, for new ones would absorb a slowdown
    #: cases with a launch that crashed, did not end or brought wrong data
    failed: Sequence[CaseResult] = ()


#: runs a selection; true: earlier launches count no more
Run = Callable[[Selection, bool], PassResult]
Read = Callable[[], Sequence[CalibrationLaunch]]  #: the ledger as it is now


@dataclass
class CalibrationProgress:
    """The progress of a call in each part of the plan."""

    taken: dict[Family, int] = field(default_factory=dict)
    unhealthy: set[Family] = field(default_factory=set)  #: in the last pass over them
    #: in any pass: wrong data is not made good by right data
    incorrect: set[Family] = field(default_factory=set)
    futile: dict[Family, int] = field(default_factory=dict)  #: passes that left a case as it was
    held: set[Family] = field(default_factory=set)  #: some references stayed in the last pass
    stalled: set[Family] = field(default_factory=set)  #: whose last pass was futile

    def count(
        self,
        part: CalibrationRound,
        done: PassResult,
        before: Mapping[Case, int],
        after: Mapping[Case, int],
    ) -> None:
        """Enter a pass; ``before`` and ``after`` are the launches behind each case.

        What is there before the first pass may be another program's, and is no measure of what it has brought.
        """
        first = part.family not in self.taken
        self.taken[part.family] = self.taken.get(part.family, 0) + part.launches
        self.unhealthy.discard(part.family)
        self.unhealthy |= {part.family} & set(done.unhealthy)
        wrong = (each.case for each in done.failed if each.verdict == Verdict.INCORRECT)
        self.incorrect |= {part.family} & set(map(plan_part_of, wrong))
        self.held.discard(part.family)
        self.held |= {part.family} & {plan_part_of(case) for case in done.held}
        gained = count_launches(done.launches)
        grown = (first or after.get(case, 0) > before.get(case, 0) for case in part.cases)
        self.stalled.discard(part.family)
        if not (all(gained.get(case, 0) for case in part.cases) and all(grown)):
            self.stalled.add(part.family)
            self.futile[part.family] = self.futile.get(part.family, 0) + 1

    def limit_after_failure(self, part: CalibrationRound) -> CalibrationRound:
        """Limit a part to one launch after a pass without progress."""
        return replace(part, launches=1) if part.family in self.stalled else part


def plan_part_of(case: Case) -> Family:
    """Return the part of the plan that a case belongs to."""
    return f"{case.system}:{case.partition}", case.environment, case.program


def count_launches(launches: Iterable[CalibrationLaunch]) -> dict[Case, int]:
    """Count the launches of each case."""
    return {case: len(sample.launches) for case, sample in collect_samples(launches).items()}


def calibrate_all(
    planned: Sequence[PlannedLaunch],
    selection: Selection,
    demand: LaunchTarget,
    read: Read,
    run: Run,
    progress: Progress,
) -> int:
    """Launch until each case has as many launches as are wanted, or no more may be taken; the exit status.

    What fails is tried once more. A case of which nothing comes then is left with what it has.
    """
    tally = CalibrationProgress()
    while todo := [
        tally.limit_after_failure(part)
        for part in plan_rounds(
            [each for each in planned if tally.futile.get(family_of(each), 0) < MOST_FUTILE_PASSES],
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
    lacking = report_missing(planned, count_launches(read()), demand, progress)
    failed = tally.unhealthy or tally.incorrect or tally.held
    return int(bool(failed or (lacking and not demand.at_most)))


def count_known_launches(
    read: Read, demand: LaunchTarget, tally: CalibrationProgress
) -> Mapping[Case, int]:
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
    members = [each for each in planned if family_of(each) == part.family and each.cases]
    wanted = max(demand.wanted(each) for each in members)
    there = min(wanted - count_missing_launches(each, have, demand) for each in members)
    partition, environment, program = part.family
    why = "taking" if there < wanted else "enough; to check that they still hold, taking"
    progress.say(
        f"{partition}, {environment}, {program}: {there} of {plural(wanted, 'launch', 'es')} are there; "
        f"{why} {part.launches}"
    )


def report_missing(
    planned: Iterable[PlannedLaunch],
    have: Mapping[Case, int],
    demand: LaunchTarget,
    progress: Progress,
) -> bool:
    """Say what still lacks launches; whether something does."""
    lacking: dict[Family, list[int]] = {}
    wanted: dict[Family, int] = {}
    for each in planned:
        if each.cases and (number := count_missing_launches(each, have, demand)):
            lacking.setdefault(family_of(each), []).append(number)
            wanted[family_of(each)] = demand.wanted(each)
    for family, numbers in sorted(lacking.items()):
        there = wanted[family] - max(numbers)
        progress.note(
            f"{', '.join(family)}: {there} of {plural(wanted[family], 'launch', 'es')}; the same command "
            "again takes what is missing"
        )
    return bool(lacking)
