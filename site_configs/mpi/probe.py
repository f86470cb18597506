"""Find compiler wrappers and identify their MPIs, by starting a program if that is possible.

In an interactive job, ``mpiexec`` claims the nodes of the job: it starts ``srun`` or waits for other hosts.

MPI_Get_library_version may be called before MPI_Init (MPI 3.0, section 8.1.1), in one process that is started
directly.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath

from postprocess.base.processes import run_captured
from site_configs.mpi.family import (
    Mpi,
    Unusable,
    build_family_environment,
    build_unknown_environment,
    environment_name,
    identify_library,
    join_lines,
    match_library,
)
from site_configs.schema.variables import work_directory

#: Beginnings of variables that a batch job, or an outer launcher, leaves to its child processes.
PREFIXES = (
    *("SLURM_", "PBS_", "LSB_", "LOADL_", "COBALT_", "OAR_", "PALS_"),
    *("PMI_", "PMIX_SERVER_", "OMPI_COMM_WORLD_"),
)
#: Further ones by name. Slurm itself sets the launcher of the Hydra family.
NAMES = (
    *("PE_HOSTFILE", "PMIX_NAMESPACE", "PMIX_RANK"),
    *("HYDRA_BOOTSTRAP", "HYDRA_LAUNCHER", "HYDRA_LAUNCHER_EXTRA_ARGS", "HYDRA_RMK"),
    *("HYDRA_HOST_FILE", "I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS"),
    *("I_MPI_HYDRA_RMK", "I_MPI_HYDRA_HOST_FILE"),
)
#: The command that unsets them in Bash, as one line of a script.
UNSET = " ".join(["unset", *(f"${{!{prefix}@}}" for prefix in PREFIXES), *NAMES])
OWN_LAUNCHERS = ("mpiexec", "mpirun", "orterun", "prterun")  #: beginnings of the names of MPIs' own launchers


def strip_allocation(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without traces of a job, for starting MPI programs on this machine."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(PREFIXES) and name not in NAMES
    }


def is_own_launcher(launcher: str | Sequence[str]) -> bool:
    """Return whether a launcher of a site file came with an MPI, not with a batch system."""
    words = [launcher] if isinstance(launcher, str) else launcher
    return PurePath(words[0]).name.startswith(OWN_LAUNCHERS)


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
    env: tuple[tuple[str, str], ...] = ()  #: set by its module

    @property
    def root(self) -> Path:
        return self.prefix or self.mpicc.parent.parent

    @property
    def title(self) -> str:
        """Its name in messages."""
        return f"{self.mpicc} of module {self.module}" if self.module else str(self.mpicc)


class ProbeError(Exception):
    """The step that failed and the end of its output, in one line."""


def run_step(command: list[str], env: Mapping[str, str], step: str, limit: float | None = None) -> str:
    """Run a command that leaves no process behind, and return its standard output.

    :param limit: seconds, if not the default.
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
        message = join_lines(done.stderr or done.stdout)[-300:]
        raise ProbeError(f"{step} failed with exit code {done.returncode}: {message}")
    return done.stdout


@contextmanager
def runnable_scratch(prefix: str) -> Iterator[Path]:
    """Make a folder below TMPDIR, or below the work directory if TMPDIR is mounted noexec.

    :raises ProbeError: if both are.
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
    """Return whether programs can be started from the file system of a folder."""
    return not os.statvfs(folder).f_flag & os.ST_NOEXEC


def run_two(mpicc: str, mpiexec: str, source: str, env: Mapping[str, str], *link: str) -> str:
    """Compile a program, and return the output of two of its processes.

    :param link: further options of the compilation
    :raises ProbeError: if it cannot be compiled, or does not end well.
    """
    with runnable_scratch("plumbline-probe-") as scratch:
        file, program = Path(scratch, "probe.c"), Path(scratch, "probe")
        file.write_text(source)
        run_step([mpicc, str(file), "-o", str(program), *link], env, "compiling")
        return run_step([mpiexec, "-n", "2", str(program)], env, "starting")


def find_world_library(launcher: str | Path, output: str, of: str | Path) -> str:
    """Return the library version string that a world of two processes printed.

    :param output: output of :data:`PROGRAM`
    :param of: compiler or library of the program, for errors
    :raises ProbeError: if it was no such world.
    """
    world, _, library = output.partition("\n")
    if world != "world of 2":
        first_line = join_lines(world)[:80] or "no output"
        raise ProbeError(f"{launcher} does not start programs of {of}: {first_line}")
    return join_lines(library)


def probe_wrapper(candidate: Candidate) -> Mpi | Unusable:
    """Probe the MPI of a compiler wrapper; return it, or why it is not usable."""
    needed = dict(candidate.env) | build_unknown_environment(candidate.root, oversubscribed=True)
    try:
        env = strip_allocation(os.environ) | needed
        output = run_two(str(candidate.mpicc), str(candidate.mpiexec), PROGRAM, env)
        library = find_world_library(candidate.mpiexec, output, candidate.mpicc)
    except ProbeError as error:
        return Unusable(candidate.title, candidate.origin, str(error))
    return describe_candidate(candidate, library, dict(candidate.env))


def describe_candidate(candidate: Candidate, library: str, env: Mapping[str, str]) -> Mpi | Unusable:
    """Build the MPI with this library version; or return why it is not usable.

    :param env: variables that it needs besides those of its family.
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


