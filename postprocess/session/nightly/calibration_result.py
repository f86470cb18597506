"""Conclude a calibration: what does not count and why, one table of all its passes, and the exit status."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from postprocess.base.formats import plural
from postprocess.calibration import losses
from postprocess.calibration.ledger import CalibrationLaunch
from postprocess.calibration.samples import find_excluded
from postprocess.calibration.schedule import CalibrationProgress, PassResult, plan_part_of
from postprocess.calibration.update import describe_absorbed
from postprocess.judging.evaluate import evaluate_launches
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch
from postprocess.model.plan import PlannedLaunch, list_places
from postprocess.model.session import Session
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog, load_catalog
from postprocess.references.comparability import name_fact
from postprocess.session.lifecycle.context import SessionContext
from postprocess.session.lifecycle.finish import build_session_summary, show_parts
from postprocess.stats.band import is_blind


def conclude_calibration(
    context: SessionContext,
    root: Path,
    planned: Sequence[PlannedLaunch],
    passes: Sequence[PassResult],
    tally: CalibrationProgress,
    ledger: Sequence[CalibrationLaunch],
) -> int:
    """Say what came of all passes of a calibration, and show their verdicts in one table; the exit status.

    It is 0 if each case has a reference that judges, though fewer launches may count than were wanted.

    :param root: where the references were written
    :param ledger: launches that are there now
    """
    progress, request = context.progress, context.request
    lost = [*list_all_lost(passes), *list_excluded_passes(passes, ledger)]
    for line in [*losses.describe_losses(lost, list_finished(passes)), *describe_staying(passes)]:
        progress.note(line)
    for path in dict.fromkeys(path for done in passes for path in done.files):
        progress.say(f"references: {path}")
    catalog = load_catalog([root, *context.reference_roots], list_places(planned))
    wrong = str(Verdict.INCORRECT)  # is not made good by right data
    finished = {done.session: done.finished for done in passes}
    counted = losses.restrict_to_counted(finished, [each for each in lost if each.loss.kind != wrong])
    judged = evaluate_launches(counted, catalog, request.site, request.rerun_options, calibrating=True)
    again = shlex.join(request.command)
    results = [replace(refuse_useless(each, tally, catalog), rerun=again) for each in judged]
    unusable = [result for result in results if not result.counts_as_healthy(False)]
    if unusable:
        what = f"{plural(len(unusable), 'case')} could not be calibrated"
        progress.note(f"{what}: mend what is said of them, and run the same command again")
    elif tally.lacking and not tally.failed:
        progress.say("each case has a usable reference all the same")
    status = int(bool(unusable or tally.failed or progress.faults))
    last = context.work.sessions / passes[-1].session
    session = Session(last, request.mode, request.site, request.command, request.strict)
    summary = build_session_summary(context, session, list_finished(passes), results, status)
    show_parts(context, [done.page for done in passes if done.page], summary)
    return status


def list_finished(passes: Sequence[PassResult]) -> list[FinishedLaunch]:
    """List all launches of several passes."""
    return [run for done in passes for run in done.finished]


def list_all_lost(passes: Sequence[PassResult]) -> list[losses.LostLaunch]:
    """List the launches of several passes that do not count."""
    return [each for done in passes for each in losses.list_lost(done.session, done.finished)]


def list_excluded_passes(
    passes: Sequence[PassResult], ledger: Sequence[CalibrationLaunch]
) -> Iterator[losses.LostLaunch]:
    """List the launches of passes that do not count any more, since later ones ran under other conditions."""
    excluded: dict[tuple[str, losses.Family], str] = {}
    for each, differing in find_excluded(ledger):
        place = each.place
        family = f"{place.system}:{place.partition}", place.environment, each.program
        excluded[each.session, family] = ", ".join(map(name_fact, differing))
    for done in passes:
        for run in done.finished:
            family = losses.family_of(run.launch)
            if what := excluded.get((done.session, family)):
                loss = losses.Loss(f"later ones had another {what}")
                cases = frozenset(run.launch.cases)
                yield losses.LostLaunch(done.session, run.launch.name, family, loss, cases, whole=True)


def describe_staying(passes: Sequence[PassResult]) -> Iterator[str]:
    """Describe why references stay as they were, by the last pass over each part of the plan."""
    notes: dict[losses.Family, str] = {}
    held: dict[Case, float] = {}
    for done in passes:
        parts = {losses.family_of(run.launch) for run in done.finished}
        notes = {family: line for family, line in notes.items() if family not in parts} | dict(done.notes)
        held = {case: by for case, by in held.items() if plan_part_of(case) not in parts} | dict(done.held)
    yield from (line for _, line in sorted(notes.items()))
    if held:
        yield describe_absorbed(held)


def refuse_useless(result: CaseResult, tally: CalibrationProgress, catalog: ReferenceCatalog) -> CaseResult:
    """Return a result; ``incomplete`` of a case of which no launch counts, or too few to judge anything.

    A single launch is enough where no more were asked for.
    """
    if not result.counts_as_healthy(False):
        return result
    if result.case in tally.uncounted:
        return replace(result, verdict=Verdict.INCOMPLETE, reason="none of its launches counts")
    reference = catalog.reference(result.case)
    if plan_part_of(result.case) in tally.lacking and reference and is_blind(reference):
        reason = f"{plural(reference.launches, 'launch', 'es')} counted, by which nothing can be judged"
        return replace(result, verdict=Verdict.INCOMPLETE, reason=reason)
    return result
