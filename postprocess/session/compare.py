"""A comparison of two sides from beginning to end: both measured in turn, judged at fixed looks, and told."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from postprocess.analyses.compare import data, page
from postprocess.analyses.compare.data import (
    NEW,
    OLD,
    SIDES,
    CaseValue,
    ComparedSide,
    ComparisonHeader,
    ComparisonPass,
    LaunchValues,
    SharedCase,
    StoredComparison,
)
from postprocess.analyses.compare.judge import Comparison, JudgedComparison, judge_comparison
from postprocess.analyses.compare.order import BLOCK, PAIRS_OF_BLOCK, draw_block
from postprocess.analyses.compare.text import format_comparison_text
from postprocess.base.errors import UsageError
from postprocess.base.files import write_summary
from postprocess.base.formats import duration, plural, utc_now
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.judging.evaluate import evaluate_launches
from postprocess.judging.retest import build_retest_choice
from postprocess.model.case import Case
from postprocess.model.conditions import binding_of, caches_of
from postprocess.model.launch import FinishedLaunch
from postprocess.model.mpicost import CONTROLS
from postprocess.model.options import AGAIN, PROGRAM, ROUTINE
from postprocess.model.session import Request, Selection, Session
from postprocess.model.verdict import FAILED_LAUNCH, CaseResult, Verdict
from postprocess.references.catalog import load_catalog
from postprocess.runner.reframe_pass import make_plan, run_again, run_plan
from postprocess.session.compare_sides import find_sides, select_side
from postprocess.session.context import SessionContext, open_session_context, report_plan
from postprocess.session.finish import store_trials
from postprocess.stats.paired_verdicts import LADDERS, USUAL, choose_looks

MODE = "compare"
FOLDER = "compare"  #: of the work directory


@dataclass(frozen=True)
class ComparisonDemand:
    """What the user asked for beyond a session's request."""

    old: ComparedSide
    new: ComparedSide
    margins: tuple[float, float, float]  #: as fractions, by class of sizes
    directory: Path | None = None
    seconds: int | None = None
    control: bool = False
    seed: int | None = None


def run_comparison(
    work: WorkDirectory, request: Request, demand: ComparisonDemand, progress: Progress
) -> int:
    """Compare two sides. Returns the exit status.

    :raises UsageError: for anything that is the user's to mend.
    """
    with work.held():
        context = open_session_context(work, request, progress)
        asked = describe_comparison(context, demand)
        report_differences(asked, progress)
        path, stored = find_or_begin(work, demand, asked, progress)
        bench = ComparisonBench(context, stored.header, path)
        bench.run_trials()
        bench.plan_looks()
        bench.run_blocks()
    return conclude_comparison(path.parent, progress, request.json_file)


def describe_comparison(context: SessionContext, demand: ComparisonDemand) -> ComparisonHeader:
    """Describe a comparison as it begins.

    :raises UsageError: if a side is not there, or if both are the same thing
    """
    sides = find_sides(context, demand.old, demand.new)
    if not sides.differences and not demand.control:
        raise UsageError(
            f"{demand.old.label} and {demand.new.label} are the same thing; name another side, "
            "or pass --control to see what is called different that is not"
        )
    selection = context.request.selection
    return ComparisonHeader(
        site=context.request.site,
        old=sides.old,
        new=sides.new,
        choice=choose_with_controls(selection.choice),
        margins=demand.margins,
        seconds=demand.seconds,
        control=demand.control,
        seed=random.SystemRandom().randrange(2**32) if demand.seed is None else demand.seed,
        differences=sides.differences,
        started_utc=utc_now(),
        command=tuple(context.request.command),
    )


