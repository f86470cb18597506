"""Environments that have an MPI, and the benchmarks of OSU and IMB that an MPI is too old for.

They are declared, so that a benchmark that fails is a failure and never mistaken for one that the MPI lacks.
Only whether it was built with MPI-IO is asked of its compiler wrapper. Every line of their tables was run under
MPICH 5.0.2, Open MPI 5.0.11 and Intel MPI 2021.19, and works with all three.
"""

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from reframe.core.exceptions import ReframeError
from reframe.core.runtime import runtime, temp_environment

from postprocess.base.processes import run_captured
from postprocess.model.routines.benchmark import Benchmark
from site_configs.families import find_family
from site_configs.mpi.probe import (
    TIME_LIMIT,
    ProbeError,
    find_companion_launcher,
    runnable_scratch,
    strip_allocation,
)
from site_configs.schema.facts import EnvironmentFacts
from spack_envs.spack_repo.plumbline.file_access import FILE_ACCESS

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


#: Any MPI compiles it, unlike :data:`FILE_ACCESS`.
PLAIN = "#include <mpi.h>\nint main(void) { return MPI_Finalize(); }\n"
NO_FILE_ACCESS = "this MPI was built without MPI-IO"


def explain_no_file_access(environ) -> str:
    """Explain why the MPI of an environment cannot access files; empty if it can, or is not known here.

    A wrapper inside a container is not known: at its path outside there may be another.
    """
    facts = EnvironmentFacts.of(environ)
    wrappers = () if facts.container else facts.mpi_wrappers
    return try_file_access(wrappers, tuple(environ.modules), tuple(environ.env_vars.items()))


@functools.cache
def try_file_access(
    wrappers: Sequence[str], modules: Sequence[str], variables: Sequence[tuple[str, str]]
) -> str:
    """Compile with the first of the wrappers that is here; see :func:`explain_no_file_access`."""
    try:
        with temp_environment([*modules], dict(variables)), runnable_scratch("plumbline-files-") as scratch:
            wrapper = next(filter(None, map(shutil.which, wrappers)), None)
            if wrapper and compiles(wrapper, PLAIN, scratch) and not compiles(wrapper, FILE_ACCESS, scratch):
                return NO_FILE_ACCESS
    except (ReframeError, ProbeError, OSError, subprocess.TimeoutExpired):
        pass  # its modules are not on this machine, or nothing can be compiled
    return ""


def compiles(wrapper: str, source: str, scratch: Path) -> bool:
    """Return whether a wrapper compiles and links a program."""
    file = scratch / "program.c"
    file.write_text(source)
    command = [wrapper, str(file), "-o", str(scratch / "program")]
    return run_captured(command, strip_allocation(os.environ), TIME_LIMIT).returncode == 0
