"""What a night leaves to later ones: reference benchmarks in turn, and what was just calibrated in one launch.

OSU and IMB have hundreds of cases for each MPI. Where they run with several MPIs, a night measures each of them
with the MPI that has waited longest, and with every MPI that was never measured, has changed since, or had a
failed or suspect case the last time. The programs of the suite measure every MPI every night.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from postprocess.base.records import recall, remember
from postprocess.calibration.losses import Family, family_of
from postprocess.judging.notes import is_whole
from postprocess.model.case import LaunchPlace
from postprocess.model.launch import FinishedLaunch
from postprocess.model.options import RESTING, RestingPlace
from postprocess.model.plan import PlannedLaunch
from postprocess.model.session import Request, Selection
from postprocess.model.verdict import HEALTHY, CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog
from postprocess.session.nightly.calibrate import is_without_usable_reference
from site_configs.programs.program import PROGRAMS

FILE = "turns.json"  #: in a work directory
MOST_NIGHTS = 7  #: until each MPI had its turn
SETTLED = HEALTHY - {Verdict.SUSPECT}
DEFERRED = "measured tonight for the first time, in one launch; later nights hold theirs against it"


@dataclass(frozen=True)
class Turn:
    """When a program last measured an MPI on a partition, and what it found."""

    partition: str  #: ``system:partition``
    environment: str
    program: str
    started_utc: str  #: of the night
    planned: str  #: digest of what it was to measure, and how
    library: str  #: what the MPI said of itself that night; empty if no launch told it
    settled: bool  #: whether no case failed or was suspect

    @property
    def family(self) -> Family:
        """The part of a plan that it is about."""
        return self.partition, self.environment, self.program


@dataclass(frozen=True)
class Turns:
    """The last turn of each family, as ``recall`` and ``remember`` keep them."""

    schema: int = 1
    turns: list[Turn] = field(default_factory=list)


def choose_resting(
    root: Path, request: Request, planned: Sequence[PlannedLaunch], catalog: ReferenceCatalog
) -> dict[Family, str]:
    """Choose what rests tonight, with the reason: nothing where the user chose what to measure, or is strict.

    :param root: work directory
    :param planned: what a night would measure without turns
    """
    if request.mode != "nightly" or request.strict or request.launches is not None or request.families:
        return {}
    if not is_whole(request.selection):
        return {}
    known = {turn.family: turn for turn in recall(root / FILE, Turns).turns}
    waiting: dict[tuple[str, str], list[Turn]] = {}
    for family, launches in group_by_family(planned).items():
        turn = known.get(family)
        if turn is not None and not is_due(turn, launches, catalog):
            waiting.setdefault((turn.partition, turn.program), []).append(turn)
    return {
        turn.family: f"in turn on a later night; last measured on {turn.started_utc[:10]}"
        for turns in waiting.values()
        for turn in select_resting(turns)
    }


def group_by_family(planned: Iterable[PlannedLaunch]) -> dict[Family, list[PlannedLaunch]]:
    """Group the launches that take turns, by partition, environment and program."""
    found: dict[Family, list[PlannedLaunch]] = {}
    for launch in planned:
        if launch.cases and PROGRAMS[launch.program].in_turn and not launch.exact:
            found.setdefault(family_of(launch), []).append(launch)
    return found


def is_due(turn: Turn, launches: Sequence[PlannedLaunch], catalog: ReferenceCatalog) -> bool:
    """Return whether a program measures an MPI tonight, whose turn it may not be."""
    return (
        not turn.settled
        or turn.planned != digest_plan(launches)
        or any(
            is_without_usable_reference(catalog, launch, case) for launch in launches for case in launch.cases
        )
    )


def select_resting(turns: Sequence[Turn]) -> list[Turn]:
    """Select the MPIs that rest: all but those that waited longest, so that each has its turn within a week."""
    measured = -(-len(turns) // MOST_NIGHTS)
    return sorted(turns, key=lambda turn: (turn.started_utc, turn.family))[measured:]


def digest_plan(launches: Iterable[PlannedLaunch]) -> str:
    """Digest what launches measure and how; it changes with the MPI's library, the cases and their method."""
    told = sorted(
        [launch.library, launch.start, launch.trials, sorted(launch.method.items()), sorted(launch.cases)]
        for launch in launches
    )
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def select_without_resting(selection: Selection, resting: Mapping[Family, str]) -> Selection:
    """Return the selection whose checks skip what rests."""
    if not resting:
        return selection
    places = [asdict(RestingPlace(*family, reason)) for family, reason in sorted(resting.items())]
    return replace(selection, choice={**selection.choice, RESTING: places})


