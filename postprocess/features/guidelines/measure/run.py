"""Guidelines from beginning to end: measured, judged, and for what loses the MPI's own settings tried."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from postprocess.base.errors import UsageError
from postprocess.base.files import write_output
from postprocess.base.formats import plural
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.features.guidelines.judge import (
    FEWEST_LAUNCHES,
    JudgedGuideline,
    JudgedOverride,
    extract_times,
    judge_guidelines,
    select_violated,
)
from postprocess.features.guidelines.measure.overrides import OverrideBench
from postprocess.features.guidelines.page import build_guideline_json, write_guideline_page
from postprocess.features.guidelines.text import (
    GuidelineResult,
    format_guidelines,
)
from postprocess.judging.evaluate import evaluate_flagged
from postprocess.model.launch import FinishedLaunch
from postprocess.model.options import PROGRAM, ROUNDS
from postprocess.model.session import Request, Session
from postprocess.model.verdict import CaseResult, Verdict, compute_exit_status
from postprocess.runner.reframe_pass import make_plan
from postprocess.session.lifecycle.context import (
    SessionContext,
    measure_in_session,
    open_session_context,
    refused_session,
    report_plan,
)
from postprocess.session.lifecycle.finish import (
    build_session_summary,
    end_session,
    finish_unanalysed,
    write_files,
)

TAG = "guidelines"


@dataclass(frozen=True)
class GuidelineDemand:
    """What the user asked for beyond a session's request."""

    launches: int
    overrides: bool  #: whether settings of the MPI are tried
    strict: bool  #: whether a violated guideline fails the session


def run_guidelines(
    work: WorkDirectory, asked: Request, demand: GuidelineDemand, progress: Progress
) -> int:
    """Measure and judge guidelines. Returns the exit status.

    :raises UsageError: for anything that is the user's to mend.
    """
    if demand.launches < FEWEST_LAUNCHES:
        raise UsageError(
            f"--launches {demand.launches}: there is no interval of fewer than {FEWEST_LAUNCHES}"
        )
    with work.held():
        context = open_session_context(work, asked, progress)
        asked = context.request
        choice = {**asked.selection.choice, ROUNDS: demand.launches, PROGRAM.variable: ["mpicost"]}
        selection = replace(asked.selection, tag=TAG, choice=choice, launches=1)
        session, reframe = context.open_session(asked.mode)
        with refused_session(session), progress.phase("set-up"):
            planned = make_plan(reframe, selection)
        report_plan(planned, progress, selection.choice)
        progress.say(
            f"{plural(sum(bool(launch.cases) for launch in planned), 'launch', 'es')} in all"
        )
        _, done = measure_in_session(context, reframe, "running", selection, planned)
        try:
            launches = list(extract_times(done.finished))
            with progress.phase("analysis"):
                judged = judge_guidelines(launches)
            overrides: list[JudgedOverride] = []
            if demand.overrides and select_violated(judged):
                bench = OverrideBench(context, selection, demand.launches)
                overrides = bench.try_all(judged, launches)
        except (UsageError, OSError):
            raise
        except Exception as error:
            return finish_unanalysed(context, session, done.finished, error)
        return finish_guidelines(context, session, done.finished, judged, overrides, demand)


def finish_guidelines(
    context: SessionContext,
    session: Session,
    finished: Sequence[FinishedLaunch],
    judged: Sequence[JudgedGuideline],
    overrides: Sequence[JudgedOverride],
    demand: GuidelineDemand,
) -> int:
    """Write store, summary, report and page, and show what was found; the exit status."""
    again = shlex.join(context.request.command)
    results = evaluate_flagged(finished, lambda _: None, Verdict.INCORRECT, again)
    notes = tuple(context.progress.notes)
    found = GuidelineResult(tuple(judged), tuple(overrides), tuple(list_failures(results)), notes)
    bad = found.failures or not found.judged or (demand.strict and found.violated)
    status = 1 if bad else compute_exit_status(results, strict=False)
    summary = build_session_summary(context, session, finished, results, status)
    with context.progress.phase("analysis"):
        summary, _ = write_files(context, session, finished, summary)
    print(format_guidelines(found), end="", flush=True)
    with context.progress.phase("analysis"):
        page = write_guideline_page(session, found)
    if file := context.request.json_file:
        write_output(file, json.dumps(build_guideline_json(found, session.name), indent=1) + "\n")
    quiet = replace(context, request=replace(context.request, json_file=None))
    return end_session(quiet, session, summary, f"every guideline: {page}")


def list_failures(results: Sequence[CaseResult]) -> list[str]:
    """List the ways in which launches failed, in a line each."""
    lines = {
        f"{result.case.system}:{result.case.partition} with {result.case.environment}: "
        f"{result.verdict}: {result.reason}"
        for result in results
        if result.verdict not in (Verdict.PASS, Verdict.SKIPPED)
    }
    return sorted(lines)
