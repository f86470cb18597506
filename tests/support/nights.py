"""Short nights over all MPIs, and the programs that they built."""

from __future__ import annotations

import os

from spack_envs.programs import read_program
from tests.support.mpi import mpi_installations
from tests.support.plumbline_runner import Ended, Workshop

MEASURED = {"pass", "fast", "cleared", "provisional", "regressed"}
FEW = ("--program", "mpicost", "--routine", "pingpong,barrier", "--trials", "5")


def night(workshop: Workshop) -> Ended:
    """One short night over all MPIs, in which everything was measured and judged.

    A busy machine may look slow: its references are of one hour.
    """
    ended = workshop.measure(*FEW, command="nightly")
    assert set(ended.verdicts().values()) <= MEASURED, ended.output + ended.errors
    return ended


def programs(workshop: Workshop) -> dict[str, tuple[str, int]]:
    """Path and time of the program of each environment."""
    paths = {
        mpi.name: read_program(workshop.home, mpi.name, "mpicost").path
        for mpi in mpi_installations()
    }
    return {name: (path, os.stat(path).st_mtime_ns) for name, path in paths.items()}
