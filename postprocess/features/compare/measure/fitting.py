"""What of a comparison fits into its time: what launches cost, what may be measured, and kept trial runs.

Programs are left out from the last one on; of the first program large process counts, then routines from the
last one of its table on. The controls stay.

A trial run is taken only if nothing failed in it: what failed may be mended.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.sanitize import quote_words
from postprocess.features.compare import data
from postprocess.features.compare.data import NEW, ComparisonHeader, ComparisonPass, LaunchValues, SharedCase
from postprocess.model.case import LaunchPlace
from postprocess.model.options import BUDGET, CHOOSING, PROCESSES, PROGRAM, ROUTINE
from postprocess.model.routines.mpicost import ROUTINES
from postprocess.model.verdict import Verdict
from postprocess.results.launch_costs import ROUGH_START, Job, MeasuredJob
from site_configs.programs.program import PROGRAMS

#: Of the time, for what is not measured yet: launches differ in how long they take
RESERVE = 1.25
BESIDE = 2.0  #: seconds of a pass in which nothing is launched, where none was made yet
#: Seconds of a build that finds all done, at most: each pass has one, where the trial run may build anew
UNCHANGED_BUILD = 1.0
SECONDS = "--seconds"
TABLE = {routine.name: number for number, routine in enumerate(ROUTINES)}


def price_pass(seconds: float, build_seconds: float) -> float:
    """Return what a later pass takes, after one that took so long, the time of its builds included."""
    return seconds - max(build_seconds - UNCHANGED_BUILD, 0.0)


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
    return frozenset(
        SharedCase.from_key(key) for key, value in said.cases.items() if value.verdict != Verdict.SKIPPED
    )


def list_job_cases(job: Job) -> frozenset[SharedCase]:
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
        alike = next((cost for cost in measured if cases <= cost.cases), None)
        if before := known.get(job.key[0]):
            whole = KnownLaunch(list_job_cases(before.job), before.seconds)
            launches.append(KnownLaunch(cases, whole.estimate(cases)))
        elif alike:
            parts = ((launch, launch.cases & cases) for launch in alike.launches)
            launches += [KnownLaunch(part, each.estimate(part)) for each, part in parts if part]
        else:
            return None
    return SideCost(tuple(launches), max((cost.beside for cost in measured), default=BESIDE))


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
        if sum(cost.estimate(wanted) for cost in costs) * rounds * RESERVE <= seconds:
            return part
    return None


def find_least(costs: Sequence[SideCost]) -> tuple[Part, float] | None:
    """Find the smallest part, and the seconds of a round of it; None if there is nothing to leave out."""
    cases = frozenset[SharedCase]().union(*(cost.cases for cost in costs))
    *_, least = [None, *list_parts(cases)]
    if least is None:
        return None
    wanted = {case for case in cases if least.takes(case)}
    return least, sum(cost.estimate(wanted) for cost in costs)


def describe_misfit(
    command: Sequence[str], seconds: int, about: str, once: float, rounds: int, costs: Sequence[SideCost]
) -> str:
    """Describe why a comparison does not fit into its time, with a command that does.

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


FOLDER = "compare"  #: of the work directory
#: Options without a part in how a launch is made.
OF_EXTENT = (
    *(option.flag for option in (*CHOOSING, BUDGET)),
    *("--seconds", "--margin", "--seed", "--output", "--json", "--plant", "--new-env"),
)


@dataclass(frozen=True)
class KeptTrial:
    """The trial run of a side, restricted to some cases."""

    path: Path
    done: ComparisonPass
    effects: data.ReferenceEffects | None  #: of the new side alone


def keep_trials(path: Path) -> Path | None:
    """Keep the trial runs of a comparison that is refused, beside where it was begun; None if it has none.

    :raises UsageError: if they cannot be kept
    """
    if not data.read_comparison(path).passes:
        return None
    kept = path.with_name(data.TRIAL)
    try:
        path.replace(kept)
    except OSError as error:
        raise UsageError(f"{kept}: {error.strerror}") from None
    return kept


def remove_trials(path: Path) -> None:
    """Remove the trial runs that an earlier call kept in the folder of a comparison that is measured now.

    :raises UsageError: if they cannot be removed
    """
    try:
        path.with_name(data.TRIAL).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{path.with_name(data.TRIAL)}: {error.strerror}") from None


def find_trial(
    folders: Iterable[Path], header: ComparisonHeader, name: str, keys: Collection[str]
) -> KeptTrial | None:
    """Find the last trial run of a side that was made as it is to be made now, and in which nothing failed."""
    paths = [path for folder in folders if (path := folder / data.TRIAL).is_file()]
    for path in sorted(set(paths), key=lambda each: each.stat().st_mtime_ns, reverse=True):
        try:
            stored = data.read_comparison(path)
        except UsageError:
            continue  # damaged, or of another version: nothing is lost but time
        if not is_alike(stored.header, header):
            continue
        for each in stored.passes:
            if is_usable(stored.header, each, header, name, keys):
                effects = stored.effects if name == NEW else None
                return KeptTrial(path, restrict_pass(each, name, keys), effects)
    return None


def is_alike(kept: ComparisonHeader, asked: ComparisonHeader) -> bool:
    """Return whether two comparisons differ in sides, extent and time alone."""
    labels = {label for header in (kept, asked) for side in header.sides.values() for label in [side.label]}
    one, two = (
        [word for word in drop_options(header.command, OF_EXTENT) if word not in {*labels, "--control"}]
        for header in (kept, asked)
    )
    return kept.site == asked.site and one == two


def is_usable(
    kept: ComparisonHeader, each: ComparisonPass, asked: ComparisonHeader, name: str, keys: Collection[str]
) -> bool:
    """Return whether the trial run of a side is one of the side that is asked for, with all of its cases.

    What becomes of references is told for all cases of the new side together, so that it must have no others.
    """
    theirs, ours = kept.sides[each.side], asked.sides[name]
    if each.block or (theirs.environment, theirs.set_env) != (ours.environment, ours.set_env):
        return False
    said = dict(each.values)
    enough = (each.side, said.keys()) == (NEW, set(keys)) if name == NEW else said.keys() >= set(keys)
    return enough and not any(value.verdict not in ("", Verdict.SKIPPED) for value in said.values())


def restrict_pass(each: ComparisonPass, name: str, keys: Collection[str]) -> ComparisonPass:
    """Return the trial run of a side as if it had had these cases only."""
    wanted = {SharedCase.from_key(key) for key in keys}
    cost = read_pass_cost(each)
    launches = [restrict_launch(launch, wanted) for launch in each.launches]
    return replace(
        each,
        side=name,
        seconds=round(cost.estimate(wanted), 2) if cost else each.seconds,
        launches=tuple(launch for launch in launches if launch.cases),
    )


def restrict_launch(launch: LaunchValues, wanted: Collection[SharedCase]) -> LaunchValues:
    """Return a launch as if it had had these cases only."""
    cases = {key: said for key, said in launch.cases.items() if SharedCase.from_key(key) in wanted}
    measured = select_measured(launch)
    seconds = KnownLaunch(measured, launch.seconds).estimate(wanted) if measured else 0.0
    return replace(launch, cases=cases, seconds=seconds)
