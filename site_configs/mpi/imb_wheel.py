"""IMB that needs no build: Intel MPI brings it, and it runs under every MPI of the same binary interface.

Whether it does is tried, not believed: one ping-pong of two processes, in which a library that is loaded
beside the program reads MPI_Get_library_version. It must be what the MPI said of itself when it was asked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from postprocess.base.sanitize import quote_word
from site_configs.mpi import wheels
from site_configs.mpi.allocation import strip_allocation
from site_configs.mpi.family import OVERSUBSCRIBED, Mpi, join_lines
from site_configs.mpi.probe import ProbeError, run_step, runnable_scratch
from site_configs.programs.installed import WHEEL, Installed

LIBRARY = "libmpi.so.12"  #: of the binary interface that MPICH, Intel MPI and others have in common
FOLDERS = ("lib", "lib64", "lib/release")
EXECUTABLE = "IMB-MPI1"
ENDED = "# All processes entering MPI_Finalize"
BEGIN, END = "plumbline: a world of 2 of", "plumbline: end"
WITNESS = r"""
#include <mpi.h>
#include <stdio.h>
int MPI_Finalize(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(library, &length);
    if (rank == 0) printf("plumbline: a world of %d of\n%s\nplumbline: end\n", size, library);
    fflush(stdout);
    return PMPI_Finalize();
}
"""


@dataclass(frozen=True)
class Imb:
    """IMB for one MPI of the inventory, or why there is none that needs no build."""

    mpicc: str  #: of the MPI; with the module, this tells which
    module: str
    folder: str = ""
    libraries: str = ""  #: folder that must be searched first for the MPI's libraries
    problem: str = ""

    @property
    def installed(self) -> Installed:
        """For the environment of a site."""
        value = f'{quote_word(self.libraries)}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
        return Installed(self.folder, {"LD_LIBRARY_PATH": value}, WHEEL)


def list_imb_folders(mpis: Sequence[Mpi], wheel_root: Path) -> list[Path]:
    """List folders with IMB: of the Intel MPIs of this machine, and of the wheel if it is installed."""
    prefixes = [Path(mpi.prefix) for mpi in mpis if mpi.family == "intel-mpi"]
    prefixes.append(wheel_root / f"intel-mpi-{wheels.read_locked_version('intel-mpi')}")
    folders = [prefix / "bin" for prefix in prefixes]
    return [folder for folder in folders if (folder / EXECUTABLE).is_file()]


def try_imb(mpi: Mpi, folders: Iterable[Path], say: Callable[[str], None]) -> Imb:
    """Try the IMB of these folders with an MPI, its own first; return the first that fits."""
    own = Path(mpi.prefix, "bin")
    folder = next(iter(sorted(folders, key=lambda each: each != own)), None)
    there = [path for name in FOLDERS if ((path := Path(mpi.prefix, name)) / LIBRARY).exists()]
    if folder is None:
        problem = "no Intel MPI is here to bring IMB"
    elif not there:
        problem = f"Intel MPI's IMB needs {LIBRARY}, which this MPI has not"
    else:
        say(f"trying IMB under {mpi.name}")
        problem = explain_imb_unfit(mpi, folder / EXECUTABLE, there[0])
    if problem:
        return Imb(mpi.mpicc, mpi.module, problem=problem)
    return Imb(mpi.mpicc, mpi.module, str(folder), str(there[0]))


def explain_imb_unfit(mpi: Mpi, executable: Path, libraries: Path) -> str:
    """Explain why IMB does not fit an MPI; empty if it does."""
    try:
        library = run_imb_for_library(mpi, executable, libraries)
    except ProbeError as error:
        return f"Intel MPI's IMB does not run under this MPI: {error}"
    if library != mpi.library:
        return f"Intel MPI's IMB runs on another MPI than this: {library[:80]}"
    return ""


def run_imb_for_library(mpi: Mpi, executable: Path, libraries: Path) -> str:
    """Run IMB as it will be run for measuring, and return its MPI_Get_library_version.

    :raises ProbeError: if IMB does not come to its end with two processes.
    """
    env = strip_allocation(os.environ) | OVERSUBSCRIBED.get(mpi.family, {}) | mpi.env
    before = env.get("LD_LIBRARY_PATH", "")
    search = f"{libraries}:{before}" if before else str(libraries)
    with runnable_scratch("plumbline-imb-") as scratch:
        source, witness = Path(scratch, "witness.c"), Path(scratch, "witness.so")
        sizes = Path(scratch, "sizes")
        source.write_text(WITNESS)
        sizes.write_text("8\n")
        compiling = [mpi.mpicc, "-shared", "-fPIC", str(source), "-o", str(witness)]
        run_step(compiling, env, "compiling a witness")
        start = [*mpi.launcher, "-n", "2", "env", f"LD_LIBRARY_PATH={search}"]
        options = ["-npmin", "2", "-msglen", str(sizes), "-iter", "1", "-iter_policy", "off"]
        words = [*start, f"LD_PRELOAD={witness}", str(executable), *options, "PingPong"]
        return parse_imb_library(run_step(words, env, "starting"))


def parse_imb_library(output: str) -> str:
    """Parse the library version in IMB's output.

    :raises ProbeError: if IMB did not end, or nothing was read.
    """
    before, began, rest = output.partition(BEGIN)
    library, ended, _ = rest.partition(END)
    if ENDED not in before or not began or not ended:
        last = join_lines(output)[-120:] or "no output"
        raise ProbeError(f"it did not end with a world of 2: {last}")
    return join_lines(library)
