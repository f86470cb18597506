"""The passes of a comparison: one side after the other is built, tried, and launched in blocks."""

import shutil
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from postprocess.base.errors import UsageError
from postprocess.base.formats import duration, first_of, plural
from postprocess.features.compare import data
from postprocess.features.compare.data import NEW, OLD, SIDES, ComparedSide, SharedCase, StoredComparison
from postprocess.features.compare.judge import ComparisonVerdict, judge_comparison
from postprocess.features.compare.measure import fitting
from postprocess.features.compare.measure.passes import (
    collect_values,
    describe_failures,
    find_own_case,
    keep_for_references,
    note_effects,
    select_side,
)
from postprocess.features.compare.next_steps import FINGERPRINT_SHARE
from postprocess.features.compare.pairs import BLOCK, PAIRS_OF_BLOCK, draw_block
from postprocess.features.compare.text import format_verdict_counts
from postprocess.judging.evaluate import evaluate_launches, format_rerun_command
from postprocess.judging.retest_targets import build_retest_choice
from postprocess.model.launch import FinishedLaunch
from postprocess.model.options import AGAIN
from postprocess.model.plan import PlannedLaunch
from postprocess.model.session import Selection, Session
from postprocess.model.verdict import Verdict
from postprocess.references.catalog import load_catalog
from postprocess.results.launch_costs import list_jobs, read_measured_jobs
from postprocess.runner.reframe_pass import make_plan
from postprocess.session.lifecycle.context import (
    SessionContext,
    measure_in_new_session,
    measure_in_session,
    report_plan,
)
from postprocess.session.lifecycle.finish import store_trials
from postprocess.session.lifecycle.validation import DataVerification, verify_data
from postprocess.stats.paired_verdicts import EXACT_LADDERS, LADDERS, USUAL, choose_looks
from site_configs.schedulers.base import Ending

MODE = "compare"
#: Ends of a job that no program has a part in.
LOST = frozenset({Ending.NEVER_STARTED, Ending.TAKEN_AWAY})
LaunchKind = tuple[str, str, str]  #: partition, program and layout of a job


def list_block_nodes(stored: StoredComparison, block: int) -> dict[LaunchKind, tuple[str, ...]]:
    """List the nodes of the last launches of a block: the next ones are to run on the same."""
    found: dict[LaunchKind, tuple[str, ...]] = {}
    for each in stored.passes:
        for launch in each.launches if each.block == block else ():
            if nodes := launch.place.get("nodes"):
                for key in launch.cases:
                    found[kind_of(SharedCase.from_key(key))] = tuple(nodes.split(","))
    return found


def kind_of(case: SharedCase) -> LaunchKind:
    """Return what all cases of a job have in common."""
    return case.partition, case.program, case.layout


def list_open_cases(stored: StoredComparison) -> list[SharedCase]:
    """List the cases that still need pairs, and the controls; none if all are decided or have had each look."""
    judged = judge_comparison(stored)
    still = [
        case.case
        for case in judged.cases
        if case.verdict == ComparisonVerdict.UNDECIDED and case.pairs < stored.looks[-1]
    ]
    return [*still, *(control.case for control in judged.controls)] if still else []


class TooFewSecondsError(UsageError):
    """The time suffices for no look, by what launches took in the trial run, or in earlier sessions."""


