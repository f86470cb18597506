"""The command ``dossier sign``."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.base.formats import parse_decimal
from postprocess.base.sanitize import show_line
from postprocess.base.signature import DOSSIER, seal
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.option_types import parse_comma_list
from postprocess.cli.parser import HOW, Parser
from postprocess.features.compare import data
from postprocess.features.compare.decision import USUAL, WAIVABLE, CaseWaiver, decide, write_decision
from postprocess.features.compare.judge import judge_comparison
from postprocess.features.compare.page import write_comparison_page
from postprocess.references.decisions import MOST_DAYS

HELP = "Accept or reject what a comparison says, and sign the dossier with all that it rests on."
EXAMPLE = "./plumbline dossier sign DIR --accept --key ~/.ssh/id_ed25519"
FAILS = ""


def add_arguments(parser: Parser) -> None:
    """Add the dossier and the decision."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="directory of the comparison")
    how = parser.group(HOW)
    kinds = how.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--accept", action="store_true", help="the new side may be used")
    kinds.add_argument("--reject", action="store_true", help="it may not; needs --reason")
    how.add_argument(
        "--waive",
        action="append",
        default=[],
        metavar="PATTERN",
        help="accept cases whose keys match although they are not proven fine, as in "
        "'cpu/mpicost/bcast/*'; needs --reason and --until, and names a routine; may be repeated",
    )
    how.add_argument("--reason", default="", metavar="TEXT", help="why it is so decided")
    how.add_argument(
        "--until",
        default="",
        metavar="DATE",
        help=f"last day of the waivers, as 2027-03-31, at most {MOST_DAYS} days ahead",
    )
    how.add_argument(
        "--verdicts",
        type=parse_comma_list,
        default=list(map(str, USUAL)),
        metavar="LIST",
        help=f"what the waivers cover, of {', '.join(map(str, WAIVABLE))} "
        f"(default: {', '.join(map(str, USUAL))}); wrong data never",
    )
    how.add_argument(
        "--factor",
        type=parse_factor,
        metavar="X",
        help="most slowdown that the waivers cover, as in 1.5; needed where a case is slower",
    )
    how.add_argument("--ticket", default="", metavar="TEXT", help="where the waivers are discussed")
    how.add_argument(
        "--key",
        type=Path,
        required=True,
        metavar="FILE",
        help="private key of SSH to sign with, or the public one of a key of the agent",
    )


def parse_factor(text: str) -> float:
    """Parse a slowdown."""
    try:
        return parse_decimal(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(_: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Judge the raw records again, decide, write all pages anew and sign everything."""
    folder = arguments.folder
    judged = judge_comparison(data.read_comparison(folder / data.FILE))
    told = arguments.until, (), tuple(arguments.verdicts), arguments.factor, arguments.ticket
    asked = [CaseWaiver(pattern, arguments.reason, *told) for pattern in arguments.waive]
    found = decide(judged, arguments.accept, asked, arguments.reason)
    write_comparison_page(folder, judged, found)
    write_decision(folder, found)
    seal(folder, arguments.key, DOSSIER)
    show_line(f"{folder}: {found.decision}: {found.sentence}")
    return 0
