"""The command ``mirror check``."""

from __future__ import annotations

import argparse
from pathlib import Path

from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.cli.parser import Parser
from spack_envs.mirror.create import verify_mirror

HELP = "Verify every file of a mirror, and list what is in it."
EXAMPLE = "./plumbline mirror check /shared/mirror"
FAILS = "a file is missing or damaged"


def add_arguments(parser: Parser) -> None:
    """Add the directory."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="directory of the mirror")


def run(_: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Verify a mirror. Returns the exit status."""
    return verify_mirror(arguments.folder, Progress())
