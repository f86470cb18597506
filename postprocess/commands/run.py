"""The command ``run``: what ``nightly`` does, for a selection of cases, and recorded as a run."""

from __future__ import annotations

import argparse

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.failed_again import choose_failed
from postprocess.cli.options import add_session
from postprocess.cli.parser import WHAT, Parser
from postprocess.cli.request import build_request
from postprocess.commands import nightly
from postprocess.results.index import LATEST
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
