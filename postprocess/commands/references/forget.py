"""The command ``references forget``: take back what provisional references have learned from a session."""

from __future__ import annotations

import argparse

from postprocess.base.errors import UsageError
from postprocess.base.formats import plural
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration import ledger
from postprocess.calibration.update import say_line, update_references
from postprocess.cli.parser import Parser
from postprocess.model.case import Case

HELP = "Take back what provisional references have learned from a session."
EXAMPLE = "./plumbline references forget 20261125T020000Z-4711"
FAILS = ""
FORGOTTEN = ".forgotten"  #: suffix of a file of the ledger that counts no more


def add_arguments(parser: Parser) -> None:
    """Add the session."""
    parser.add_argument("session", metavar="SESSION", help="as the note of its night names it")


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Take a lesson back. Returns 0.

    :raises UsageError: if the session taught nothing
    """
    progress, session = Progress(), arguments.session
    with work.held():
        folder = ledger.locate_ledger(work.root)
        known = {path.stem: path for path in folder.glob("*.json")}
        if session not in known:
            last = ", ".join(sorted(known)[-3:]) or "none"
            raise UsageError(f"{session}: has taught no reference; the last sessions that did: {last}")
        gone, _ = ledger.read_ledger_file(known[session])
        known[session].rename(known[session].with_suffix(FORGOTTEN))
        cases = {Case.from_key(key) for each in gone for key in each.values}
        left = ledger.read_ledger(work.root)
        update_references(work.provisional, left, cases, say=say_line(progress.say))
    count = plural(len(gone), "launch", "es")
    progress.say(f"{count} of {plural(len(cases), 'case')} forgotten; kept as {session}{FORGOTTEN}")
    return 0
