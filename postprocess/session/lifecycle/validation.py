"""Verify the data of OSU and IMB in launches of their own, once for each build of program and libraries.

A night starts them again only for what it measured and what was not verified with this build; an acceptance and
a comparison always do.
"""

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from postprocess.base.formats import plural
from postprocess.base.records import recall, remember
from postprocess.judging.confirmation import apply_failures
from postprocess.judging.retest_targets import build_retest_choice
from postprocess.model import options
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch
from postprocess.model.routines.benchmark import CHECKED, LEAST_ITERATIONS
from postprocess.model.session import Selection
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.parsers.osu_imb_launch import LOADED
from postprocess.session.lifecycle.context import SessionContext, measure_in_new_session
from site_configs.programs.installed import find_executable
from site_configs.programs.program import PROGRAMS

FILE = "validated.json"  #: in a work directory
MODE = "validate"
CALLS = LEAST_ITERATIONS  #: of each size, each with new data
WHERE = "verification of its data"
UNVERIFIED = "data not verified: its launches could not be started"

Benchmarked = tuple[str, str, str]  #: environment, program and routine


@dataclass(frozen=True)
class VerifiedBuild:
    """With which build a case is verified, at which sizes."""

    program: str
    libraries: str
    session: str
    bytes: tuple[int, ...]


@dataclass(frozen=True)
class VerifiedBuilds:
    """What is verified, by the key of a case without its size."""

    schema: int = 1
    cases: dict[str, VerifiedBuild] = field(default_factory=dict)


@dataclass(frozen=True)
class DataVerification:
    """What came of launches that verify data."""

    wrong: Mapping[Benchmarked, str]  #: why, of each routine whose data is wrong
    unverified: tuple[str, ...] = ()  #: what should have been verified and is not, in lines
    beyond: tuple[str, ...] = ()  #: what a program cannot verify, in lines
    #: Cases of a launch whose data is wrong, at one of its sizes.
    suspects: frozenset[Case] = frozenset()

    def apply(self, results: Sequence[CaseResult]) -> list[CaseResult]:
        """Return the results; all of a routine whose data is wrong are ``incorrect``.

        Each has the command that measures the sizes of a start that was wrong: its own size may be right.
        """
        failed = [
            CaseResult(result.case, Verdict.INCORRECT, why)
            for result in results
            if (why := self.wrong.get(name_benchmark(result.case)))
        ]
        sizes: dict[Benchmarked, set[int]] = defaultdict(set)
        for case in self.suspects:
            sizes[name_benchmark(case)].add(case.bytes)
        again = {
            name: choose_sizes(result.rerun, sorted(sizes[name]))
            for result in results
            if result.case in self.suspects and (name := name_benchmark(result.case))
        }
        return [
            replace(result, rerun=again.get(name_benchmark(result.case), result.rerun))
            for result in apply_failures(results, failed, WHERE)
        ]

    def describe_wrong(self) -> Iterator[str]:
        """Describe whose data is wrong, in lines."""
        lines = [
            f"wrong data: {program} with {environment}: {why}"
            for (environment, program, _), why in sorted(self.wrong.items())
        ]
        yield from dict.fromkeys(lines)  # a start may be of several routines

    def describe(self) -> Iterator[str]:
        """Describe what is not verified, in lines."""
        yield from (*self.unverified, *self.beyond)


def name_benchmark(case: Case) -> Benchmarked:
    """Return what the data of a case is wrong with."""
    return case.environment, case.program, case.routine


def verify_data(
    context: SessionContext, selection: Selection, finished: Sequence[FinishedLaunch], afresh: bool = False
) -> DataVerification:
    """Verify the data of what OSU and IMB have measured, unless this build is verified already.

    :param afresh: whether to verify it even so
    """
    path = context.work.root / FILE
    measured = [run for run in finished if has_unverified_data(run)]
    able = [run for run in measured if is_verifiable(run)]
    known = VerifiedBuilds() if afresh else recall(path, VerifiedBuilds)
    wanted = sorted({case for run in able for case in list_unverified(run, known)})
    beyond = tuple(describe_unverifiable(measured))
    if not wanted:
        return DataVerification({}, (), beyond)
    session, started = run_verification(context, selection, wanted, options.TOGETHER)
    if unclear := sorted({case for launch in started if is_unclear(launch) for case in launch.launch.cases}):
        _, apart = run_verification(context, selection, unclear, options.APART)
        started = [launch for launch in started if not is_unclear(launch)] + apart
    with context.progress.keeping("what is verified"):
        remember_verified(path, able, started, session)
    return replace(assess_verification(started, wanted, able), beyond=beyond)


