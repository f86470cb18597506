"""Short nights over all MPIs, and the programs that they built."""

from __future__ import annotations

import json
import os

from spack_envs.programs import read_program
from tests.support.mpi import mpi_installations
from tests.support.plumbline_runner import Ended, Workshop

FEW = ("--program", "mpicost", "--routine", "pingpong,barrier", "--trials", "5")


def night(workshop: Workshop) -> Ended:
    """One short night over all MPIs."""
    file = workshop.home / "summary.json"
    ended = workshop.run("nightly", *FEW, "--json", str(file))
    assert ended.status == 0, ended.output + ended.errors
    return Ended(ended.status, ended.output, ended.errors, json.loads(file.read_text()))


def programs(workshop: Workshop) -> dict[str, tuple[str, int]]:
    """Path and time of the program of each environment."""
    paths = {
        mpi.name: read_program(workshop.home, mpi.name, "mpicost").path
        for mpi in mpi_installations()
    }
    return {name: (path, os.stat(path).st_mtime_ns) for name, path in paths.items()}
