"""The command ``offer run``."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.option_types import parse_assignment, parse_launches
from postprocess.cli.options import SITE, add_options
from postprocess.cli.output_files import add_output_directory
from postprocess.cli.parser import HOW, Parser
from postprocess.cli.request import build_request
from postprocess.extensions.procurement.command.check import add_nics, print_check
from postprocess.extensions.procurement.measure.run import OfferDemand, locate_folder, run_offer

HELP = "Measure what rules ask for, into one folder; the same command goes on where it stopped."
EXAMPLE = "./plumbline offer run rules.toml --site bidder --output offer"
FAILS = "the offer has a violation"


def add_arguments(parser: Parser) -> None:
    """Add rules, folder, site and category."""
    parser.add_argument("rules", type=Path, metavar="FILE", help="rules")
    add_output_directory(
        parser, "--output", "measure into DIR, or go on with it (default: offer/ of the work directory)"
    )
    add_options(parser, *SITE, "--partition", "--environment")
    add_nics(parser)
    how = parser.group(HOW)
    how.add_argument(
        "--category",
        default="baseline",
        metavar="NAME",
        help="category of the rules that this is measured in (default: baseline)",
    )
    how.add_argument(
        "--launches",
        type=parse_launches,
        metavar="N",
        help="launches of each row, if more than the rules ask for",
    )
    how.add_argument(
        "--set-env",
        type=parse_assignment,
        action="append",
        default=[],
        metavar="ENVIRONMENT:NAME=VALUE",
        help="set a variable for the launches of one environment, where the category allows it",
    )
    parser.set_defaults(time_limit=None)


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Measure an offer, then check it. Returns the exit status."""
    folder = locate_folder(arguments.output, work, "offer")
    demand = OfferDemand(
        arguments.rules.absolute(),
        folder,
        arguments.category,
        arguments.nics_per_node,
        least=arguments.launches,
    )
    arguments.launches = arguments.output = None
    run_offer(work, build_request(work, arguments), demand, Progress())
    return print_check(work, folder)
