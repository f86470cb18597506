"""Rules on a site: the partition that they are about, what would be launched, and about how long that takes."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.formats import plural
from postprocess.base.sanitize import show_line
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.ledger import CalibrationHeader, append_launches, collect_launches, locate_ledger
from postprocess.cli.parser import Parser
from postprocess.extensions.procurement.check.builds import OfficialSource
from postprocess.extensions.procurement.check.offer import OpenedOffer, locate_session, open_offer
from postprocess.extensions.procurement.check.run_rules import check_offer
from postprocess.extensions.procurement.check.violations import format_violations, is_rejected
from postprocess.extensions.procurement.measure.accept import (
    MEASURED,
    TOLD_BY_ROWS,
    check_acceptance,
    is_acceptance,
)
from spack_envs.installation import read_program


def enter_launches(work: WorkDirectory, offer: OpenedOffer) -> int:
    """Enter the launches of an offer in the ledger, each session once. Returns how many.

    :raises UsageError: if all of them are there already
    """
    entered = 0
    with work.held():
        for done in offer.stored.passes:
            if (locate_ledger(work.root) / f"{done.session}.json").exists():
                continue
            header = CalibrationHeader(done.session, done.set_env)
            own = [each for each in offer.evidence if each.done.number == done.number]
            finished = [
                each.finish(read_program(each.session, each.launch.environment, each.launch.program))
                for each in own
            ]
            session = locate_session(offer.stored.folder, done.session)
            found = collect_launches(header, session, finished, done.others)
            append_launches(work.root, done.session, found)
            entered += len(found)
    if not entered:
        raise UsageError(f"{offer.stored.folder}: nothing new to enter; all of it is in the ledger")
    return entered


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
