"""Ask a compiler wrapper what it is: compile a program with it, start it, read what it says."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from postprocess.base.processes import run_captured
from site_configs.mpi.allocation import strip_allocation
from site_configs.mpi.family import (
    Mpi,
    Unusable,
    build_family_environment,
    environment_name,
    identify_library,
    join_lines,
)
from site_configs.schema.variables import work_directory

TIME_LIMIT = 60  #: seconds for a compilation or a start; a healthy one takes about one
PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(library, &length);
    if (rank == 0) printf("world of %d\n%s\n", size, library);
    return MPI_Finalize();
}
"""


@dataclass(frozen=True)
class Candidate:
    """A compiler wrapper with the launcher that belongs to it."""

    mpicc: Path
    mpiexec: Path
    origin: str
    module: str = ""
    prefix: Path | None = None
    env: tuple[tuple[str, str], ...] = ()  #: what its module sets

    @property
    def root(self) -> Path:
        """Installation prefix."""
        return self.prefix or self.mpicc.parent.parent

    @property
    def title(self) -> str:
        """What people are told of it."""
        return f"{self.mpicc} of module {self.module}" if self.module else str(self.mpicc)


class ProbeError(Exception):
    """One line: which step failed and the end of what it printed."""


def run_step(command: list[str], env: Mapping[str, str], step: str, limit: float | None = None) -> str:
    """Run a command that leaves no process behind, and return its standard output.

    :param limit: seconds, if not the usual limit.
    :raises ProbeError: if it cannot be started, fails or does not end in time.
    """
    seconds = TIME_LIMIT if limit is None else limit
    try:
        done = run_captured(command, env, seconds)
    except OSError as error:
        raise ProbeError(f"{step}: {error.strerror}: {command[0]}") from None
    except subprocess.TimeoutExpired:
        raise ProbeError(f"{step} did not end within {seconds} s") from None
    if done.returncode != 0:
        said = join_lines(done.stderr or done.stdout)[-300:]
        raise ProbeError(f"{step} failed with exit code {done.returncode}: {said}")
    return done.stdout


@contextmanager
def runnable_scratch(prefix: str) -> Iterator[Path]:
    """Make a folder below TMPDIR, or below the work directory where TMPDIR lets no program be started.

    :raises ProbeError: if both do not.
    """
    usual = Path(tempfile.gettempdir())
    places = [usual, work_directory()]
    parent = next((place for place in places if place.is_dir() and is_runnable(place)), None)
    if parent is None:
        raise ProbeError(
            f"{usual}: no program can be started there (it is mounted noexec); "
            "set TMPDIR to a folder of another file system"
        )
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as scratch:
        yield Path(scratch)


def is_runnable(folder: Path) -> bool:
    """Return whether the file system of a folder lets programs be started."""
    return not os.statvfs(folder).f_flag & os.ST_NOEXEC


def run_for_library(candidate: Candidate, env: Mapping[str, str]) -> str:
    """Run two processes with the candidate's launcher, and return their MPI_Get_library_version.

    :raises ProbeError: if no such world comes up.
    """
    output = run_two(str(candidate.mpicc), str(candidate.mpiexec), PROGRAM, env)
    return find_world_library(candidate.mpiexec, output, candidate.mpicc)


def run_two(mpicc: str, mpiexec: str, source: str, env: Mapping[str, str]) -> str:
    """Compile a program, and return what two processes of it print.

    :param source: the program, in C
    :raises ProbeError: if it cannot be compiled, or does not end well.
    """
    with runnable_scratch("plumbline-probe-") as scratch:
        file, program = Path(scratch, "probe.c"), Path(scratch, "probe")
        file.write_text(source)
        run_step([mpicc, str(file), "-o", str(program)], env, "compiling")
        return run_step([mpiexec, "-n", "2", str(program)], env, "starting")


def find_world_library(launcher: str | Path, output: str, of: str | Path) -> str:
    """Find what a world of two processes said of its library.

    :param launcher: that started them
    :param output: what :data:`PROGRAM` printed
    :param of: what their program was made with
    :raises ProbeError: if it was no such world.
    """
    world, _, library = output.partition("\n")
    if world != "world of 2":
        said = join_lines(world)[:80] or "no output"
        raise ProbeError(f"{launcher} does not start programs of {of}: {said}")
    return join_lines(library)


def probe_wrapper(candidate: Candidate) -> Mpi | Unusable:
    """Probe the MPI of a compiler wrapper; return it, or why it is not usable."""
    needed = dict(candidate.env)
    for family in ("intel-mpi", "openmpi"):
        needed |= build_family_environment(family, candidate.root, oversubscribed=True)
    try:
        library = run_for_library(candidate, strip_allocation(os.environ) | needed)
    except ProbeError as error:
        return Unusable(candidate.title, candidate.origin, str(error))
    return describe_candidate(candidate, library, dict(candidate.env))


def describe_candidate(candidate: Candidate, library: str, env: Mapping[str, str]) -> Mpi | Unusable:
    """Build the MPI with this library version; or return why it is not usable.

    :param env: variables that it needs beside those of its family.
    """
    family, version = identify_library(library)
    if family == "unknown":
        problem = f"unknown MPI library: {library[:80]}"
        return Unusable(candidate.title, candidate.origin, problem)
    return Mpi(
        name=environment_name(family, version),
        family=family,
        version=version,
        library=library,
        origin=candidate.origin,
        prefix=str(candidate.root),
        mpicc=str(candidate.mpicc),
        mpiexec=str(candidate.mpiexec),
        module=candidate.module,
        env=dict(env) | build_family_environment(family, candidate.root),
    )
