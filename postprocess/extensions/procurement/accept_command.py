"""The command ``accept``."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.options import SITE, add_options
from postprocess.cli.output_files import add_output_directory, check_page
from postprocess.cli.parser import HOW, Parser
from postprocess.cli.request import build_request
from postprocess.extensions.procurement.check_command import add_buyer, add_nics, hash_issued
from postprocess.extensions.procurement.measure.accept import AcceptanceDemand, run_acceptance
from postprocess.extensions.procurement.measure.run import locate_folder
from postprocess.extensions.procurement.protocol import ACCEPT

HELP = "Hold a delivered machine against a sealed offer: each row met, missed, undecided or not run."
EXAMPLE = "./plumbline accept A.tar --site delivered --signers allowed_signers --key ~/.ssh/id_ed25519"
FAILS = "a row is missed or was not run, or a run rule was broken"
PARSER = {"others": ((3, "a row is undecided"),)}


def add_arguments(parser: Parser) -> None:
    """Add the offer, the site, who may sign, and the key of the protocol."""
    parser.add_argument("offer", type=Path, metavar="FILE", help="sealed offer")
    add_output_directory(
        parser,
        "--output",
        "write the protocol to DIR, or go on there (default: accept/ of the work directory)",
        pages=ACCEPT,
    )
    add_options(parser, *SITE, "--partition", "--environment")
    add_nics(parser)
    add_buyer(parser)
    parser.group(HOW).add_argument(
        "--key", type=Path, metavar="FILE", help="sign the protocol with this key of SSH"
    )
    parser.set_defaults(time_limit=None)


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Accept a delivered machine, or not. Returns the exit status."""
    demand = AcceptanceDemand(
        arguments.offer.absolute(),
        locate_folder(arguments.output, work, "accept"),
        arguments.signers,
        hash_issued(arguments.rules),
        arguments.key and arguments.key.absolute(),
        arguments.nics_per_node,
    )
    if demand.key:
        check_page("--output", demand.sealed)
    arguments.output = None
    return run_acceptance(work, build_request(work, arguments), demand, Progress())
