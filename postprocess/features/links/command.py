"""The command ``links``: measure all pairs of nodes, name what is slow, keep every trial, write the page."""

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.formats import plural
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.option_types import parse_count
from postprocess.cli.options import LAUNCHING, SITE, TRIAL_COUNTS, add_json, add_options
from postprocess.cli.parser import HOW, WHAT, Parser
from postprocess.cli.request import build_request
from postprocess.features.links import data, text
from postprocess.features.links.detect import FEWEST_NODES, SlowItem, analyse_sweep, count_launches_needed
from postprocess.features.links.page import PAGE, SweepReport, build_links_document
from postprocess.judging import evaluate
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch
from postprocess.model.plan import PlannedLaunch, list_places
from postprocess.model.routines.mpicost import TOURNAMENT, WARM
from postprocess.model.session import Request, Selection, Session
from postprocess.model.verdict import CaseResult, Verdict, compute_exit_status
from postprocess.report.rendering import write_document
from postprocess.runner.reframe import ReframeDriver
from postprocess.runner.reframe_pass import NoCaseSelected, make_plan
from postprocess.session.lifecycle import finish
from postprocess.session.lifecycle.context import (
    SessionContext,
    measure_in_session,
    open_session_context,
    refused_session,
)

TAG = "links"

EXAMPLE = "./plumbline links --site mycluster --nodes 16"
FAILS = "a node or a link is slow, or pairs could not be measured"


def add_arguments(parser: Parser) -> None:
    """Add the options of the comparison of all pairs of nodes, which has a check and sizes of its own."""
    parser.group(WHAT).add_argument(
        "--nodes",
        type=lambda word: [parse_count(word)],
        default=[],
        dest="processes",
        metavar="N",
        help="number of nodes (default: as many as the site measures)",
    )
    first = "the first of each partition"
    add_options(parser, *SITE, "--partition", "--environment", environment=first)
    how = parser.group(HOW)
    number = "number of launches (default: as many as it takes to find a bad link)"
    add_options(parser, "--launches", launches=number)
    each = "trials of each pair per launch"
    add_options(parser, *TRIAL_COUNTS, *LAUNCHING, trials=each, cache=WARM)
    how.add_argument(
        "--nodes-per-switch",
        type=parse_count,
        metavar="N",
        help="compare pairs on one switch with each other; N nodes in order of name share a switch",
    )
    add_json(parser)
    parser.set_defaults(per_node=[1], program=["mpicost"])


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Compare all pairs of nodes with each other. Returns the exit status."""
    demand = LinksDemand(arguments.launches, arguments.nodes_per_switch or 0)
    return links(work, build_request(work, arguments), demand, Progress())


@dataclass(frozen=True)
class LinksDemand:
    """What the user asked for beyond a session's request."""

    launches: int | None  #: None for as many as are needed
    per_switch: int = 0  #: nodes of a switch, in the order of their names; 0 where it is not known


def links(work: WorkDirectory, asked: Request, demand: LinksDemand, progress: Progress) -> int:
    """Compare all pairs of nodes with each other. Returns the exit status."""
    asked = replace(asked, selection=replace(asked.selection, tag=TAG))
    with work.held():
        context = open_session_context(work, asked, progress)
        asked = context.request
        session, reframe = context.open_session(asked.mode)
        with refused_session(session), progress.phase("set-up"):
            selection, planned = plan_sweep(reframe, asked.selection, demand, progress)
        report_sweep_plan(planned, progress)
        _, done = measure_in_session(context, reframe, "running", selection, planned)
        finished = [text.check_sweep_launch(launch) for launch in done.finished]
        try:
            with progress.phase("analysis"):
                pairs = data.write_pair_trials(
                    work.store, session.name, finished
                )  # whatever comes of the analysis
                told = analyse_sweeps(finished, demand)
                results = judge_links(finished, told, shlex.join(asked.command))
        except (UsageError, OSError):
            raise
        except Exception as error:
            return finish.finish_unanalysed(context, session, finished, error)
        return finish_links(context, session, finished, told, results, pairs)


def plan_sweep(
    reframe: ReframeDriver, selection: Selection, demand: LinksDemand, progress: Progress
) -> tuple[Selection, list[PlannedLaunch]]:
    """Plan a sweep with one MPI for each partition, unless some are named, and as many launches as it needs.

    :raises UsageError: if a partition has too few nodes, or none is left.
    """
    few_nodes = f"at least {FEWEST_NODES} nodes are needed to distinguish a sick node from a bad link"
    try:
        planned = make_plan(reframe, selection)
    except NoCaseSelected as error:
        raise UsageError(f"{error}; {few_nodes}") from None
    if few := next((launch for launch in planned if launch.processes < FEWEST_NODES), None):
        fix = f"{few_nodes}; choose other partitions by --partition"
        raise UsageError(f"{few.partition}: {plural(few.processes, 'node')}: {fix}")
    if not selection.environments:
        first = {
            partition: min(env for place, env in list_places(planned) if place == partition)
            for partition, _ in list_places(planned)
        }
        names = sorted(set(first.values()))
        progress.say(f"with {', '.join(names)} only (--environment chooses others)")
        selection = replace(selection, environments=names)
    needed = [
        1 if launch.exact else count_launches_needed(launch.processes, data.MEASURES) for launch in planned
    ]
    selection = replace(selection, launches=demand.launches or max(needed))
    for path in (reframe.session / "plan").glob("*.json"):
        path.unlink()  # the plan is made anew
    return selection, make_plan(reframe, selection)


