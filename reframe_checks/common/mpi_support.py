"""Which environments have an MPI, and the benchmarks of OSU and IMB that it is too old for.

Declared, so that a benchmark that fails is a failure and never taken for one that the MPI lacks. Every line of
their tables was run under MPICH 5.0.2, Open MPI 5.0.11 and Intel MPI 2021.19, and works under all three.
"""

import os
import re
import shutil
from pathlib import Path

from reframe.core.exceptions import ReframeError
from reframe.core.runtime import runtime, temp_environment

from postprocess.model.routines.benchmark import Benchmark
from site_configs.mpi.probe import find_companion_launcher
from site_configs.schema.facts import EnvironmentFacts

#: Launchers of ReFrame's that come with an MPI, each with its program.
OWN_LAUNCHERS = {
    "mpiexec": "mpiexec",
    "mpirun": "mpirun",
    "mpirun-openmpi": "mpirun",
    "mpirun-intelmpi": "mpirun",
}
#: The first release of each family that has all of MPI 3.0, by its release notes.
MPI_3 = {"mpich": (3, 0), "openmpi": (1, 8), "intel-mpi": (5, 0), "mvapich": (2, 0), "cray-mpich": (7, 0)}
#: The first that has persistent collectives, of MPI 4.0, by the same.
MPI_4 = {"mpich": (4, 0), "openmpi": (5, 0)}
#: By standard: those releases, and what needs it, by executables of IMB and benchmarks of OSU. Persistent
#: messages are as old as MPI.
NEEDS = {
    "3.0": (MPI_3, re.compile("IMB-NBC|IMB-RMA|osu_i(?!nit)|osu_neighbor_|osu_(put|get|acc|fop|cas)_")),
    "4.0": (MPI_4, re.compile("osu_(?!latency|bw|bibw).*_persistent")),
}


def list_mpi_environments() -> list[str]:
    """List the environments with an MPI, as ReFrame chooses them: by feature ``mpi``, or by their wrapper."""
    parts = runtime().system.partitions
    others = {each.name: each for part in parts for each in part.environs}
    named = {name for name, each in others.items() if "mpi" not in each.features and has_mpi(each)}
    return ["+mpi", *sorted(named)]


def has_mpi(environ) -> bool:
    """Return whether an environment that does not name its features has an MPI's compiler wrapper here."""
    try:
        with temp_environment(environ.modules, environ.env_vars):
            return any(shutil.which(wrapper) for wrapper in EnvironmentFacts.of(environ).mpi_wrappers)
    except ReframeError:
        return False  # its modules are not of this machine


def find_usual_launcher(facts: EnvironmentFacts, name: str = "mpiexec") -> str:
    """Find a launcher of an MPI: beside a wrapper that is given by its path, else on the search path."""
    wrapper = Path(facts.mpi_wrappers[0])
    beside = find_companion_launcher(wrapper, name)
    return str(beside) if wrapper.is_absolute() and os.access(beside, os.X_OK) else name


def find_chosen_launcher(environ, launcher: str) -> str:
    """Find the launcher of an MPI that a partition names, where the search path of an environment lacks it.

    Returns its path; empty if the one of the partition is to stay.

    :param launcher: as ReFrame calls it
    """
    name = OWN_LAUNCHERS.get(launcher, "")
    if not name or is_on_path(environ, name):
        return ""
    found = find_usual_launcher(EnvironmentFacts.of(environ), name)
    return found if found != name else ""


def is_on_path(environ, name: str) -> bool:
    """Return whether a program is on the search path of an environment, or the path cannot be known here."""
    try:
        with temp_environment(environ.modules, environ.env_vars):
            return shutil.which(name) is not None
    except ReframeError:
        return True


def explain_unsupported(family: str, version: str, benchmark: Benchmark) -> str:
    """Explain why an MPI cannot run a benchmark; empty if it can, or if nothing is known against it.

    :param family: of the MPI, as environments have it.
    :param version: of the MPI, as it tells itself: ``5.0.11``.
    """
    release = tuple(map(int, re.findall(r"\d+", version)))
    for standard, (first, needing) in NEEDS.items():
        since = first.get(family, ())
        if release < since and needing.match(benchmark.executable or benchmark.name):
            return f"needs MPI {standard}, which {family} has since {'.'.join(map(str, since))}"
    return ""
