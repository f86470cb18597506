"""The command ``site new``: write a site file of the machine at hand."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.option_types import parse_comma_list
from postprocess.cli.parser import OUTPUT, WHERE, Parser
from site_configs.generate import write
from site_configs.generate.survey import NONE
from spack_envs.mirror.use import choose_mirror

HELP = "Look at this machine and write a site file, for you to read and correct."
EXAMPLE = "./plumbline site new mycluster"
FAILS = ""


def add_arguments(parser: Parser) -> None:
    """Add the name of the site, and what is looked at."""
    parser.add_argument(
        "site", nargs="?", metavar="NAME", help="name of the site (default: that of the cluster or the host)"
    )
    where = parser.group(WHERE)
    where.add_argument(
        "--scheduler", choices=(NONE,), help="describe this machine alone, whatever scheduler it has"
    )
    where.add_argument(
        "--mpis",
        type=parse_comma_list,
        metavar="FAMILY,...",
        help="MPI families to install from wheels where there is none",
    )
    parser.group(OUTPUT).add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="write to FILE, which must not exist (default: site_configs/NAME.py)",
    )


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Write a site file of the machine at hand. Returns the exit status."""
    chosen = (arguments.site, arguments.output, arguments.scheduler, arguments.mpis)
    progress = Progress()
    return write.write_new_site(work, *chosen, lambda: find_mirrored_wheels(work, progress), progress)


def find_mirrored_wheels(work: WorkDirectory, progress: Progress) -> Path | None:
    """Return the folder of wheels of the mirror in use; None without a mirror."""
    mirror = choose_mirror(work.root, None, progress)
    return mirror.wheels if mirror else None
