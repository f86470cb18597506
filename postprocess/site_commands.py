"""What the command ``site`` accepts: a new site from nothing to its first verdict."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess import commands
from postprocess.option_types import comma_list
from postprocess.site_facts import NONE


def add(parser: argparse.ArgumentParser) -> None:
    """The three commands below ``site``, and what each accepts."""
    found = parser.add_subparsers(
        dest="site_command", required=True, metavar="COMMAND", parser_class=type(parser)
    )

    def command(name: str, run: commands.Command, text: str) -> argparse.ArgumentParser:
        added = found.add_parser(name, help=text, description=text, epilog=parser.epilog)
        added.set_defaults(run=run)
        return added

    made = command(
        "new",
        commands.site_new,
        "Look at this machine and write a site file, for you to read and correct.",
    )
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
        "check",
        commands.site_check,
        "Say all that is wrong with a site file, and what a night costs.",
    )
    made.add_argument("site", metavar="NAME", help="name or path of a site file")
    made = command(
        "try",
        commands.site_try,
        "Launch two processes on every partition with every MPI, and say what works.",
    )
    made.add_argument("site", metavar="NAME", help="name or path of a site file")
    made.add_argument("--environment", type=comma_list, default=[], help="only these")