def has_unverified_data(run: FinishedLaunch) -> bool:
    """Return whether a launch ended well, and its program verifies nothing where its times count."""
    benchmarks = run.launch.benchmarks and not PROGRAMS[run.launch.program].verified
    return bool(benchmarks and run.outcome.records)


def run_verification(
    context: SessionContext, selection: Selection, wanted: Sequence[Case], how: str
) -> tuple[str, list[FinishedLaunch]]:
    """Run launches that verify the data of cases; the session's name, and what became of them."""
    chosen = select_verification(selection, wanted, how)
    session, _, done = measure_in_new_session(context, MODE, "verification", chosen)
    right = sum(run.outcome.records is not None for run in done.finished)
    programs = ", ".join(sorted({case.program for case in wanted}))
    told = f"{right} of {plural(len(done.finished), 'start')} verified it"
    context.progress.say(f"data of {programs}: {told} ({session.directory})")
    return session.name, done.finished


def is_unclear(finished: FinishedLaunch) -> bool:
    """Return whether a launch of several benchmarks does not tell which of them failed."""
    names = {benchmark.name for benchmark in finished.launch.benchmarks}
    return finished.outcome.records is None and len(names) > 1


def is_verifiable(finished: FinishedLaunch) -> bool:
    """Return whether a launch can be started to verify data: IMB needs executables that were built for it."""
    launch = finished.launch
    if not launch.benchmarks[0].executable:
        return True
    if finished.built is None:
        return False
    return find_executable(Path(finished.built.path), launch.executable + CHECKED) is not None


def list_unverified(finished: FinishedLaunch, known: VerifiedBuilds) -> Iterator[Case]:
    """List the cases of a launch whose data the program can verify, and has not with this build."""
    names = {benchmark.routine for benchmark in finished.launch.benchmarks if benchmark.verifies}
    loaded = finished.run.get(LOADED)
    for case in finished.launch.cases:
        build = known.cases.get(name_place(case))
        known_bytes = (
            build.bytes if build and loaded == {"program": build.program, "libraries": build.libraries} else ()
        )
        if case.routine in names and case.bytes not in known_bytes:
            yield case


def name_place(case: Case) -> str:
    """Return the key of a case without its size."""
    return case.key.rpartition(":")[0]


def select_verification(selection: Selection, cases: Sequence[Case], how: str) -> Selection:
    """Select the launches that verify the data of cases, in the place of those that time them.

    :param how: whether benchmarks share starts
    """
    dropped = (options.LAUNCHES, options.STRICT.variable)
    choice = {name: value for name, value in selection.choice.items() if name not in dropped}
    choice |= {
        options.AGAIN: build_retest_choice(cases, {}),
        options.VALIDATION: how,
        options.ITERATION_COUNT.variable: CALLS,
    }
    environments = sorted({case.environment for case in cases})
    return replace(selection, choice=choice, environments=environments, launches=1)


def assess_verification(
    finished: Sequence[FinishedLaunch], wanted: Sequence[Case], timed: Sequence[FinishedLaunch] = ()
) -> DataVerification:
    """Assess the launches that verify data. What came to no end, or ran another build, has verified nothing.

    :param timed: the launches whose data they verify
    """
    wrong: dict[Benchmarked, str] = {}
    suspects: set[Case] = set()
    open_cases = set(wanted)
    reasons: dict[str, str] = {}
    for run in finished:
        if run.outcome.records is not None:
            others = find_other_builds(run, timed)
            open_cases -= set(run.launch.cases) - others
            told = "the launch that verified it loaded another program or other libraries"
            reasons |= {name_place(case): told for case in others}
        elif run.outcome.verdict == Verdict.INCORRECT:
            open_cases -= set(run.launch.cases)
            for case in run.launch.cases:
                if wrong.setdefault(name_benchmark(case), why := tell_wrong(run)) == why:
                    suspects.add(case)
        else:
            told = f"{run.outcome.verdict}: {run.outcome.reason}"
            reasons |= {name_place(case): told for case in run.launch.cases}
    places = dict.fromkeys(map(name_place, sorted(open_cases)))
    lines = [f"data not verified: {place}: {reasons.get(place, 'it was not started')}" for place in places]
    return DataVerification(wrong, tuple(lines), suspects=frozenset(suspects))


