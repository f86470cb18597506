"""The commands that begin a session: ``nightly``, ``confirm``, ``run`` and ``calibrate``; and ``import``."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.schedule import LAUNCHES, LaunchTarget
from postprocess.cli import options
from postprocess.cli.option_types import parse_count, parse_seconds
from postprocess.cli.output_files import add_output_directory
from postprocess.cli.parser import HOW, WHAT, Command, Parser
from postprocess.cli.request import build_request, list_outputs, list_rerun_options, locate_searched
from postprocess.model.options import CHOOSING
from postprocess.model.session import Request, Selection
from postprocess.model.verdict import CaseResult
from postprocess.report import overview
from postprocess.report.overview import list_groups, split_command
from postprocess.results.query import LATEST, find_finished_session
from postprocess.results.summary import SessionSummary, load_summary
from postprocess.session.nightly.calibrate import run_calibration
from postprocess.session.nightly.confirm import confirm_within, run_confirmation
from postprocess.session.nightly.imported import import_reports
from postprocess.session.nightly.run import run_nightly
from site_configs.validation.site_files import locate_site_file


def add_nightly_arguments(parser: Parser) -> None:
    options.add_session(parser)
    parser.group(HOW).add_argument(
        "--confirm-within",
        type=options.parse_minutes,
        default=0,
        metavar="MINUTES",
        help="measure what is suspect again in sessions 20 minutes apart, for MINUTES at most (see confirm)",
    )


def run_night(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Run a session and judge it. Returns the exit status."""
    request, progress = build_request(work, arguments), Progress()
    status = run_nightly(work, request, progress)
    if not arguments.confirm_within:
        return status
    return confirm_within(work, request, Progress(), arguments.confirm_within, status)


NIGHTLY = Command(
    "./plumbline nightly --site mycluster --json summary.json",
    "a case regressed, failed or has no usable reference (--strict: or is provisional or skipped)",
    add_nightly_arguments,
    run_night,
)


def run_confirm(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Measure suspects again. Returns the exit status."""
    return run_confirmation(work, build_request(work, arguments), Progress())


CONFIRM = Command(
    "./plumbline confirm --site mycluster",
    "a case that was suspect is regressed, failed, or could not be measured again",
    options.add_session,
    run_confirm,
)


def add_run_arguments(parser: Parser) -> None:
    """Add the options of a session, and the one that takes the cases from another."""
    options.add_session(parser)
    parser.group(WHAT).add_argument(
        "--failed",
        nargs="?",
        const=LATEST,
        metavar="SESSION",
        help="what failed in the last session, or in SESSION; SESSION:N is what stands there under one reason",
    )


def run_selection(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Measure a selection and judge it. Returns the exit status."""
    if arguments.failed:
        arguments = choose_failed(work, arguments)
    return run_nightly(work, build_request(work, arguments), Progress())


RUN = Command(
    "./plumbline run --routine bcast,reduce_sum --processes 2,4",
    NIGHTLY.fails,
    add_run_arguments,
    run_selection,
)


#: What chooses cases by several values, of which the cases to be run again may have any.
COMBINED = ("environment", *(option.name for option in CHOOSING if option.several))
#: What the user may still choose.
FREE = ("json", "junit", "openmetrics", "on_failure", "strict", "launches", "seconds_per_layout", "force")


def choose_failed(work: WorkDirectory, arguments: argparse.Namespace) -> argparse.Namespace:
    """Return the options of a run that measures again what failed in a session.

    :raises UsageError: if nothing failed, or if the options choose cases too
    """
    parser = Parser(prog="plumbline run")
    options.add_session(parser)
    plain = parser.parse_args([])
    given = vars(arguments)
    for name, usual in vars(plain).items():
        if name not in FREE and given.get(name, usual) != usual:
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag}: --failed runs cases as they were run; drop one of the two")
    session, _, number = str(arguments.failed).partition(":")
    summary = load_summary(find_finished_session(work, session) / "summary.json")
    asked = [parse_again(parser, result) for result in select_results(summary, number)]
    chosen = {**given, **vars(asked[0]), **combine(asked)}
    return argparse.Namespace(**{**chosen, **{name: given[name] for name in FREE if name in given}})


