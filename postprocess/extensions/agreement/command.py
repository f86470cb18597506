"""The command ``agree``: compare mpicost, OSU and IMB in rounds, and name the one that differs."""

import argparse
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

from postprocess.base.errors import UsageError
from postprocess.base.formats import plural, render_text, wrap_all
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.options import PLACES, SURROUNDINGS, add_json, add_options
from postprocess.cli.parser import WHAT, Parser
from postprocess.cli.request import build_request
from postprocess.extensions.agreement import compare, report
from postprocess.extensions.agreement.bindings import ALL, measure_bindings
from postprocess.extensions.agreement.report import PAGE, build_agreement_document
from postprocess.judging import evaluate
from postprocess.model.case import Case
from postprocess.model.launch import FinishedLaunch
from postprocess.model.options import BYTES, ROUNDS
from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.mpicost import COMPARED
from postprocess.model.session import Request, Session
from postprocess.model.verdict import CaseResult, Verdict, compute_exit_status
from postprocess.report.rendering import write_document
from postprocess.runner.reframe_pass import make_plan
from postprocess.session.lifecycle import finish
from postprocess.session.lifecycle.context import (
    SessionContext,
    measure_in_session,
    open_session_context,
    refused_session,
    report_plan,
)
from site_configs.mpi.languages import KINDS


def topic_of(case: Case) -> compare.Topic:
    """Return what a case is about, whichever program measures it."""
    place = f"{case.system}:{case.partition}"
    return compare.Topic(place, case.environment, case.layout, case.routine, case.bytes)


def list_topics(planned: Sequence[PlannedLaunch]) -> dict[compare.Topic, dict[str, str]]:
    """List, for each topic, the programs that were to measure it, with the reason why one was skipped."""
    found: dict[compare.Topic, dict[str, str]] = {}
    for launch in planned:
        for case in select_compared_cases(launch):
            found.setdefault(topic_of(case), {})[launch.program] = ""
        for skip in launch.skips:
            if is_compared(launch, skip.case):
                found.setdefault(topic_of(skip.case), {})[launch.program] = skip.reason
    return found


def extract_samples(finished: Sequence[FinishedLaunch]) -> Iterator[compare.ProgramSample]:
    for run in finished:
        for case in select_compared_cases(run.launch):
            if measured := run.measurements.get(case.variable):
                yield compare.ProgramSample(
                    topic_of(case),
                    run.launch.program,
                    run.launch.number,
                    measured.value,
                    measured.unit,
                    measured.record.slowest_mean if measured.record else measured.headline,
                )


def select_compared_cases(launch: PlannedLaunch) -> list[Case]:
    return [case for case in launch.cases if is_compared(launch, case)]


def is_compared(launch: PlannedLaunch, case: Case) -> bool:
    """Return whether a case is compared: sizes that only warm up are not."""
    return case.bytes in launch.method.get(COMPARED, [case.bytes])


TAG = "agree"
ELEMENT = 4  #: bytes; OSU and IMB send whole floats

EXAMPLE = "./plumbline agree --routine bcast --bytes 8,65536"
FAILS = "programs disagree, or a case could not be compared"


