"""What the command ``mirror`` accepts."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess import commands
from spack_envs.mirror import Given


def source(text: str) -> Given:
    """PACKAGE=PLACE, or PACKAGE=PLACE#REVISION of a git repository."""
    package, _, place = text.partition("=")
    where, _, revision = place.partition("#")
    if not package or not where:
        raise argparse.ArgumentTypeError(f"{text!r} is not PACKAGE=PLACE")
    path = Path(where).absolute()
    if not path.exists():
        raise argparse.ArgumentTypeError(f"{package}: {path} is not there")
    return Given(package, path, revision or "HEAD")


def add(parser: argparse.ArgumentParser) -> None:
    """The two commands below ``mirror``, and what each accepts."""
    found = parser.add_subparsers(
        dest="mirror_command", required=True, metavar="COMMAND", parser_class=type(parser)
    )
    text = "Gather everything that a machine without a network needs; what is there is kept."
    made = found.add_parser("create", help=text, description=text, epilog=parser.epilog)
    made.set_defaults(run=commands.mirror_create)
    made.add_argument("folder", type=Path, metavar="DIR")
    made.add_argument(
        "--source",
        type=source,
        action="append",
        default=[],
        metavar="PACKAGE=PLACE[#REVISION]",
        help="take a source from a .tar.gz or a git repository here instead of from its upstream",
    )
    text = "Verify every file of a mirror, and say what is in it."
    made = found.add_parser("check", help=text, description=text, epilog=parser.epilog)
    made.set_defaults(run=commands.mirror_check)
    made.add_argument("folder", type=Path, metavar="DIR")