def list_wrappers(directory: Path) -> Iterator[Path]:
    """List ``mpicc`` and its alternatives (``mpicc.mpich``, ``mpicc.openmpi`` on Debian) in one directory."""
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return
    for name in names:
        path = directory / name
        if (name == "mpicc" or name.startswith("mpicc.")) and os.access(path, os.X_OK):
            yield path


def find_companion_launcher(wrapper: Path, launcher: str = "mpiexec") -> Path:
    """Find the launcher of a wrapper, in the same directory and with the suffix of an ``mpicc``.

    Wrappers with other names, such as Intel MPI's ``mpiicx``, share one launcher.

    :param launcher: its name without a suffix
    """
    name = wrapper.name
    return wrapper.with_name(name.replace("mpicc", launcher, 1) if "mpicc" in name else launcher)


def drop_wrapper_links(paths: Sequence[Path]) -> list[Path]:
    """Drop a plain ``mpicc`` that links to another wrapper of the list."""
    alternatives = {path for path in paths if path.name != "mpicc"}
    return [path for path in paths if not (path.is_symlink() and is_link_to(path, alternatives))]


def is_link_to(link: Path, targets: set[Path]) -> bool:
    """Return whether a chain of links reaches one of the targets."""
    seen = set()
    while link.is_symlink() and link not in seen:
        seen.add(link)
        target = link.parent / os.readlink(link)
        link = Path(os.path.realpath(target.parent), target.name)
        if link in targets:
            return True
    return False


def find_on_path(path: str) -> list[Candidate]:
    """Find the MPIs on a search path, each directory once, in its order."""
    wrappers: list[Path] = []
    directories: set[Path] = set()
    for name in filter(None, path.split(os.pathsep)):
        real = Path(os.path.realpath(name))
        if real not in directories:
            directories.add(real)
            wrappers += list_wrappers(real)
    return [
        Candidate(mpicc, find_companion_launcher(mpicc), "path" if mpicc.name == "mpicc" else "debian")
        for mpicc in drop_wrapper_links(wrappers)
    ]


VERSION_PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
int main(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(library, &length);
    printf("%s\n", library);
    return 0;
}
"""


def read_linked_version(candidate: Candidate) -> str:
    """Read the MPI_Get_library_version of a program compiled with this wrapper.

    :raises ProbeError: if it cannot be compiled, or does not run on this node.
    """
    env = strip_allocation(os.environ) | dict(candidate.env) | build_unknown_environment(candidate.root)
    with runnable_scratch("plumbline-identify-") as scratch:
        source, program = Path(scratch, "identify.c"), Path(scratch, "identify")
        source.write_text(VERSION_PROGRAM)
        run_step([str(candidate.mpicc), str(source), "-o", str(program)], env, "compiling")
        return join_lines(run_step([str(program)], env, "running one process"))


def identify_wrapper(candidate: Candidate) -> Mpi | Unusable:
    """Identify the MPI of a compiler wrapper; or return why it is not usable."""
    try:
        library = read_linked_version(candidate)
    except ProbeError as error:
        return Unusable(candidate.title, candidate.origin, str(error))
    return describe_candidate(candidate, library, env={})  # the site file loads the module


def extract_identity(library: str) -> str:
    """Extract the part of a library version string with family and version.

    The rest (date, compiler, options of configure) changes with every build of the same version.
    """
    identity = match_library(library)
    return identity[1][0] if identity else library
