"""The command ``nightly``: build, run, judge, keep, report."""

from __future__ import annotations

import argparse

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.options import add_session, parse_minutes
from postprocess.cli.parser import HOW, Parser
from postprocess.cli.request import build_request
from postprocess.session.nightly.confirm import confirm_within
from postprocess.session.nightly.run import run_nightly

HELP = "Build, run and judge all cases; calibrate first where references are missing."
EXAMPLE = "./plumbline nightly --site mycluster --json summary.json"
FAILS = "a case regressed, failed or has no usable reference (--strict: or is provisional or skipped)"


def add_arguments(parser: Parser) -> None:
    """Add the options of a night."""
    add_session(parser)
    parser.group(HOW).add_argument(
        "--confirm-within",
        type=parse_minutes,
        default=0,
        metavar="MINUTES",
        help="measure what is suspect again in sessions 20 minutes apart, for MINUTES at most (see confirm)",
    )


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Run a session and judge it. Returns the exit status."""
    request, progress = build_request(work, arguments), Progress()
    status = run_nightly(work, request, progress)
    if not arguments.confirm_within:
        return status
    return confirm_within(work, request, Progress(), arguments.confirm_within, status)
