"""The command ``dossier sign``."""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path

from postprocess.analyses.compare import data
from postprocess.analyses.compare.decision import decide, write_decision
from postprocess.analyses.compare.judge import judge_comparison
from postprocess.analyses.compare.page import write_comparison_page
from postprocess.base.sanitize import show_line
from postprocess.base.signature import DOSSIER, seal
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.parser import HOW, Parser

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
        "'cpu/mpicost/bcast/*'; needs --reason and --until; may be repeated",
    )
    how.add_argument("--reason", default="", metavar="TEXT", help="why it is so decided")
    how.add_argument(
        "--until",
        type=parse_day,
        metavar="DATE",
        help="last day of the waivers, as 2027-03-31",
    )
    how.add_argument(
        "--key",
        type=Path,
        required=True,
        metavar="FILE",
        help="private key of SSH to sign with, or the public one of a key of the agent",
    )


def parse_day(text: str) -> date:
    """Parse a day as ISO 8601 has it."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day such as 2027-03-31") from None


def run(_: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Judge the raw records again, decide, write all pages anew and sign everything."""
    folder = arguments.folder
    judged = judge_comparison(data.read_comparison(folder / data.FILE))
    found = decide(judged, arguments.accept, arguments.waive, arguments.reason, arguments.until)
    write_comparison_page(folder, judged, found)
    write_decision(folder, found)
    seal(folder, arguments.key, DOSSIER)
    show_line(f"{folder}: {found.decision}: {found.sentence}")
    return 0
