"""The command ``offer references``."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.base.formats import plural
from postprocess.base.sanitize import show_line
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.parser import Parser
from postprocess.extensions.procurement.check.offer import check_offer, open_offer
from postprocess.extensions.procurement.check.official import OfficialSource
from postprocess.extensions.procurement.check.violations import format_violations, is_rejected
from postprocess.extensions.procurement.measure.acceptance_check import (
    MEASURED,
    TOLD_BY_ROWS,
    check_acceptance,
    is_acceptance,
)
from postprocess.extensions.procurement.measure.plan import enter_launches

HELP = "Enter the launches of an accepted machine in the ledger, for ./plumbline references propose."
EXAMPLE = "./plumbline offer references accept"
FAILS = "the launches broke a run rule, or are none of the delivered machine"


def add_arguments(parser: Parser) -> None:
    """Add the folder."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the acceptance, or of an offer")


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Enter launches in the ledger. Returns the exit status."""
    folder, official = arguments.folder, OfficialSource(work.source)
    if is_acceptance(folder):
        accepted = check_acceptance(folder, official, sealed=False)
        found = [*accepted.violations, *accepted.broken]
        offer = open_offer(folder / MEASURED)
    else:
        offer = open_offer(folder)
        found = [violation for violation in check_offer(offer, official) if violation.code not in TOLD_BY_ROWS]
    if is_rejected(found):
        for line in format_violations(violation for violation in found if violation.code.grave):
            show_line(f"plumbline: {folder}: {line}", error=True)
        return 1
    entered = enter_launches(work, offer)
    print(f"{plural(entered, 'launch', 'es')} entered; ./plumbline references propose")
    return 0