def choose_sizes(command: str, sizes: Sequence[int]) -> str:
    """Put other sizes into a command that has one; a benchmark without sizes has none."""
    words = shlex.split(command)
    if options.BYTES.flag in words:
        words[words.index(options.BYTES.flag) + 1] = ",".join(map(str, sizes))
    return shlex.join(words)


def find_other_builds(verified: FinishedLaunch, timed: Sequence[FinishedLaunch]) -> set[Case]:
    """Find the cases of a launch that verified data which were timed with another build."""
    return {
        case
        for run in timed
        if not has_same_build(run, verified)
        for case in run.launch.cases
        if case in verified.launch.cases
    }


def has_same_build(timed: FinishedLaunch, verified: FinishedLaunch) -> bool:
    """Return whether two launches loaded the same; of IMB the executable that verifies is another."""
    ours, theirs = timed.run.get(LOADED), verified.run.get(LOADED)
    if ours is None or theirs is None:
        return True  # an older witness; nothing of it is remembered
    if timed.launch.benchmarks[0].executable:
        return ours["libraries"] == theirs["libraries"]
    return ours == theirs


def tell_wrong(finished: FinishedLaunch) -> str:
    """Describe wrong data, with the benchmark as the program calls it, and the program's own line."""
    launch = finished.launch
    return f"{launch.benchmarks[0].name} at {launch.processes} processes: {finished.outcome.reason}"


def describe_unverifiable(measured: Sequence[FinishedLaunch]) -> Iterator[str]:
    """Describe, in lines, whose data no launch can verify: benchmarks and executables that lack it."""
    routines: dict[str, set[str]] = defaultdict(set)
    blind: dict[str, set[str]] = defaultdict(set)
    for run in measured:
        launch = run.launch
        if not is_verifiable(run):
            blind[launch.program].add(launch.environment)
            continue
        moved = {case.routine for case in launch.cases if case.bytes}
        lacking = {one.routine for one in launch.benchmarks if not one.verifies}
        routines[launch.program] |= moved & lacking
    for program, names in sorted(routines.items()):
        if names:
            yield f"data not verified: {program} verifies none of {', '.join(sorted(names))}"
    for program, names in sorted(blind.items()):
        yield f"data not verified: {program} of {', '.join(sorted(names))} (its executables cannot verify it)"


def remember_verified(
    path: Path, timed: Sequence[FinishedLaunch], verified: Sequence[FinishedLaunch], session: str
) -> None:
    """Remember which cases of the timed launches are verified, with the build that these had.

    What was verified before and is wrong now is forgotten, so that it is verified again.
    """
    right = {
        case
        for run in verified
        if run.outcome.records
        for case in {*run.launch.cases} - find_other_builds(run, timed)
    }
    wrong = [run for run in verified if run.outcome.verdict == Verdict.INCORRECT]
    gone = {name_place(case) for run in wrong for case in run.launch.cases}
    known = recall(path, VerifiedBuilds)
    cases = {place: build for place, build in known.cases.items() if place not in gone}
    for launched in timed:
        loaded = launched.run.get(LOADED)
        if loaded is None:
            continue
        for case in launched.launch.cases:
            if case not in right:
                continue
            build = VerifiedBuild(loaded["program"], loaded["libraries"], session, (case.bytes,))
            before = cases.get(name_place(case))
            if before and (before.program, before.libraries) == (build.program, build.libraries):
                build = replace(build, bytes=tuple(sorted({*before.bytes, case.bytes})))
            cases[name_place(case)] = build
    remember(path, replace(known, cases=cases))
