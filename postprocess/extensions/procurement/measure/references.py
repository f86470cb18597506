"""Launches of an acceptance as launches of a calibration: references of the machine follow from them."""

from __future__ import annotations

from postprocess.base.errors import UsageError
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.ledger import (
    CalibrationHeader,
    append_launches,
    collect_launches,
    locate_ledger,
)
from postprocess.extensions.procurement.check.data import locate_session
from postprocess.extensions.procurement.check.offer import OpenedOffer
from spack_envs.programs import read_program


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
                each.finish(
                    read_program(each.session, each.launch.environment, each.launch.program)
                )
                for each in own
            ]
            session = locate_session(offer.stored.folder, done.session)
            found = collect_launches(header, session, finished, done.others)
            append_launches(work.root, done.session, found)
            entered += len(found)
    if not entered:
        raise UsageError(f"{offer.stored.folder}: nothing new to enter; all of it is in the ledger")
    return entered