@dataclass
class ComparisonBench:
    """What every pass of a comparison needs."""

    context: SessionContext
    header: data.ComparisonHeader
    path: Path
    rounds_a_block: ClassVar[int] = 2  #: how often a block has each side

    @property
    def what_is_timed(self) -> str:
        return "a pair of launches of everything"

    @property
    def stored(self) -> StoredComparison:
        return data.read_comparison(self.path)

    @property
    def selection(self) -> Selection:
        return replace(self.context.request.selection, choice=dict(self.header.choice), launches=1)

    def run_trials(self) -> None:
        """Build all sides, and launch each once: what fails then is told, and what a pass takes is known.

        :raises TooFewSecondsError: as soon as it is clear that the time does not suffice
        """
        done = {each.side for each in self.stored.passes if each.block == 0}
        missing = {name: side for name, side in self.header.sides.items() if name not in done}
        plans = self.preview_sides(missing) if self.header.seconds is not None else {}
        self.require_time(plans)
        for position, (name, side) in enumerate(self.header.sides.items()):
            if name in missing:
                self.run_trial(position, name, side, plans)
                self.require_time(plans)

    def preview_sides(self, sides: Mapping[str, ComparedSide]) -> dict[str, list[PlannedLaunch]]:
        """Plan what sides will launch, and launch nothing."""
        with self.context.progress.phase("set-up"):
            return {
                name: self.context.preview(select_side(self.context, self.selection, replace(side, plant="")))
                for name, side in sides.items()
            }

    def run_trial(
        self, position: int, name: str, side: ComparedSide, plans: Mapping[str, Sequence[PlannedLaunch]]
    ) -> None:
        """Make the trial run of a side, or take that of a comparison that was refused after it."""
        progress = self.context.progress
        plain = replace(side, plant="")  # what plants it is built by this run
        selection = select_side(self.context, self.selection, plain)
        session, reframe = self.context.open_session(MODE)
        progress.say(f"trial run of the {name} side, {side.label}: its times do not count")
        with progress.phase("trial run"):
            begin = time.monotonic()
            planned = make_plan(reframe, selection)
            looked = time.monotonic()
            planning = looked - begin
            report_plan(planned, progress)
            if self.take_trial(position, name, planned, plans):
                shutil.rmtree(session.directory, ignore_errors=True)
                return
        _, record = measure_in_session(self.context, reframe, "trial run", selection, planned)
        spent = fitting.price_pass(time.monotonic() - looked, record.build_seconds)
        verified = verify_data(self.context, selection, record.finished, afresh=True)
        for line in verified.describe():
            progress.note(f"{name} side: {line}")
        begin = time.monotonic()
        values = self.collect(side, session, record.finished, verified)
        spent += time.monotonic() - begin
        progress.say(
            f"built in {duration(record.build_seconds)}, planned in {duration(planning)}, "
            f"one pass takes {duration(spent)}"
        )
        values = self.launch_lost(plain, record.finished, values, {Ending.TAKEN_AWAY})
        for line in describe_failures(values):
            progress.note(f"trial run of the {name} side: {line}")
        if name == NEW:  # before the pass itself, which is not made again once it is kept
            note_effects(self.context, self.path, self.header.old, record.finished)
        self.keep(0, position, name, session, spent, values)

    def take_trial(
        self,
        position: int,
        name: str,
        planned: Sequence[PlannedLaunch],
        plans: Mapping[str, Sequence[PlannedLaunch]],
    ) -> bool:
        """Take the trial run of a side from a comparison that was refused after it; whether there is one.

        One by which the time would not suffice again is not taken: the machine may have been busy.
        """
        keys = {SharedCase.of(case).key for launch in planned for case in launch.all_cases}
        folders = [self.path.parent, *self.context.work.root.glob(f"{fitting.FOLDER}/*")]
        found = fitting.find_trial(folders, self.header, name, keys)
        if found is None or self.find_misfit(plans, found.done):
            return False
        self.context.progress.say(f"  taken from {found.path}, in which nothing failed")
        if found.effects:
            data.append_record(self.path, found.effects)
        data.append_record(self.path, replace(found.done, position=position))
        return True

    def require_time(self, plans: Mapping[str, Sequence[PlannedLaunch]]) -> None:
        """Require that the time clearly does not fall short, by what is known until now.

        :param plans: what the sides will launch whose trial run is to come
        :raises TooFewSecondsError: if it does
        """
        if misfit := self.find_misfit(plans, slack=fitting.RESERVE):
            raise TooFewSecondsError(misfit)

    def find_misfit(
        self,
        plans: Mapping[str, Sequence[PlannedLaunch]],
        more: data.ComparisonPass | None = None,
        slack: float = 1.0,
    ) -> str:
        """Find that the time does not suffice, in one line; empty if it does, or that cannot be told yet.

        :param plans: what the sides will launch whose trial run is to come
        :param more: a trial run beside those that were made
        :param slack: how many times the time must be needed
        """
        seconds, stored = self.header.seconds, self.stored
        if seconds is None or stored.looks or not plans:
            return ""
        made = {each.side: each for each in [*stored.passes, more] if each and each.block == 0}
        told = {name: fitting.read_pass_cost(each) for name, each in made.items()}
        costs = {name: cost for name, cost in told.items() if cost}
        jobs = {name: list_jobs(plan) for name, plan in plans.items() if name not in told}
        known = read_measured_jobs(self.context.work, [job for some in jobs.values() for job in some])
        for name, some in jobs.items():
            if cost := fitting.foresee_cost(some, known, list(costs.values())):
                costs[name] = cost
        if len(costs) < len(self.header.sides):
            return ""
        once = sum(cost.estimate(cost.cases) for cost in costs.values())
        exact = any(launch.exact for plan in plans.values() for launch in plan)
        if once * self.count_least_rounds(exact) <= seconds * slack:
            return ""
        return self.describe_misfit(once, exact, list(costs.values()))

    def count_least_rounds(self, exact: bool) -> int:
        """Count how often each side is launched at least, its trial run included."""
        return (EXACT_LADDERS if exact else LADDERS)[0][0] + 1

    def describe_misfit(self, once: float, exact: bool, costs: Sequence[fitting.SideCost]) -> str:
        """Describe that the time does not suffice, with what fits.

        :param once: seconds in which each side launches everything once
        :param costs: of each side; empty if they are not known
        """
        rounds = self.count_least_rounds(exact)
        about = (
            f"{self.what_is_timed} takes about {duration(once)}, and the least is {rounds - 1} and a trial run"
        )
        return fitting.describe_misfit(
            self.header.command, self.header.seconds or 0, about, once, rounds, costs
        )

    def refuse_for_time(self) -> TooFewSecondsError:
        """Return the error that the time does not suffice, after the trial runs of all sides."""
        stored = self.stored
        costs = [fitting.read_pass_cost(each) for each in stored.passes if each.block == 0]
        told = [cost for cost in costs if cost] if all(costs) else []
        return TooFewSecondsError(self.describe_misfit(stored.block_seconds(0), stored.is_exact, told))

    def collect(
        self,
        side: ComparedSide,
        session: Session,
        finished: Sequence[FinishedLaunch],
        verified: DataVerification | None = None,
    ) -> list[data.LaunchValues]:
        """Store every trial of some launches, and collect what they say, in their order.

        :param verified: what came of launches that verify data, where some did
        """
        context = self.context
        places = {(run.launch.partition, run.launch.environment) for run in finished}
        catalog = load_catalog(context.reference_roots, places)
        options = [
            *context.request.rerun_options,
            *(f"--set-env={side.environment}:{k}={v}" for k, v in side.set_env.items()),
        ]
        results = evaluate_launches(finished, catalog, context.request.site, options)
        results = verified.apply(results) if verified else results
        store_trials(context.work, session, finished, results)
        skipping = {skip.case: run.launch for run in finished for skip in run.launch.skips}
        commands = {
            case: format_rerun_command(launch, case, context.request.site, options)
            for case, launch in skipping.items()
        }
        told = [replace(result, rerun=result.rerun or commands.get(result.case, "")) for result in results]
        return collect_values(finished, told)

    def launch_lost(
        self,
        side: ComparedSide,
        finished: Sequence[FinishedLaunch],
        values: Sequence[data.LaunchValues],
        ends: Collection[Ending],
    ) -> list[data.LaunchValues]:
        """Launch once more, on any nodes, what the machine lost: its job ended in one of these ways."""
        lost = [run for run in finished if run.outcome.job_end in ends]
        if not lost:
            return list(values)
        self.context.progress.note(f"launched again, on any nodes: {lost[0].outcome.reason}")
        cases = [SharedCase.of(case) for run in lost for case in run.launch.cases]
        session, fresh = self.launch(side, cases, {})
        kept = [said for run, said in zip(finished, values, strict=True) if run.outcome.job_end not in ends]
        return kept + self.collect(side, session, fresh)

    def keep(
        self,
        block: int,
        position: int,
        name: str,
        session: Session,
        seconds: float,
        values: Sequence[data.LaunchValues],
    ) -> None:
        done = data.ComparisonPass(block, position, name, session.name, round(seconds, 2), tuple(values))
        data.append_record(self.path, done)

    def require_common_cases(self) -> None:
        """Require that both sides measure something alike. Raises UsageError if they do not."""
        header, passes = self.header, self.stored.passes
        said = [(each.side, key, value) for each in passes for key, value in each.values]
        timed = [each for each in said if not SharedCase.from_key(each[1]).is_control]
        old, new = (
            {key for name, key, value in timed if name == side and value.verdict != Verdict.SKIPPED}
            for side in SIDES
        )
        if not old & new:
            skipped = {value.reason for _, _, value in said if value.verdict == Verdict.SKIPPED} - {""}
            why = f" ({first_of(sorted(skipped), 1)})" if skipped else ""
            raise UsageError(
                f"{header.old.label} and {header.new.label} have no case in common{why}; choose a --program "
                "and --processes that both have: ./plumbline list"
            )

    def plan_looks(self) -> None:
        """Fix after how many pairs one will look, by the time that there is.

        :raises TooFewSecondsError: if the time does not suffice for the first look
        """
        stored = self.stored
        if stored.looks:
            return
        once = stored.block_seconds(0)
        ladders, usual = (EXACT_LADDERS, EXACT_LADDERS[0]) if stored.is_exact else (LADDERS, USUAL)
        looks = choose_looks(usual[-1], ladders)
        if (seconds := self.header.seconds) is not None:
            counts = [int((seconds * share - once) / once) for share in (1 - FINGERPRINT_SHARE, 1.0)]
            looks = choose_looks(counts[0], ladders) or choose_looks(counts[1], ladders)
        if not looks:
            raise self.refuse_for_time()
        about = f"{self.what_is_timed} takes about {duration(once)}"
        progress = self.context.progress
        # with a time there is no more of them than fit
        more = "" if seconds is not None else " and half as long again where pairs do not count,"
        progress.say(
            f"{about}: {plural(looks[-1], 'pair')} in about {duration(once * looks[-1])} at most,{more} "
            f"looks after {', '.join(map(str, looks))}; drawn order of seed {self.header.seed}"
        )
        data.append_record(self.path, data.PlannedLooks(looks))

    def run_blocks(self) -> None:
        """Measure blocks until every case is decided, the last look is taken, or the time is up.

        Pairs that do not count are made up for, in at most half as many blocks again.
        """
        progress = self.context.progress
        planned = self.stored.looks[-1] // PAIRS_OF_BLOCK
        for number in range(1, planned + planned // 2 + 1):
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
            which = f"of {planned}" if number <= planned else "for pairs that do not count"
            progress.say(f"block {number} {which} ({words}): {format_verdict_counts(judged)}")

    def has_time(self, stored: StoredComparison, number: int) -> bool:
        """Return whether a block fits into the time that is left."""
        if self.header.seconds is None:
            return True
        last = stored.block_seconds(number - 1) * (self.rounds_a_block if number == 1 else 1)
        expected = last - stored.block_seconds(number)
        return stored.seconds + expected <= self.header.seconds * 1.05

    def run_pass(self, block: int, position: int, name: str, wanted: Sequence[SharedCase]) -> None:
        """Launch one side once, with what is still open."""
        progress = self.context.progress
        side = self.header.sides[name]
        nodes = list_block_nodes(self.stored, block)
        begin = time.monotonic()
        with progress.phase("running"):
            progress.now(f"block {block}, {name} side: {side.label}")
            session, finished = self.launch(side, wanted, nodes)
            values = self.collect(side, session, finished)
            values = self.launch_lost(side, finished, values, LOST if nodes else {Ending.TAKEN_AWAY})
        self.keep(block, position, name, session, time.monotonic() - begin, values)
        if name == NEW:
            keep_for_references(self.path.parent, self.selection, session, side, finished)

    def launch(
        self, side: ComparedSide, wanted: Sequence[SharedCase], nodes: Mapping[LaunchKind, Sequence[str]]
    ) -> tuple[Session, list[FinishedLaunch]]:
        """Launch cases of one side, on these nodes where the scheduler can be asked for them."""
        cases = {find_own_case(case, side.environment): nodes.get(kind_of(case), ()) for case in wanted}
        chosen = select_side(self.context, self.selection, side)
        choice = chosen.choice | {AGAIN: build_retest_choice(cases, {}, cases)}
        asked = replace(chosen, choice=choice, side_by_side=self.stored.is_exact)
        session, _, record = measure_in_new_session(self.context.quiet, MODE, "running", asked)
        return session, record.finished
