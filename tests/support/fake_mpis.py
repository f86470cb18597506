"""Made-up MPIs: compiler wrappers and launchers that are shell scripts, and directories of them."""

import time
from pathlib import Path

from postprocess.base.processes import find_processes

MPICH = "MPICH Version:\\t5.0.2\\nMPICH Release date:\\ttoday"
OPENMPI = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4"

#: A wrapper that "compiles": it leaves a file where it is told to.
COMPILES = 'while [ "$1" != -o ]; do shift; done; touch "$2"'


def script(path: Path, body: str) -> Path:
    """A program that does this. It needs no search path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{body}\n")
    path.chmod(0o755)
    return path


def says(library: str, world: str = "world of 2") -> str:
    """The body of a launcher that starts a program of which this is the output."""
    return f"printf '{world}\\n{library}\\n'"


def install(
    prefix: Path, library: str = MPICH, suffix: str = "", compiles: str = COMPILES, starts: str | None = None
) -> Path:
    """An installation with a wrapper and a launcher; the wrapper."""
    script(prefix / "bin" / f"mpiexec{suffix}", says(library) if starts is None else starts)
    return script(prefix / "bin" / f"mpicc{suffix}", compiles)


def debian(root: Path, chosen: str = "openmpi") -> Path:
    """``/usr/bin`` of a Debian with two MPIs, the plain name being a link to one of them; the directory.

    ``mpicc`` leads to ``/etc/alternatives/mpicc``, from there to ``mpicc.openmpi`` or ``mpicc.mpich``,
    and Open MPI's goes on to ``opal_wrapper``.
    """
    bin_, alternatives = root / "usr" / "bin", root / "etc" / "alternatives"
    alternatives.mkdir(parents=True)
    install(root / "usr", MPICH, ".mpich")
    install(root / "usr", OPENMPI, ".openmpi")
    (bin_ / "mpicc.openmpi").rename(bin_ / "opal_wrapper")
    (bin_ / "mpicc.openmpi").symlink_to("opal_wrapper")
    for name in ("mpicc", "mpiexec"):
        (bin_ / name).symlink_to(alternatives / name)
        (alternatives / name).symlink_to(bin_ / f"{name}.{chosen}")
    return bin_


def all_end(variable: str, value: str, patience: float = 60.0) -> bool:
    """Whether every process with this variable ends; those that were killed need a moment."""
    deadline = time.monotonic() + patience
    while find_processes(variable, value) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not find_processes(variable, value)
