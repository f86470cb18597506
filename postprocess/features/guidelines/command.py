"""The command ``guidelines``: find operations that lose to what has the same result, and what helps."""

from __future__ import annotations

import argparse

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.option_types import parse_launches
from postprocess.cli.options import LAUNCHING, PLACES, TRIAL_COUNTS, add_json, add_options
from postprocess.cli.parser import HOW, Parser
from postprocess.cli.request import build_request
from postprocess.features.guidelines.measure.run import GuidelineDemand, run_guidelines

HELP = "Find operations that lose to other calls with the same result, and settings that help."
EXAMPLE = "./plumbline guidelines --environment openmpi-5_0_11 --routine bcast,bcast_as_sends"
FAILS = "a launch failed, or --strict and a guideline is violated"


def add_arguments(parser: Parser) -> None:
    """Add the options that say what is compared, in how many launches, and what fails."""
    add_options(
        parser,
        *PLACES,
        "--bytes",
        *TRIAL_COUNTS,
        bytes=" (default: 8 times the powers of four, to 512 KiB)",
        trials="trials of mpicost per case and launch (default: the site's, else 51)",
    )
    how = parser.group(HOW)
    how.add_argument(
        "--launches",
        type=parse_launches,
        default=8,
        metavar="N",
        help="launches, each with both sides of every guideline (default: %(default)s; one in simulated time)",
    )
    how.add_argument(
        "--no-overrides", action="store_true", help="try no settings of the MPI for the operations that lose"
    )
    how.add_argument("--strict", action="store_true", help="let a violated guideline fail the session")
    add_options(parser, *LAUNCHING)
    add_json(parser)


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Measure and judge guidelines. Returns the exit status."""
    demand = GuidelineDemand(arguments.launches, not arguments.no_overrides, arguments.strict)
    arguments.strict = False  # of cases nothing is asserted
    return run_guidelines(work, build_request(work, arguments), demand, Progress())
