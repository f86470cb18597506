"""The passes of a comparison: one side after the other is built, tried, and launched in blocks.

Below that stands what a pass is made of: what is selected for a side, and what its launches say of each case
and of the references that there are.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from postprocess.base.errors import UsageError
from postprocess.base.formats import duration, first_of, plural
from postprocess.calibration import ledger
from postprocess.features.compare import data
from postprocess.features.compare.data import NEW, OLD, SIDES, ComparedSide, SharedCase, StoredComparison
from postprocess.features.compare.judge import ComparisonVerdict, judge_comparison
from postprocess.features.compare.next_steps import FINGERPRINT_SHARE
from postprocess.features.compare.pairs import BLOCK, PAIRS_OF_BLOCK, draw_block
from postprocess.features.compare.text import format_verdict_counts
from postprocess.judging.evaluate import evaluate_launches
from postprocess.judging.retest import build_retest_choice
from postprocess.model.case import Case
from postprocess.model.conditions import binding_of, caches_of
from postprocess.model.launch import FinishedLaunch
from postprocess.model.options import AGAIN, PLANTED
from postprocess.model.session import Selection, Session
from postprocess.model.verdict import WITHOUT_VALUE, CaseResult, Verdict
from postprocess.references.catalog import load_catalog
from postprocess.runner.reframe_pass import make_plan
from postprocess.session.lifecycle.context import (
    SessionContext,
    measure_in_new_session,
    measure_in_session,
    report_plan,
)
from postprocess.session.lifecycle.finish import store_trials
from postprocess.session.lifecycle.injections import Injection
from postprocess.session.lifecycle.validation import DataVerification, verify_data
from postprocess.stats.comparison.paired_verdicts import EXACT_LADDERS, LADDERS, USUAL, choose_looks
from site_configs.schedulers.job_end import Ending
from spack_envs.programs import find_mpicost_prefix

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
        each.case
        for each in judged.cases
        if each.verdict == ComparisonVerdict.UNDECIDED and each.pairs < stored.looks[-1]
    ]
    return [*still, *(control.case for control in judged.controls)] if still else []


class TooFewSecondsError(UsageError):
    """The time suffices for no look, as long as launches took in the trial run."""


@dataclass
class ComparisonBench:
    """What every pass of a comparison needs."""

    context: SessionContext
    header: data.ComparisonHeader
    path: Path
    rounds_a_block: ClassVar[int] = 2  #: how often a block has each side

    @property
    def stored(self) -> StoredComparison:
        """What is measured until now."""
        return data.read_comparison(self.path)

    @property
    def selection(self) -> Selection:
        """What both sides measure."""
        return replace(self.context.request.selection, choice=dict(self.header.choice), launches=1)

    def run_trials(self) -> None:
        """Build both sides, and launch each once: what fails then is told, and what a pass takes is known."""
        progress = self.context.progress
        done = {each.side for each in self.stored.passes if each.block == 0}
        for position, (name, side) in enumerate(self.header.sides.items()):
            if name in done:
                continue
            progress.say(f"trial run of the {name} side, {side.label}: its times do not count")
            with progress.phase("trial run"):
                plain = replace(side, plant="")  # what plants it is built by this run
                selection = select_side(self.context, self.selection, plain)
                session, reframe = self.context.open_session(MODE)
                begin = time.monotonic()
                planned = make_plan(reframe, selection)
                looked = time.monotonic()
                report_plan(planned, progress)
                quiet = self.context.quiet
                _, record = measure_in_session(quiet, reframe, "running", selection, planned)
            spent = time.monotonic() - looked - record.build_seconds
            verified = verify_data(self.context, selection, record.finished, afresh=True)
            for line in verified.describe():
                progress.note(f"{name} side: {line}")
            progress.say(
                f"built in {duration(record.build_seconds)}, planned in {duration(looked - begin)}, "
                f"one pass takes {duration(spent)}"
            )
            values = self.collect(side, session, record.finished, verified)
            values = self.launch_lost(plain, record.finished, values, {Ending.TAKEN_AWAY})
            if name == NEW:  # before the pass itself, which is not made again once it is kept
                note_effects(self.context, self.path, self.header.old, record.finished)
            self.keep(0, position, name, session, spent, values)

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
        return collect_values(finished, results)

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
        """Write down what a pass says."""
        done = data.ComparisonPass(block, position, name, session.name, round(seconds, 2), tuple(values))
        data.append_record(self.path, done)

    def require_common_cases(self) -> None:
        """Require that both sides measure something alike.

        :raises UsageError: if they do not
        """
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
        about = f"a pair of launches of everything takes about {duration(once)}"
        if not looks:
            least = duration(once * (ladders[0][0] + 1))
            fix = f"give {least} or more, or choose less to measure"
            raise TooFewSecondsError(f"--seconds {self.header.seconds}: {about}; {fix}")
        progress = self.context.progress
        progress.say(
            f"{about}: {plural(looks[-1], 'pair')} in about {duration(once * looks[-1])} at most, "
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


def find_own_case(shared: SharedCase, environment: str) -> Case:
    """Find the case of one side."""
    cache, _, sync = shared.variant.partition("-")
    routine, _, peer = shared.label.partition("@")
    processes, per_node = shared.place.processes
    return Case(
        system="either",
        partition=shared.partition,
        environment=environment,
        program=shared.program,
        routine=routine,
        peer=int(peer or 0),
        cache=cache,
        sync=sync,
        processes=processes,
        per_node=per_node,
        bytes=shared.bytes,
    )


def collect_values(
    finished: Sequence[FinishedLaunch], results: Sequence[CaseResult]
) -> list[data.LaunchValues]:
    """Collect what the launches of a pass say of each case."""
    by_case = {result.case: result for result in results}
    return [
        data.LaunchValues(
            launched.launch.name,
            describe_run_place(launched.run, launched.hosts),
            {
                SharedCase.of(case).key: read_value(by_case[case], launched)
                for case in launched.launch.all_cases
                if case in by_case
            },
        )
        for launched in finished
    ]


def read_value(result: CaseResult, launch: FinishedLaunch) -> data.CaseValue:
    """Read what a result says of the launch: its value, or why there is none. Its speed is not judged here."""
    if result.verdict in WITHOUT_VALUE or not result.value:
        verdict = result.verdict if result.value is None else Verdict.INCOMPLETE
        lost = launch.outcome.job_end is not None
        return data.CaseValue(None, result.unit, str(verdict), result.reason, result.rerun, lost=lost)
    measured = launch.measurements.get(result.case.variable)
    cores = measured.core_latency if measured else None
    return data.CaseValue(
        result.value,
        result.unit,
        rerun=result.rerun,
        exact=launch.launch.exact,
        core_latency=(cores.before, cores.after) if cores else None,
    )


def describe_run_place(run: Mapping[str, Any], hosts: Sequence[str]) -> dict[str, str]:
    """Describe where and how a launch ran, by its run record and its nodes."""
    return {
        "nodes": ",".join(hosts),
        "binding": binding_of(run) or "",
        "processor": run.get("cpu_model") or "",
        "caches": caches_of(run.get("caches")) or "",
        "trials": str(run.get("trials", "")),
    }


def note_effects(
    context: SessionContext, path: Path, old: ComparedSide, finished: Sequence[FinishedLaunch]
) -> data.ReferenceEffects:
    """Write down which references of the old side's environment hold for these launches of the new side.

    :param path: of the comparison's records
    :raises postprocess.base.errors.UsageError: if a reference file is damaged, or nothing can be written
    """
    places = {
        (run.launch.partition, environment)
        for run in finished
        for environment in (run.launch.environment, old.environment)
    }
    catalog = load_catalog(context.reference_roots, places)
    outdated: dict[str, str] = {}
    holding = without = 0
    for launched in finished:
        told = launched.launch.accepts, launched.launch.by_hand
        for case in launched.launch.cases if launched.run else ():
            own = catalog.find_set(case)
            held = own and case in own.references and not own.difference(launched.conditions, case, *told)
            without += not held
            before = replace(case, environment=old.environment)
            references = catalog.find_set(before)
            if references is None or before not in references.references:
                continue
            if why := references.difference(launched.conditions, before, *told):
                outdated[before.key] = why
            else:
                holding += 1
    effects = data.ReferenceEffects(old.environment, outdated, holding, without)
    data.append_record(path, effects)
    return effects


def keep_for_references(
    folder: Path, selection: Selection, session: Session, side: ComparedSide, finished: Sequence[FinishedLaunch]
) -> None:
    """Keep launches of the new side in the dossier as a calibration's; those with a planted delay never.

    Nothing becomes a reference by that: ``references propose --compare`` reads them.

    :param selection: of the comparison, without the settings of the side
    :raises postprocess.base.errors.UsageError: if they cannot be written
    """
    if side.plant:
        return
    own = dict(selection.set_env.get(side.environment, {})) | dict(side.set_env)
    opened = ledger.CalibrationHeader(
        session.name, {side.environment: own} if own else {}, selection.oversubscribe, shell=selection.shell
    )
    launches = ledger.collect_launches(opened, session.directory, finished)
    if launches:
        ledger.append_launches(folder, session.name, launches)


def select_side(context: SessionContext, selection: Selection, side: ComparedSide) -> Selection:
    """Restrict a selection to one side, with its settings."""
    own = dict(selection.set_env.get(side.environment, {})) | dict(side.set_env)
    choice = dict(selection.choice)
    if side.plant:
        plant, _, routine = side.plant.partition(":")
        injection = Injection(side.environment, plant, routine)
        own |= injection.variables(find_mpicost_prefix(context.work.root, side.environment))
        choice[PLANTED] = [side.environment]
    set_env = {side.environment: own} if own else {}
    return replace(selection, environments=[side.environment], set_env=set_env, choice=choice)