def select_results(summary: SessionSummary, number: str) -> Sequence[CaseResult]:
    """Select what failed in a session, or the group of this number.

    :raises UsageError: if there is no such case
    """
    groups = list_groups(summary)
    if not number:
        found: Sequence[CaseResult] = summary.failed
    elif number.isdecimal() and 1 <= int(number) <= len(groups):
        found = groups[int(number) - 1].results
    else:
        raise UsageError(
            f"--failed {summary.session}:{number}: it has groups 1 to {len(groups)}; "
            f"./plumbline report {summary.session} lists them"
        )
    if not found:
        raise UsageError(f"--failed {summary.session}: no case failed there")
    return found


def parse_again(parser: Parser, result: CaseResult) -> argparse.Namespace:
    """Parse the command that measures a case again. Raises UsageError if it is none of ``run``."""
    words = split_command(result.rerun)
    if words[: len(overview.RUN)] != overview.RUN:
        what = f"{result.case.key}: is measured by another command"
        raise UsageError(f"--failed: {what}: {result.rerun or 'none is known'}")
    return parser.parse_args(words[len(overview.RUN) :])


def combine(asked: Sequence[argparse.Namespace]) -> dict[str, Any]:
    """Combine what several commands choose: all values of an option; all there are if one leaves it out."""
    found: dict[str, Any] = {}
    for name in COMBINED:
        lists = [getattr(namespace, name) for namespace in asked]
        found[name] = list(dict.fromkeys(chain(*lists))) if all(lists) else []
    return found


def add_calibrate_arguments(parser: Parser) -> None:
    """Add the options that say what is calibrated, with how many launches, and where references go."""
    options.add_options(parser, *options.SELECTION, trials=options.CALIBRATED_TRIALS)
    how = parser.group(HOW)
    number = how.add_mutually_exclusive_group()
    launches = f"launches per case, earlier ones included (default: {LAUNCHES})"
    options.add_options(parser, "--launches", within=number, launches=launches)
    number.add_argument(
        "--seconds", type=parse_seconds, metavar="SECONDS", help="run as many launches as fit into this time"
    )
    how.add_argument(
        "--at-most",
        type=parse_count,
        metavar="N",
        help="run at most N launches in this call; repeat on other days to reach --launches",
    )
    how.add_argument(
        "--afresh",
        action="store_true",
        help="discard earlier launches of these cases, and replace references even if this absorbs a slowdown",
    )
    add_output_directory(
        parser,
        "--output",
        "write references to DIR (default: the work directory; reviewed ones are in reference_data)",
    )


def run_calibrate(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Measure references. Returns the exit status."""
    demand = LaunchTarget(arguments.launches, arguments.at_most, arguments.afresh, seconds=arguments.seconds)
    asked = build_request(work, arguments)
    one = replace(asked, selection=replace(asked.selection, launches=1))
    return run_calibration(work, one, Progress(), demand)


CALIBRATE = Command(
    "./plumbline calibrate --launches 20 --at-most 5",
    "a case has no usable reference at the end, or its reference would absorb a slowdown",
    add_calibrate_arguments,
    run_calibrate,
)


def add_import_arguments(parser: Parser) -> None:
    parser.add_argument(
        "reports", nargs="+", type=Path, metavar="REPORT", help="report of ReFrame (--report-file)"
    )
    options.add_options(parser, *options.SITE)
    options.add_options(parser, "--references")
    options.add_summary_outputs(parser)


def run_import(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Judge what the reports tell of. Returns the exit status of the session."""
    request = Request(
        mode=arguments.name,
        command=["./plumbline", *sys.argv[1:]],
        site=arguments.site,
        selection=Selection(site=locate_site_file(work.source, arguments.site)),
        references=locate_searched(arguments),
        **list_outputs(arguments),
        rerun_options=list_rerun_options(arguments),
    )
    return import_reports(work, request, arguments.reports, Progress())


IMPORT = Command(
    "./plumbline import --site /sw/reframe/settings.py ~/.reframe/reports/run-report-7.json",
    "as of nightly",
    add_import_arguments,
    run_import,
)