def choose_with_controls(choice: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choice of the user, with the controls beside the routines that were chosen."""
    routines, programs = ROUTINE.wanted(choice), PROGRAM.wanted(choice)
    if not routines or (programs and "mpicost" not in programs):
        return dict(choice)
    return {**choice, ROUTINE.variable: list(dict.fromkeys([*routines, *CONTROLS]))}


def report_differences(asked: ComparisonHeader, progress: Progress) -> None:
    """Say what differs between the sides, before anything is measured."""
    progress.say(f"old: {asked.old.label} ({asked.old.environment})")
    progress.say(f"new: {asked.new.label} ({asked.new.environment})")
    for what, old, new in asked.differences:
        progress.say(f"  {what}: {old} -> {new}")
    if not asked.differences:
        progress.say("  nothing differs: a control")


#: What must be asked for again to continue a comparison.
SAME_AGAIN = ("site", "old", "new", "choice", "margins", "seconds", "control")


def find_or_begin(
    work: WorkDirectory, demand: ComparisonDemand, asked: ComparisonHeader, progress: Progress
) -> tuple[Path, StoredComparison]:
    """Find the comparison that an earlier call of the same command left unfinished, or begin one.

    :raises UsageError: if the folder that was asked for holds another one, or one that is finished
    """
    if demand.directory:
        path = demand.directory / data.FILE
        if (demand.directory / page.JSON).exists():
            raise UsageError(f"{demand.directory}: holds a comparison; choose another --output")
        found = path if path.exists() else None
    else:
        path = work.root / FOLDER / asked.started_utc.replace(":", "").replace("-", "") / data.FILE
        found = find_unfinished(work.root / FOLDER, asked)
    if found is None:
        data.write_header(path, asked)
        return path, data.read_comparison(path)
    data.truncate_unfinished_line(found)
    stored = data.read_comparison(found)
    if other := find_other_demand(stored.header, asked):
        raise UsageError(f"{found}: was begun with other {other}; choose another --output")
    progress.say(f"going on with {found}: {plural(len(stored.passes), 'pass', 'es')} done")
    return found, stored


def find_unfinished(folder: Path, asked: ComparisonHeader) -> Path | None:
    """Find the last comparison that asked for the same and has no result yet."""
    for path in sorted(folder.glob(f"*/{data.FILE}"), reverse=True):
        if not (path.parent / page.JSON).exists():
            try:
                header = data.read_comparison(path).header
            except UsageError:  # damaged: a new one is begun beside it
                continue
            if not find_other_demand(header, asked):
                return path
    return None


def find_other_demand(begun: ComparisonHeader, asked: ComparisonHeader) -> str:
    """Find what two calls have asked for differently; empty if nothing."""
    one, two = asdict(begun), asdict(asked)
    return next((name for name in SAME_AGAIN if one[name] != two[name]), "")


@dataclass
class ComparisonBench:
    """What every pass of a comparison needs."""

    context: SessionContext
    header: ComparisonHeader
    path: Path

    @property
    def stored(self) -> StoredComparison:
        """What is measured until now."""
        return data.read_comparison(self.path)

    @property
    def selection(self) -> Selection:
        """What both sides measure."""
        return replace(self.context.request.selection, choice=dict(self.header.choice), launches=1)

    def side(self, name: str) -> ComparedSide:
        """Return a side by its name."""
        return self.header.old if name == OLD else self.header.new

    def run_trials(self) -> None:
        """Build both sides, and launch each once: what fails then is told, and what a pass takes is known."""
        progress = self.context.progress
        done = {each.side for each in self.stored.passes if each.block == 0}
        for position, name in enumerate(SIDES):
            if name in done:
                continue
            side = self.side(name)
            progress.say(f"trial run of the {name} side, {side.label}: its times do not count")
            with progress.phase("trial run"):
                plain = replace(side, plant="")  # what plants it is built by this run
                selection = select_side(self.context, self.selection, plain)
                session, reframe = self.context.open_session(MODE)
                begin = time.monotonic()
                planned = make_plan(reframe, selection)
                looked = time.monotonic()
                report_plan(planned, progress)
                record = run_plan(reframe, selection, planned, Progress(Console(quiet=True)))
            spent = time.monotonic() - looked - record.build_seconds
            progress.say(
                f"built in {duration(record.build_seconds)}, planned in {duration(looked - begin)}, "
                f"one pass takes {duration(spent)}"
            )
            self.keep(0, position, name, session, spent, record.finished)

    def keep(
        self,
        block: int,
        position: int,
        name: str,
        session: Session,
        seconds: float,
        finished: Sequence[FinishedLaunch],
    ) -> None:
        """Store every trial of a pass, and write down what it says."""
        context = self.context
        places = {(each.launch.partition, each.launch.environment) for each in finished}
        catalog = load_catalog(context.reference_roots, places)
        side = self.side(name)
        options = [
            *context.request.rerun_options,
            *(f"--set-env={side.environment}:{k}={v}" for k, v in side.set_env.items()),
        ]
        results = evaluate_launches(finished, catalog, context.request.site, options)
        store_trials(context.work, session, finished, results)
        launches = tuple(collect_values(finished, results))
        done = ComparisonPass(block, position, name, session.name, round(seconds, 2), launches)
        data.append_pass(self.path, done)

    def plan_looks(self) -> None:
        """Fix after how many pairs one will look, by the time that there is.

        :raises UsageError: if the time does not suffice for the first look
        """
        stored = self.stored
        if stored.looks:
            return
        once = sum(each.seconds for each in stored.passes if each.block == 0)
        pairs = USUAL[-1]
        if self.header.seconds is not None:
            pairs = int((self.header.seconds - once) / once)
        looks = choose_looks(pairs)
        about = f"a pair of launches of everything takes about {duration(once)}"
        if not looks:
            least = duration(once * (LADDERS[0][0] + 1))
            fix = f"give {least} or more, or choose less to measure"
            raise UsageError(f"--seconds {self.header.seconds}: {about}; {fix}")
        progress = self.context.progress
        progress.say(
            f"{about}: {plural(looks[-1], 'pair')} in about {duration(once * looks[-1])} at most, "
            f"looks after {', '.join(map(str, looks))}; drawn order of seed {self.header.seed}"
        )
        data.append_plan(self.path, looks)

    def run_blocks(self) -> None:
        """Measure blocks until every case is decided, the last look is taken, or the time is up."""
        progress = self.context.progress
        for number in range(1, self.stored.looks[-1] // PAIRS_OF_BLOCK + 1):
            stored = self.stored
            done = {each.position for each in stored.passes if each.block == number}
            if len(done) == BLOCK:
                continue
            wanted = list_open_cases(stored)
            if not wanted:
                return
            if not self.has_time(stored, number):
                progress.note("the time is up: what is undecided stays so")
                return
            order = draw_block(self.header.seed, number)
            for position, name in enumerate(order):
                if position not in done:
                    self.run_pass(number, position, name, wanted)
            words = " ".join(order).replace(OLD, "A").replace(NEW, "B").replace(" ", "")
            judged = judge_comparison(self.stored)
            last = self.stored.looks[-1] // PAIRS_OF_BLOCK
            progress.say(f"block {number} of {last} ({words}): {tell_counts(judged)}")

    def has_time(self, stored: StoredComparison, number: int) -> bool:
        """Return whether a block fits into the time that is left."""
        if self.header.seconds is None:
            return True
        last = [each.seconds for each in stored.passes if each.block in (number - 1, number)]
        expected = sum(last) * (2 if number == 1 else 1)
        return sum(each.seconds for each in stored.passes) + expected <= self.header.seconds * 1.05

    def run_pass(self, block: int, position: int, name: str, wanted: Sequence[SharedCase]) -> None:
        """Launch one side once, with what is still open."""
        progress = self.context.progress
        side = self.side(name)
        cases = [find_own_case(each, side.environment) for each in wanted]
        chosen = select_side(self.context, self.selection, side)
        choice = chosen.choice | {AGAIN: build_retest_choice(cases, {})}
        session, reframe = self.context.open_session(MODE)
        with progress.phase("running"):
            begin = time.monotonic()
            progress.now(f"block {block}, {name} side: {side.label}")
            _, record = run_again(
                reframe, replace(chosen, choice=choice), Progress(Console(quiet=True))
            )
            spent = time.monotonic() - begin
        self.keep(block, position, name, session, spent, record.finished)


def find_own_case(shared: SharedCase, environment: str) -> Case:
    """Find the case of one side."""
    cache, _, sync = shared.variant.partition("-")
    routine, _, peer = shared.label.partition("@")
    processes, _, per_node = shared.layout.partition("x")
    return Case(
        "either",
        shared.partition,
        environment,
        shared.program,
        routine,
        int(peer or 0),
        cache,
        sync,
        int(processes),
        int(per_node),
        shared.bytes,
    )


def collect_values(
    finished: Sequence[FinishedLaunch], results: Sequence[CaseResult]
) -> list[LaunchValues]:
    """Collect what the launches of a pass say of each case."""
    by_case = {each.case: each for each in results}
    return [
        LaunchValues(
            each.launch.name,
            describe_place(each),
            {
                SharedCase.of(case).key: read_value(by_case[case], each.launch.exact)
                for case in each.launch.all_cases
                if case in by_case
            },
        )
        for each in finished
    ]


def read_value(result: CaseResult, exact: bool) -> CaseValue:
    """Read what a result says of the launch: its value, or why there is none. Its speed is not judged here."""
    if result.verdict in (*FAILED_LAUNCH, Verdict.SKIPPED) or not result.value:
        verdict = result.verdict if result.value is None else Verdict.INCOMPLETE
        return CaseValue(None, result.unit, str(verdict), result.reason, result.rerun)
    return CaseValue(result.value, result.unit, rerun=result.rerun, exact=exact)


def describe_place(launch: FinishedLaunch) -> dict[str, str]:
    """Describe what both launches of a pair must share, from the records of the launch."""
    run = launch.run
    return {
        "nodes": ",".join(launch.hosts),
        "binding": binding_of(run) or "",
        "processor": run.get("cpu_model") or "",
        "caches": caches_of(run.get("caches")) or "",
        "trials": str(run.get("trials", "")),
    }


def list_open_cases(stored: StoredComparison) -> list[SharedCase]:
    """List the cases that still need pairs, and the controls; none if all are decided."""
    judged = judge_comparison(stored)
    still = [each.case for each in judged.cases if each.verdict == Comparison.UNDECIDED]
    return [*still, *(each.case for each in judged.controls)] if still else []


def tell_counts(judged: JudgedComparison) -> str:
    """Tell the number of cases by verdict."""
    return ", ".join(f"{count} {verdict}" for verdict, count in judged.counts.items())


def conclude_comparison(directory: Path, progress: Progress, json_file: Path | None = None) -> int:
    """Judge a comparison, write its pages and show it. Returns the exit status.

    :raises UsageError: if the folder has none
    """
    judged = judge_comparison(data.read_comparison(directory / data.FILE))
    written = page.write_comparison(directory, judged)
    print(format_comparison_text(judged), end="", flush=True)
    if json_file:
        write_summary(json_file, page.build_comparison_json(judged))
    progress.say(f"{written}; every value: {directory / data.FILE}")
    return judged.decision.status