def add_arguments(parser: Parser) -> None:
    """Add the options that say what is compared, and in how many rounds."""
    sizes = ", multiples of 4; of 8 for mpicost's reductions (default: 8,1024,65536,1048576)"
    add_options(parser, *PLACES, "--bytes", bytes=sizes)
    rounds = "number of rounds; each program runs once per round (default: %(default)s)"
    add_options(parser, "--launches", launches=rounds)
    parser.set_defaults(launches=8)
    parser.group(WHAT).add_argument(
        "--bindings",
        nargs="?",
        const=ALL,
        metavar="LANGUAGE,...",
        help=f"measure instead what languages cost over C, on this node: {', '.join(KINDS)} (default: all)",
    )
    add_options(parser, *SURROUNDINGS)
    add_json(parser)


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Compare mpicost, OSU and IMB with each other, or languages with C. Returns the exit status."""
    if arguments.bindings:
        return measure_bindings(work, arguments, Progress())
    return agree(work, build_request(work, arguments), arguments.launches, Progress())


def agree(work: WorkDirectory, asked: Request, launches: int, progress: Progress) -> int:
    """Compare the programs with each other, in so many rounds. Returns the exit status."""
    if launches < compare.FEWEST_LAUNCHES:
        raise UsageError(f"--launches {launches}: there is no interval of fewer than {compare.FEWEST_LAUNCHES}")
    if odd := [size for size in asked.selection.choice.get(BYTES.variable, ()) if size % ELEMENT]:
        raise UsageError(f"--bytes {odd[0]}: OSU and IMB send whole floats; choose multiples of {ELEMENT}")
    with work.held():
        context = open_session_context(work, asked, progress)
        asked = context.request
        choice = {**asked.selection.choice, ROUNDS: launches}
        selection = replace(asked.selection, tag=TAG, choice=choice, launches=1)
        session, reframe = context.open_session(asked.mode)
        with refused_session(session), progress.phase("set-up"):
            planned = make_plan(reframe, selection)
            wanted = list_topics(planned)
        report_plan(planned, progress, selection.choice)
        report_rounds(planned, launches, progress)
        _, done = measure_in_session(context, reframe, "running", selection, planned)
        try:
            with progress.phase("analysis"):
                agreement = compare.compare_programs(extract_samples(done.finished), wanted)
                again = shlex.join(asked.command)
                results = judge_agreement(done.finished, agreement.findings, again)
        except (UsageError, OSError):
            raise
        except Exception as error:
            return finish.finish_unanalysed(context, session, done.finished, error)
        return finish_agreement(context, session, done.finished, agreement, results)


def report_rounds(planned: Sequence[PlannedLaunch], launches: int, progress: Progress) -> None:
    """Report what a round has, and which programs are missing."""
    programs = sorted({launch.program for launch in planned if launch.cases})
    starts = sum(bool(launch.cases) for launch in planned)
    rounds = plural(launches, "round")
    progress.say(f"{', '.join(programs)} in {rounds}, {plural(starts, 'start')} in all")
    lacking = {(launch.program, skip.reason) for launch in planned for skip in launch.skips}
    for program, reason in sorted(lacking):
        progress.note(f"{program} is not compared everywhere: {reason}")


def finish_agreement(
    context: SessionContext,
    session: Session,
    finished: Sequence[FinishedLaunch],
    agreement: compare.AgreementResult,
    results: Sequence[CaseResult],
) -> int:
    """Write store, summary and report, then show what was found and write the page; the exit status."""
    failures = list_agreement_failures(results)
    status = compute_exit_status(results, strict=False)
    status = status if agreement.good and not failures else 1
    summary = finish.build_session_summary(context, session, finished, results, status)
    with context.progress.phase("analysis"):
        summary, _ = finish.write_files(context, session, finished, summary)
    print(format_agreement(agreement, failures), end="", flush=True)
    with context.progress.phase("analysis"):
        document = build_agreement_document(session, agreement, failures)
        page = write_document(document, session.directory / PAGE)
    return finish.end_session(context, session, summary, f"pictures, and why ratios are not 1: {page}")


def format_agreement(agreement: compare.AgreementResult, failures: Sequence[str]) -> str:
    """Format the tables, gaps, failures and findings, and the summary, in 80 columns.

    The tables have the operations of which not all ratios are as expected; the page has all.
    """
    topics = {comparison.topic for comparison in agreement.comparisons}
    doubtful = {
        comparison.topic
        for comparison in agreement.comparisons
        if comparison.status is not compare.RatioStatus.AGREE
    }
    told = [comparison for comparison in agreement.comparisons if comparison.topic in doubtful]
    tables = [render_text(table) for table in report.build_narrow_tables(told)]
    calm = len(topics) - len(doubtful)
    lines = [f"{plural(calm, 'case')} in which all programs agree: on the page"] if calm else []
    lines += [f"not compared: {line}" for line in report.format_gaps(agreement.gaps)]
    lines += failures
    lines += [report.format_disagreement(finding) for finding in agreement.findings]
    lines.append(report.summarise_agreement(agreement))
    return "\n".join([*tables, ""]) + "".join(f"{line}\n" for line in wrap_all(lines))


def judge_agreement(
    finished: Sequence[FinishedLaunch], findings: Sequence[compare.Disagreement], again: str
) -> list[CaseResult]:
    """Judge each case: ``incorrect`` if it is in a finding, because one of the programs is wrong.

    Of a program that stands alone the others' cases are well.
    """
    reasons = {
        (found.topic, program): report.format_disagreement(found)
        for found in findings
        for program in find_suspect_program(found)
    }

    def reason_of(case: Case) -> str | None:
        return reasons.get((topic_of(case), case.program))

    return evaluate.evaluate_flagged(finished, reason_of, Verdict.INCORRECT, again)


def find_suspect_program(found: compare.Disagreement) -> set[str]:
    """Find the program that contradicts both others, or all that disagree where none stands alone."""
    if found.alone:
        return {found.alone}
    return {program for comparison in found.comparisons for program in (comparison.over, comparison.under)}


def list_agreement_failures(results: Sequence[CaseResult]) -> list[str]:
    """List the ways in which launches failed, in a line each."""
    ours = (Verdict.PASS, Verdict.SKIPPED)
    lines = {
        f"{result.case.system}:{result.case.partition} with {result.case.environment}: {result.case.program}: "
        f"{result.verdict}: {result.reason}"
        for result in results
        if result.verdict not in ours and result.value is None
    }
    return sorted(lines)
