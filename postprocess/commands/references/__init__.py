"""The command ``references``: what calibrations propose, what they cost, and what is stale."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.rounds import LAUNCHES
from postprocess.cli.option_types import count
from postprocess.cli.options import add_json
from postprocess.cli.registry import commands_below
from postprocess.commands.references import age, budget, propose
from postprocess.model.mpicost import TRIALS


def add(parser: argparse.ArgumentParser) -> None:
    """The three commands below ``references``, and what each accepts."""
    command = commands_below(parser, "references_command")
    text = "Write the reference files that follow from the calibrations, and show what they change."
    made = command("propose", text, run_propose)
    made.add_argument("--site", metavar="NAME", help="only the calibrations of this system")
    made.add_argument(
        "--output", type=Path, metavar="DIR", help="(default: a folder of the work directory)"
    )
    add_json(made)
    text = "List the references that are stale, and why; exit status 1 if there are any."
    made = command("age", text, run_age)
    made.add_argument("--site", default="local", help="name or path (default: this machine)")
    add_json(made)
    text = "How many trials a launch should have, and how many launches so many seconds buy."
    made = command("budget", text, run_budget)
    wanted = made.add_mutually_exclusive_group()
    wanted.add_argument(
        "--seconds",
        type=count,
        metavar="S",
        help=f"for the calibration of a program (default: what {LAUNCHES} launches of {TRIALS} trials take)",
    )
    wanted.add_argument(
        "--see",
        type=count,
        metavar="PERCENT",
        help="how many seconds it takes until half of the cases see a slowdown of so much",
    )
    made.add_argument("--site", metavar="NAME", help="only the calibrations of this system")
    add_json(made)


def run_propose(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Show what the calibrations would make of the references."""
    return propose.propose_all(work, arguments.site, arguments.output, arguments.json, Progress())


def run_age(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """List what is stale."""
    return age.age(work, arguments.site, arguments.json, Progress())


def run_budget(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """How to spend some seconds on a calibration."""
    see = arguments.see / 100 if arguments.see else None
    return budget.budget(work, arguments.site, arguments.seconds, see, arguments.json, Progress())
