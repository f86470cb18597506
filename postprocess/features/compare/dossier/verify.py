"""The command ``dossier verify``."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.base.sanitize import show_line
from postprocess.base.signature import DOSSIER, find_changes, find_signer, list_sealed_files
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.parser import HOW, Parser
from postprocess.features.compare import data
from postprocess.features.compare.decision import FILE as DECISION
from postprocess.features.compare.decision import find_decision_fault, list_expired, read_decision, tell_waivers
from postprocess.features.compare.judge import judge_comparison
from postprocess.features.compare.page import HTML, JSON, MARKDOWN, find_changed_pages

HELP = "Verify who signed a dossier, that nothing in it changed, and that its waivers hold."
EXAMPLE = "./plumbline dossier verify DIR --signers allowed_signers"
FAILS = "a file or page was changed, went or came, a decision would not be signed, or a waiver is over"
#: Files of a dossier that are computed anew, or that others are computed from.
COMPUTED = (data.FILE, DECISION, HTML, MARKDOWN, JSON)


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
        judged = judge_comparison(data.read_comparison(folder / data.FILE))
        if fault := find_decision_fault(judged, decision):
            faults.append(f"{DECISION}: {fault}")
        faults += find_changed_pages(folder, judged, decision)
        faults += [f"waiver of {waiver.pattern}: was until {waiver.until}" for waiver in list_expired(decision)]
        show_line(f"{folder}: {decision.decision} by {signer} at {decision.decided_utc}: {decision.sentence}")
        for line in [*tell_waivers(decision), *list_unchecked(folder)]:
            show_line(f"  {line}")
    for each in faults:
        show_line(f"plumbline: {each}", error=True)
    return 1 if faults else 0


def list_unchecked(folder: Path) -> list[str]:
    """List the files that nothing computes: they are as they were signed, and that is all."""
    names = [each for each in list_sealed_files(folder) if each not in COMPUTED]
    return [f"{name}: as it was signed; nothing here computes it" for name in names]
