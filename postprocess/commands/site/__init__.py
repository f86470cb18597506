"""The command ``site``: a new site from nothing to its first verdict."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.option_types import comma_list
from postprocess.cli.registry import commands_below
from postprocess.commands.site import check, try_site
from site_configs.generate import write
from site_configs.generate.survey import NONE
from spack_envs.mirror.use import choose


def add(parser: argparse.ArgumentParser) -> None:
    """The three commands below ``site``, and what each accepts."""
    command = commands_below(parser, "site_command")
    text = "Look at this machine and write a site file, for you to read and correct."
    made = command("new", text, run_new)
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
        "check", "Say all that is wrong with a site file, and what a night costs.", run_check
    )
    made.add_argument("site", metavar="NAME", help="name or path of a site file")
    text = "Launch two processes on every partition with every MPI, and say what works."
    made = command("try", text, run_try)
    made.add_argument("site", metavar="NAME", help="name or path of a site file")
    made.add_argument("--environment", type=comma_list, default=[], help="only these environments")


def run_new(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Write a site file of the machine at hand."""
    chosen = (arguments.site, arguments.output, arguments.scheduler, arguments.mpis)
    progress = Progress()
    return write.new(work, *chosen, lambda: mirrored_wheels(work, progress), progress)


def mirrored_wheels(work: WorkDirectory, progress: Progress) -> Path | None:
    """Return the folder of wheels of the mirror in use; None without a mirror."""
    mirror = choose(work.root, None, progress)
    return mirror.wheels if mirror else None


def run_check(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Say what is wrong with a site file, and what a night on it costs."""
    with work.held():
        return check.check(work, arguments.site, Progress())


def run_try(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Launch two processes on every partition with every MPI."""
    return try_site.attempt(work, arguments.site, arguments.environment, Progress())
