"""mpicost in simulated time: built for SimGrid's SMPI, on a torus of 1,024 hosts."""

import os
import shutil
from functools import cache
from pathlib import Path

import pytest

from suite.benchmark.simulator import Simulator, torus
from tests.support.mpi import Installation
from tests.support.mpicost import Program, cmake
from tests.support.paths import SUITE
from tests.support.shared_files import make_once

NO_SIMGRID = "no SimGrid (Debian: apt-get install libsimgrid-dev)"


@cache
def simulated() -> Program:
    """The program and how it is started. Skips the test where there is no SimGrid."""
    smpicc, smpirun = shutil.which("smpicc"), shutil.which("smpirun")
    if smpicc is None or smpirun is None:
        pytest.skip(NO_SIMGRID)
    directory = make_once("simgrid", lambda path: build_for_simgrid(path, smpicc))
    platform = directory / f"platform-{os.getpid()}"
    platform.mkdir(exist_ok=True)
    launcher = list(torus(smpirun, platform).launcher)
    mpi = Installation("simgrid", "simgrid", Path(smpicc).parent.parent, smpicc, launcher, {})
    return Program(mpi, directory)


def build_for_simgrid(directory: Path, smpicc: str, source: Path = SUITE) -> None:
    """Build the suite, or a changed copy of it, for SimGrid's SMPI."""
    pretending = {**os.environ, "SMPI_PRETEND_CC": "1"}  # else CMake's trial programs do not run
    cmake(directory, [f"-DCMAKE_C_COMPILER={smpicc}"], pretending, os.environ, source)


def simulator() -> Simulator:
    """The machine on which ``simulated`` runs."""
    return Simulator(simulated().mpi.mpiexec)
