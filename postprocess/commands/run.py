"""The command ``run``: what ``nightly`` does, for a selection of cases, and recorded as a run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import chain
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.options import add_session
from postprocess.cli.parser import WHAT, Parser
from postprocess.cli.request import build_request
from postprocess.commands import nightly
from postprocess.model.options import CHOOSING
from postprocess.model.verdict import CaseResult
from postprocess.report.overview import RUN, list_groups, split_command
from postprocess.results.query import LATEST, find_finished_session
from postprocess.results.summary import SessionSummary, load_summary
from postprocess.session.nightly.run import run_nightly

HELP = "Measure and judge a selection of cases; not recorded as a nightly run."
EXAMPLE = "./plumbline run --routine bcast,reduce_sum --processes 2,4"
FAILS = nightly.FAILS


def add_arguments(parser: Parser) -> None:
    """Add the options of a session, and the one that takes the cases from another."""
    add_session(parser)
    parser.group(WHAT).add_argument(
        "--failed",
        nargs="?",
        const=LATEST,
        metavar="SESSION",
        help="what failed in the last session, or in SESSION; SESSION:N is what stands there under one reason",
    )


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Measure a selection and judge it. Returns the exit status."""
    if arguments.failed:
        arguments = choose_failed(work, arguments)
    return run_nightly(work, build_request(work, arguments), Progress())


#: What chooses cases by several values, of which the cases to be run again may have any.
COMBINED = ("environment", *(each.name for each in CHOOSING if each.several))
#: What the user may still choose.
FREE = ("json", "junit", "openmetrics", "on_failure", "strict", "launches", "seconds_per_layout", "force")


def choose_failed(work: WorkDirectory, arguments: argparse.Namespace) -> argparse.Namespace:
    """Return the options of a run that measures again what failed in a session.

    :raises UsageError: if nothing failed, or if the options choose cases too
    """
    parser = Parser(prog="plumbline run")
    add_session(parser)
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
    """Parse the command that measures a case again.

    :raises UsageError: if it is none of ``run``
    """
    words = split_command(result.rerun)
    if words[: len(RUN)] != RUN:
        what = f"{result.case.key}: is measured by another command"
        raise UsageError(f"--failed: {what}: {result.rerun or 'none is known'}")
    return parser.parse_args(words[len(RUN) :])


def combine(asked: Sequence[argparse.Namespace]) -> dict[str, Any]:
    """Combine what several commands choose: all values of an option; all there are if one leaves it out."""
    found: dict[str, Any] = {}
    for name in COMBINED:
        lists = [getattr(namespace, name) for namespace in asked]
        found[name] = list(dict.fromkeys(chain(*lists))) if all(lists) else []
    return found
