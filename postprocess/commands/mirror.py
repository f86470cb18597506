"""The command ``mirror``: what it accepts, and what does it."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.registry import commands_below
from spack_envs.mirror import create as mirror_create
from spack_envs.mirror.spack_sources import Given


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
    command = commands_below(parser, "mirror_command")
    text = "Gather everything that a machine without a network needs; what is there is kept."
    made = command("create", text, create)
    made.add_argument("folder", type=Path, metavar="DIR")
    made.add_argument(
        "--source",
        type=source,
        action="append",
        default=[],
        metavar="PACKAGE=PLACE[#REVISION]",
        help="take a source from a .tar.gz or a git repository here instead of from its upstream",
    )
    made = command("check", "Verify every file of a mirror, and say what is in it.", check)
    made.add_argument("folder", type=Path, metavar="DIR")


def create(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Gather everything that a machine without a network needs."""
    with work.held():
        return mirror_create.create(work, arguments.folder, arguments.source, Progress())


def check(_: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Verify a mirror."""
    return mirror_create.check(arguments.folder, Progress())
