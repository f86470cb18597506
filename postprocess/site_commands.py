"""The command ``site``: a new site from nothing to its first verdict."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess import site_check, site_new, site_try
from postprocess.command_table import commands_below
from postprocess.option_types import comma_list
from postprocess.progress import Progress
from postprocess.site_facts import NONE
from postprocess.workdir import WorkDirectory


def add(parser: argparse.ArgumentParser) -> None:
    """The three commands below ``site``, and what each accepts."""
    command = commands_below(parser, "site_command")
    text = "Look at this machine and write a site file, for you to read and correct."
    made = command("new", text, new)
    made.add_argument(
        "site", nargs="?", metavar="NAME", help="(default: the cluster's or the host's)"
    )
    made.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="(default: site_configs/NAME.py); never overwritten",
    )
    made.add_argument(
        "--scheduler",
        choices=(NONE,),
        help="describe this machine alone, whatever scheduler it has",
    )
    made.add_argument(
        "--mpis", type=comma_list, help="families to install from wheels where there is none"
    )
    made = command(
        "check", "Say all that is wrong with a site file, and what a night costs.", check
    )
    made.add_argument("site", metavar="NAME", help="name or path of a site file")
    text = "Launch two processes on every partition with every MPI, and say what works."
    made = command("try", text, attempt)
    made.add_argument("site", metavar="NAME", help="name or path of a site file")
    made.add_argument("--environment", type=comma_list, default=[], help="only these environments")


def new(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Write a site file of the machine at hand."""
    chosen = (arguments.site, arguments.output, arguments.scheduler, arguments.mpis)
    return site_new.new(work, *chosen, Progress())


def check(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Say what is wrong with a site file, and what a night on it costs."""
    with work.held():
        return site_check.check(work, arguments.site, Progress())


def attempt(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Launch two processes on every partition with every MPI."""
    return site_try.attempt(work, arguments.site, arguments.environment, Progress())