def report_sweep_plan(planned: Sequence[PlannedLaunch], progress: Progress) -> None:
    for partition, environment in sorted(list_places(planned)):
        here = [e for e in planned if (e.partition, e.environment) == (partition, environment)]
        nodes, trials = here[0].processes, here[0].trials
        progress.say(
            f"{partition} with {environment}: {nodes} nodes, {nodes * (nodes - 1) // 2} pairs, "
            f"{plural(len(here), 'launch', 'es')} of {trials} trials"
        )


def analyse_sweeps(finished: Sequence[FinishedLaunch], demand: LinksDemand) -> list[SweepReport]:
    told = []
    for sweep in data.build_sweeps(finished, demand.per_switch):
        analysis = analyse_sweep(sweep.measures, exact=sweep.exact)
        remarks = [text.describe_coverage(sweep, analysis), *text.describe_detection_limits(analysis)]
        remarks += [
            text.describe_insignificant(sweep, analysis),
            text.describe_placement(sweep, analysis),
            text.describe_contention(sweep),
        ]
        named = text.describe_findings(sweep, analysis)
        told.append(SweepReport(sweep, analysis, named, [remark for remark in remarks if remark]))
    return told


def finish_links(
    context: SessionContext,
    session: Session,
    finished: Sequence[FinishedLaunch],
    told: Sequence[SweepReport],
    results: Sequence[CaseResult],
    pairs: Path,
) -> int:
    """Write store, summary and report, then show what was found and write the page; the exit status.

    :param pairs: the file that has every trial of every pair.
    """
    progress = context.progress
    failures = list_links_failures(results, told)
    named = sum(len(report.findings) for report in told)
    status = 1 if failures or named or not told else compute_exit_status(results, strict=False)
    summary = finish.build_session_summary(context, session, finished, results, status)
    with progress.phase("analysis"):
        summary, _ = finish.write_files(context, session, finished, summary)
    for line in failures:
        progress.say(line)
    for report in told:
        for line in [found.text for found in report.findings] + list(report.remarks):
            progress.say(f"{report.title}: {line}" if len(told) > 1 else line)
    with progress.phase("analysis"):
        document = build_links_document(session, told, failures, format_links_headline(named, failures))
        page = write_document(document, session.directory / PAGE)
    where = f"heat maps: {page}\ntrials of every pair: {pairs}"
    return finish.end_session(context, session, summary, where)


def judge_links(
    finished: Sequence[FinishedLaunch], told: Sequence[SweepReport], again: str
) -> list[CaseResult]:
    """Judge each case: ``regressed`` if a node or pair that was named took part.

    A case has no reference here: its peers are what it is held against.
    """
    reasons = {}
    for report in told:
        for slow in (*report.analysis.nodes, *report.analysis.pairs):
            reasons.update(
                dict.fromkeys(find_touched_rounds(report, slow, finished), find_finding_text(report, slow))
            )
    return evaluate.evaluate_flagged(finished, reasons.get, Verdict.REGRESSED, again)


def find_touched_rounds(told: SweepReport, slow: SlowItem, finished: Sequence[FinishedLaunch]) -> set[Case]:
    """Find the rounds of the tournament in which a slow pair played, at the size at which it is slow."""
    found = set()
    names = {told.sweep.nodes[node] for node in slow.who}
    for launched in finished:
        where = (launched.launch.partition, launched.launch.environment)
        if where != (told.sweep.partition, told.sweep.environment):
            continue
        ranks = {rank for rank, host in enumerate(data.list_rank_hosts(launched.run)) if host in names}
        if len(ranks) < len(names):
            continue  # it ran on other nodes
        for case in launched.launch.cases:
            if case.routine == TOURNAMENT and case.bytes == slow.measure.bytes:
                pairs = launched.records[case.variable].pairs
                if any(ranks <= {pair.a, pair.b} for pair in pairs):
                    found.add(case)
    return found


def find_finding_text(told: SweepReport, slow: SlowItem) -> str:
    """Find the line of the finding that names a node or pair."""
    return next(found.text for found in told.findings if any(set(slow.who) == set(who) for who in found.who))


def list_links_failures(results: Sequence[CaseResult], told: Sequence[SweepReport]) -> list[str]:
    """List the ways in which launches failed and the sweeps that lack pairs, in a line each."""
    lines = set()
    for result in results:
        if result.verdict not in (Verdict.PASS, Verdict.REGRESSED):
            where = f"{result.case.system}:{result.case.partition} with {result.case.environment}"
            lines.add(f"{where}: {result.verdict}: {result.reason}")
    return sorted(lines) + [line for report in told if (line := describe_missed_pairs(report.sweep))]


def describe_missed_pairs(sweep: data.PairSweep) -> str:
    """Describe the pairs that not all launches measured; empty if all did."""
    if not sweep.missing:
        return ""
    why = "the launches ran on different nodes; take all of them, or a reservation"
    where = f"{sweep.partition} with {sweep.environment}"
    return f"{where}: not measured in every launch: {text.format_pairs(sweep.missing)}: {why}"


def format_links_headline(named: int, failures: Sequence[str]) -> str:
    if failures:
        return "Not all pairs were measured"
    return f"{plural(named, 'finding')}" if named else "Nothing stands out"
