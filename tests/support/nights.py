"""Short nights over all MPIs, and the programs that they built."""

import os
from pathlib import Path

from spack_envs.installation import read_program
from tests.support.mpi import mpi_installations
from tests.support.plumbline_runner import ROOT, Ended, Workshop

MEASURED = {"pass", "fast", "cleared", "suspect", "provisional", "regressed"}
FEW = ("--program", "mpicost", "--routine", "pingpong,barrier", "--trials", "5")


def night(workshop: Workshop, *environments: str, **variables: str) -> Ended:
    """One short night over these environments, or all, in which everything was measured and judged.

    A busy machine may look slow: its references are of one hour.
    """
    chosen = ("--environment", ",".join(environments)) if environments else ()
    ended = workshop.measure(*FEW, *chosen, command="nightly", **variables)
    assert set(ended.verdicts().values()) <= MEASURED, ended.output + ended.errors
    return ended


def programs(workshop: Workshop, *environments: str) -> dict[str, tuple[str, int]]:
    """Path and time of the program of these environments, or of all."""
    paths = {
        name: read_program(workshop.home, name, "mpicost").path
        for name in environments or [mpi.name for mpi in mpi_installations()]
    }
    return {name: (path, os.stat(path).st_mtime_ns) for name, path in paths.items()}


def written_to_sources() -> list[Path]:
    """What builds would leave in the source tree if they were let."""
    traces = ("build-*", "spack-build*", "spack.lock", ".spack-env", "CMakeCache.txt")
    folders = (ROOT / "suite", ROOT / "spack_envs")
    return [path for folder in folders for trace in traces for path in folder.rglob(trace)]
