"""The command ``dossier verify``."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.analyses.compare.decision import list_expired, read_decision, tell_waivers
from postprocess.base.sanitize import show_line
from postprocess.base.signature import DOSSIER, find_changes, find_signer
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.parser import HOW, Parser

HELP = "Verify who signed a dossier, that nothing in it changed, and that its waivers hold."
EXAMPLE = "./plumbline dossier verify DIR --signers allowed_signers"
FAILS = "a file was changed, went or came, or a waiver is over"


def add_arguments(parser: Parser) -> None:
    """Add the dossier and who may sign."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="directory of the comparison")
    parser.group(HOW).add_argument(
        "--signers",
        type=Path,
        required=True,
        metavar="FILE",
        help="who may sign: lines NAME KEY, as ssh-keygen(1) has its allowed signers",
    )


def run(_: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Verify a dossier. Returns the exit status."""
    folder = arguments.folder
    signer = find_signer(folder, arguments.signers, DOSSIER)
    faults = [*find_changes(folder)]
    if not faults:
        decision = read_decision(folder)
        faults += [
            f"waiver of {each.pattern}: was until {each.until}" for each in list_expired(decision)
        ]
        show_line(
            f"{folder}: {decision.decision} by {signer} at {decision.decided_utc}: {decision.sentence}"
        )
        for line in tell_waivers(decision):
            show_line(f"  {line}")
    for each in faults:
        show_line(f"plumbline: {each}", error=True)
    return 1 if faults else 0
