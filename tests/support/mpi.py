"""The MPIs that tests run on: those of the work directory, which ``./plumbline test`` has set up."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from site_configs.common import work_directory
from site_configs.families import find_family
from site_configs.mpi import inventory
from site_configs.mpi.family import Mpi, spare_network
from tests.support.paths import DATA

FAULTS = DATA / "faults"


@dataclass(frozen=True)
class Installation:
    """One MPI as a test uses it. ``env`` allows more processes than cores."""

    name: str
    family: str
    prefix: Path
    mpicc: str
    mpiexec: list[str]
    env: dict[str, str]


def mpi_installations() -> list[Installation]:
    """Every MPI of the work directory.

    :raises LookupError: if the work directory is not set up; no test runs on fewer MPIs by accident.
    """
    return [installation(mpi) for mpi in inventory.load_inventory(work_directory()).mpis]


def installation(mpi: Mpi) -> Installation:
    """An MPI of the inventory as a test uses it."""
    env = mpi.env | find_family(mpi.family).oversubscribed | spare_network(mpi.family, {})
    return Installation(mpi.name, mpi.family, Path(mpi.prefix), mpi.mpicc, mpi.launcher, env)


def of_family(family: str) -> Installation:
    """The first MPI of a family. MPICH and Open MPI are always there."""
    return next(each for each in mpi_installations() if each.family == family)


def find_mpi(family: str) -> Mpi:
    """The same MPI as the inventory has it."""
    return next(mpi for mpi in inventory.load_inventory(work_directory()).mpis if mpi.family == family)


def fault_library(mpi: Installation, directory: Path, name: str = "faulty_mpi", soname: str = "") -> Path:
    """Compile one of ``tests/faults`` for an MPI. It is not linked to MPI, so a shell can load it too.

    :param soname: by which a program that opens a library of this name gets this one, if it is loaded
    """
    object_file, library = directory / f"{name}.o", directory / f"{name}-{mpi.name}.so"
    source = str(FAULTS / f"{name}.c")
    compile_only = [mpi.mpicc, "-std=c11", "-O1", "-fPIC", "-c", source, "-o", str(object_file)]
    subprocess.run(compile_only, check=True, env=environment_with(mpi))
    named = [f"-Wl,-soname,{soname}"] if soname else []
    words = ["cc", "-shared", "-Wl,-z,lazy", *named, str(object_file), "-o", str(library)]
    subprocess.run(words, check=True)
    return library


def environment_with(mpi: Installation) -> dict[str, str]:
    """This process's environment and what the MPI needs."""

    return {**os.environ, **mpi.env}
