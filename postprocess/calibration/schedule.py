"""Run a calibration from first to last launch, and report what is still missing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from postprocess.base.formats import plural
from postprocess.base.progress import Progress
from postprocess.calibration.ledger import Taken
from postprocess.calibration.rounds import (
    Demand,
    Family,
    Round,
    family_of,
    missing,
    rounds,
    together,
)
from postprocess.calibration.samples import samples
from postprocess.model.case import Case
from postprocess.model.plan import PlannedLaunch
from postprocess.model.session import Selection

VAIN_PASSES = 2  #: after so many a part of the plan is left with what it has


@dataclass(frozen=True)
class Done:
    """What came of one pass: its launches that ended well, and the parts of the plan that are not all well."""

    launches: Sequence[Taken]
    unwell: Collection[Family] = ()
    held: Collection[Case] = ()  #: whose references stay, for new ones would absorb a slowdown


Run = Callable[[Selection, bool], Done]  #: runs a selection; true: earlier launches count no more
Read = Callable[[], Sequence[Taken]]  #: the ledger as it is now


@dataclass
class Tally:
    """What a call has done so far of each part of the plan."""

    taken: dict[Family, int] = field(default_factory=dict)
    unwell: set[Family] = field(default_factory=set)  #: in the last pass over them
    vain: dict[Family, int] = field(default_factory=dict)  #: passes that left a case as it was
    held: set[Family] = field(default_factory=set)  #: some references stayed in the last pass
    doubted: set[Family] = field(default_factory=set)  #: whose last pass did so

    def count(
        self, part: Round, done: Done, before: Mapping[Case, int], after: Mapping[Case, int]
    ) -> None:
        """Enter a pass; ``before`` and ``after`` are the launches behind each case.

        What is there before the first pass may be another program's, and is no measure of what it has brought.
        """
        first = part.family not in self.taken
        self.taken[part.family] = self.taken.get(part.family, 0) + part.launches
        self.unwell.discard(part.family)
        self.unwell |= {part.family} & set(done.unwell)
        self.held.discard(part.family)
        self.held |= {part.family} & {family(case) for case in done.held}
        gained = counts(done.launches)
        grown = (first or after.get(case, 0) > before.get(case, 0) for case in part.cases)
        self.doubted.discard(part.family)
        if not (all(gained.get(case, 0) for case in part.cases) and all(grown)):
            self.doubted.add(part.family)
            self.vain[part.family] = self.vain.get(part.family, 0) + 1

    def careful(self, part: Round) -> Round:
        """Limit a part to one launch after a pass without progress."""
        return replace(part, launches=1) if part.family in self.doubted else part


def family(case: Case) -> Family:
    """The part of the plan that a case belongs to."""
    return f"{case.system}:{case.partition}", case.environment, case.program


def counts(launches: Iterable[Taken]) -> dict[Case, int]:
    """How many launches stand behind each case."""
    return {case: len(sample.launches) for case, sample in samples(launches).items()}


def calibrate_all(
    planned: Sequence[PlannedLaunch],
    selection: Selection,
    demand: Demand,
    read: Read,
    run: Run,
    progress: Progress,
) -> int:
    """Launch until each case has as many launches as are wanted, or no more may be taken; the exit status.

    What fails is tried once more. A case of which nothing comes then is left with what it has.
    """
    tally = Tally()
    while todo := [
        tally.careful(part)
        for part in rounds(active(planned, tally), known(read, demand, tally), demand, tally.taken)
    ]:
        have = known(read, demand, tally)
        for part in todo:
            say(part, planned, have, demand, progress)
        launches = together(todo, planned)
        passes = (
            [(replace(selection, launches=launches), todo)]
            if launches
            else [(part.of(selection), [part]) for part in todo]
        )
        for chosen, parts in passes:
            done = run(chosen, demand.afresh and parts[0].family not in tally.taken)
            now = counts(read())
            for part in parts:
                tally.count(part, done, have, now)
    lacking = tell_missing(planned, counts(read()), demand, progress)
    return int(bool(tally.unwell or tally.held or (lacking and not demand.at_most)))


def active(planned: Iterable[PlannedLaunch], tally: Tally) -> list[PlannedLaunch]:
    """The part of the plan of which further launches may bring something."""
    return [each for each in planned if tally.vain.get(family_of(each), 0) < VAIN_PASSES]


def known(read: Read, demand: Demand, tally: Tally) -> Mapping[Case, int]:
    """Launches behind each case; of what begins afresh none."""
    found = counts(read())
    if not demand.afresh:
        return found
    return {case: number for case, number in found.items() if family(case) in tally.taken}


def say(
    part: Round,
    planned: Iterable[PlannedLaunch],
    have: Mapping[Case, int],
    demand: Demand,
    progress: Progress,
) -> None:
    """How far a part of the plan is, and what is launched next."""
    members = [each for each in planned if family_of(each) == part.family and each.cases]
    wanted = max(demand.wanted(each) for each in members)
    there = min(wanted - missing(each, have, demand) for each in members)
    partition, environment, program = part.family
    why = "taking" if there < wanted else "enough; to see that they still hold, taking"
    progress.say(
        f"{partition}, {environment}, {program}: {there} of {plural(wanted, 'launch', 'es')} are there; "
        f"{why} {part.launches}"
    )


def tell_missing(
    planned: Iterable[PlannedLaunch],
    have: Mapping[Case, int],
    demand: Demand,
    progress: Progress,
) -> bool:
    """Say what still lacks launches; whether something does."""
    lacking: dict[Family, list[int]] = {}
    wanted: dict[Family, int] = {}
    for each in planned:
        if each.cases and (number := missing(each, have, demand)):
            lacking.setdefault(family_of(each), []).append(number)
            wanted[family_of(each)] = demand.wanted(each)
    for family, numbers in sorted(lacking.items()):
        there = wanted[family] - max(numbers)
        progress.note(
            f"{', '.join(family)}: {there} of {plural(wanted[family], 'launch', 'es')}; the same command "
            "again takes what is missing"
        )
    return bool(lacking)
