"""The command ``calibrate``: measure references."""

from __future__ import annotations

import argparse
from dataclasses import replace

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.schedule import LAUNCHES, LaunchTarget
from postprocess.cli.option_types import parse_count, parse_launches, parse_seconds
from postprocess.cli.options import CALIBRATED_TRIALS, SELECTION, add_options
from postprocess.cli.output_files import add_output_directory
from postprocess.cli.parser import HOW, Parser
from postprocess.cli.request import build_request
from postprocess.session.nightly.calibrate import run_calibration

HELP = "Measure references; run the launches that are missing."
EXAMPLE = "./plumbline calibrate --launches 20 --at-most 5"
FAILS = "a case has no usable reference at the end, or its reference would absorb a slowdown"


def add_arguments(parser: Parser) -> None:
    """Add the options that say what is calibrated, with how many launches, and where references go."""
    add_options(parser, *SELECTION, trials=CALIBRATED_TRIALS)
    how = parser.group(HOW)
    number = how.add_mutually_exclusive_group()
    number.add_argument(
        "--launches",
        type=parse_launches,
        metavar="N",
        help=f"launches per case, earlier ones included (default: {LAUNCHES})",
    )
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


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Measure references. Returns the exit status."""
    demand = LaunchTarget(arguments.launches, arguments.at_most, arguments.afresh, seconds=arguments.seconds)
    asked = build_request(work, arguments)
    one = replace(asked, selection=replace(asked.selection, launches=1))
    return run_calibration(work, one, Progress(), demand)
