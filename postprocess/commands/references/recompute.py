"""The command ``references recompute``: make provisional references anew of stored trials, without a launch."""

from __future__ import annotations

import argparse
import math
import statistics

from postprocess.base.formats import plural
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration import ledger
from postprocess.calibration.update import recompute_ledger, say_line, update_references
from postprocess.cli.parser import Parser

HELP = "Compute provisional references anew from the trials in the store; launch nothing."
EXAMPLE = "./plumbline references recompute"
FAILS = ""


def add_arguments(parser: Parser) -> None:
    """Add no option."""


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Compute references anew, and say what moved. Returns 0."""
    del arguments
    progress = Progress()
    with work.held():
        found = recompute_ledger(work.root, work.store)
        launches = ledger.read_ledger(work.root)
        plain = [launch for launch in launches if not launch.by_hand]
        paths = update_references(work.provisional, plain, say=say_line(progress.say))
    for path in paths:
        progress.say(f"references: {path}")
    if found.without_trials:
        lost = plural(found.without_trials, "launch", "es")
        progress.say(f"{lost} of {found.launches} have no trials in the store, and stay as they were")
    if not found.moved:
        progress.say(f"nothing moved: {plural(found.launches, 'launch', 'es')} of mpicost looked at")
        return 0
    shifts = [math.exp(statistics.median(some)) - 1 for some in found.moved.values()]
    middle, least, most = statistics.median(shifts), min(shifts), max(shifts)
    progress.say(
        f"{plural(len(found.moved), 'case')} moved: by {middle:+.1%} in the median, "
        f"{least:+.1%} to {most:+.1%}; "
        "./plumbline references propose shows what reviewed references would become"
    )
    return 0
