"""The command ``doctor``: what ``setup`` finds, without building."""

from __future__ import annotations

import argparse

from postprocess.base.workdir import WorkDirectory
from postprocess.commands import setup

HELP = "Report which MPIs, compilers and Spack were found and what is unusable; build nothing."
EXAMPLE = "./plumbline doctor --mpis mpich,openmpi"
FAILS = ""

add_arguments = setup.add_arguments


def run(work: WorkDirectory, arguments: argparse.Namespace) -> int:
    """Show what was found on this machine, and why something is not usable. Returns 0."""
    return setup.set_up(work, arguments, lambda *_: 0)