def skip_resting(planned: Iterable[PlannedLaunch], resting: Mapping[Family, str]) -> list[PlannedLaunch]:
    """Return a plan in which what rests is skipped."""
    return [
        launch.skip_all(resting[family_of(launch)]) if family_of(launch) in resting else launch
        for launch in planned
    ]


def describe_turns(resting: Mapping[Family, str], planned: Iterable[PlannedLaunch]) -> Iterator[str]:
    """Describe, a line for each program, which MPIs it measures tonight and which on a later night.

    :param planned: in which what rests is skipped
    """
    tonight = group_by_family(planned)
    for program in sorted({program for _, _, program in resting}):
        measured = sorted({environment for _, environment, name in tonight if name == program})
        rest = sorted({environment for _, environment, name in resting if name == program})
        yield (
            f"{program} in turn: {', '.join(measured)} tonight; {', '.join(rest)} on a later night "
            f"(--program {program} measures all)"
        )


def remember_turns(
    root: Path,
    started_utc: str,
    possible: Sequence[PlannedLaunch],
    resting: Mapping[Family, str],
    finished: Sequence[FinishedLaunch],
    results: Sequence[CaseResult],
) -> list[str]:
    """Remember what a night measured in turn. Returns a line for each MPI that changed while it rested.

    :param possible: what the night would have measured without turns
    """
    turns = {turn.family: turn for turn in recall(root / FILE, Turns).turns}
    libraries = find_libraries(finished)
    doubtful = {LaunchPlace.of(result.case)[:3] for result in results if result.verdict not in SETTLED}
    for family, launches in group_by_family(possible).items():
        if family not in resting:
            told = digest_plan(launches), libraries.get(family[:2], "")
            turns[family] = Turn(*family, started_utc, *told, settled=family not in doubtful)
    changed = [
        family
        for family, turn in sorted(turns.items())
        if family in resting and turn.library and libraries.get(family[:2], turn.library) != turn.library
    ]
    for family in changed:
        del turns[family]
    remember(root / FILE, Turns(turns=[turns[family] for family in sorted(turns)]))
    return [
        f"{environment} on {partition} is another library than when {program} last measured it: the next night "
        "measures it again"
        for partition, environment, program in changed
    ]


def find_libraries(finished: Iterable[FinishedLaunch]) -> dict[tuple[str, str], str]:
    """Find what the MPI of each partition and environment said of itself, by launches that tell it."""
    return {
        (done.launch.partition, done.launch.environment): str(library)
        for done in finished
        if (library := done.conditions.circumstances.get("mpi_library"))
    }


def defer_measured_once(
    request: Request, planned: Sequence[PlannedLaunch], before: ReferenceCatalog, after: ReferenceCatalog
) -> list[PlannedLaunch]:
    """Skip programs that the night has just calibrated in one launch: a second one would judge nothing.

    They run all the same if nothing else does, or if the user asks for a number of launches.

    :param before: references before the calibration
    :param after: references with what it measured
    """
    rest = {launch.program for launch in planned if launch.cases}
    deferred = {
        program
        for program in rest
        if all(
            is_measured_once(launch, before, after)
            for launch in planned
            if launch.program == program and launch.cases
        )
    }
    if request.launches is not None or not rest - deferred:
        return list(planned)
    return [launch.skip_all(DEFERRED) if launch.program in deferred else launch for launch in planned]


def is_measured_once(launch: PlannedLaunch, before: ReferenceCatalog, after: ReferenceCatalog) -> bool:
    """Return whether all references of a launch are of one launch of this night."""
    found = [after.reference(case) for case in launch.cases]
    return (
        not launch.exact
        and all(is_without_usable_reference(before, launch, case) for case in launch.cases)
        and all(reference is not None and reference.launches == 1 for reference in found)
    )
