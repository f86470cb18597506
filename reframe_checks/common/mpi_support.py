"""Environments that have an MPI, and the benchmarks of OSU and IMB that an MPI is too old for.

They are declared, so that a benchmark that fails is a failure and never mistaken for one that the MPI lacks.
Every line of their tables was run under MPICH 5.0.2, Open MPI 5.0.11 and Intel MPI 2021.19, and works with all
three.
"""

import os
import re
import shutil
from pathlib import Path

from reframe.core.exceptions import ReframeError
from reframe.core.runtime import runtime, temp_environment

from postprocess.model.routines.benchmark import Benchmark
from site_configs.families import find_family
from site_configs.mpi.probe import find_companion_launcher
from site_configs.schema.facts import EnvironmentFacts

#: ReFrame's launchers that come with an MPI, with their programs.
OWN_LAUNCHERS = {
    "mpiexec": "mpiexec",
    "mpirun": "mpirun",
    "mpirun-openmpi": "mpirun",
    "mpirun-intelmpi": "mpirun",
}
#: By standard: the executables of IMB and benchmarks of OSU that need it. Persistent messages are as old as
#: MPI.
NEEDS = {
    "3.0": re.compile("IMB-NBC|IMB-RMA|osu_i(?!nit)|osu_neighbor_|osu_(put|get|acc|fop|cas)_"),
    "4.0": re.compile("osu_(?!latency|bw|bibw).*_persistent"),
}


def list_mpi_environments() -> list[str]:
    """List the environments with an MPI in ReFrame's syntax: by feature ``mpi``, or by their wrapper."""
    parts = runtime().system.partitions
    others = {environ.name: environ for part in parts for environ in part.environs}
    named = {name for name, environ in others.items() if "mpi" not in environ.features and has_mpi(environ)}
    return ["+mpi", *sorted(named)]


def has_mpi(environ) -> bool:
    """Return whether an environment that does not declare its features has an MPI's compiler wrapper here."""
    try:
        with temp_environment(environ.modules, environ.env_vars):
            return any(shutil.which(wrapper) for wrapper in EnvironmentFacts.of(environ).mpi_wrappers)
    except ReframeError:
        return False  # its modules are not on this machine


def find_usual_launcher(facts: EnvironmentFacts, name: str = "mpiexec") -> str:
    """Find a launcher of an MPI: beside a wrapper that is given by path, else on the search path."""
    wrapper = Path(facts.mpi_wrappers[0])
    beside = find_companion_launcher(wrapper, name)
    return str(beside) if wrapper.is_absolute() and os.access(beside, os.X_OK) else name


def find_chosen_launcher(environ, launcher: str) -> str:
    """Find the launcher named by a partition if an environment's search path lacks it.

    Return its path; empty if the partition's launcher can stay.

    :param launcher: ReFrame's name of it
    """
    name = OWN_LAUNCHERS.get(launcher, "")
    if not name or is_on_path(environ, name):
        return ""
    path = find_usual_launcher(EnvironmentFacts.of(environ), name)
    return path if path != name else ""


def is_on_path(environ, name: str) -> bool:
    """Return whether a program is on an environment's search path, or the path is unknown here."""
    try:
        with temp_environment(environ.modules, environ.env_vars):
            return shutil.which(name) is not None
    except ReframeError:
        return True


def explain_unsupported(family: str, version: str, benchmark: Benchmark) -> str:
    """Explain why an MPI cannot run a benchmark; empty if it can, or if nothing is known against it.

    :param family: family of the MPI, as in environments.
    :param version: as reported by the MPI: ``5.0.11``.
    """
    release = tuple(map(int, re.findall(r"\d+", version)))
    for standard, needing in NEEDS.items():
        since = find_family(family).standards.get(standard, ())
        if release < since and needing.match(benchmark.executable or benchmark.name):
            return f"needs MPI {standard}, which {family} has since {'.'.join(map(str, since))}"
    return ""
