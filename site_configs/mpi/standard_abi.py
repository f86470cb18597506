"""The standard ABI of MPI (MPI 5.0, chapter 20): one program, built once, runs on every MPI that has it.

A user chooses it by a word, ``mpich+abi``. Whether an MPI has it is tried, not believed: a program that is
linked to the library of this name must come up as a world of two, and say that it runs on this MPI.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from postprocess.base.sanitize import quote_word
from site_configs.mpi.allocation import strip_allocation
from site_configs.mpi.family import OVERSUBSCRIBED, Mpi, Unusable
from site_configs.mpi.probe import PROGRAM, ProbeError, find_world_library, run_step, runnable_scratch

LIBRARY = "libmpi_abi.so.1"  #: the number is the version of the ABI, which the standard fixes
HEADER = "mpi_abi.h"
FOLDERS = ("lib", "lib64", "lib/release", "lib/*-linux-gnu")


def find_abi_folder(prefix: Path) -> Path | None:
    """Find the folder with the library of the standard ABI; None if an MPI has none."""
    folders = (folder for pattern in FOLDERS for folder in sorted(prefix.glob(pattern)))
    return next((folder for folder in folders if (folder / LIBRARY).exists()), None)


def find_header_folder(folder: Path) -> Path | None:
    """Find the folder with the header of the standard ABI, from that with the library."""
    above = list(folder.parents)[:3]
    return next((each / "include" for each in above if (each / "include" / HEADER).exists()), None)


def adopt_standard_abi(mpi: Mpi, word: str) -> Mpi | Unusable:
    """Return an MPI as it is used by its standard ABI; or why it cannot be.

    :param word: by which the user asked for it
    """
    folder = find_abi_folder(Path(mpi.prefix))
    if folder is None:
        return Unusable(word, mpi.origin, f"it has no standard ABI of MPI: no {LIBRARY} below {mpi.prefix}/lib")
    if problem := explain_abi_unfit(mpi, folder):
        return Unusable(word, mpi.origin, problem)
    return replace(mpi, standard_abi=str(folder))


def explain_abi_unfit(mpi: Mpi, folder: Path) -> str:
    """Explain why a library of the standard ABI is not that of an MPI; empty if it is."""
    try:
        library = run_abi_for_library(mpi, folder)
    except ProbeError as error:
        return f"no program of the standard ABI runs on it: {error}"
    if library != mpi.library:
        return f"{folder / LIBRARY} is of another MPI: {library[:80]}"
    return ""


def run_abi_for_library(mpi: Mpi, folder: Path) -> str:
    """Run two processes of a program of the standard ABI, and return their MPI_Get_library_version.

    :raises ProbeError: if no such world comes up.
    """
    header = find_header_folder(folder)
    if header is None:
        raise ProbeError(f"there is no {HEADER} for {folder / LIBRARY}")
    env = strip_allocation(os.environ) | OVERSUBSCRIBED.get(mpi.family, {}) | mpi.env
    before = env.get("LD_LIBRARY_PATH", "")
    search = f"{folder}:{before}" if before else str(folder)
    with runnable_scratch("plumbline-abi-") as scratch:
        source, program = scratch / "probe.c", scratch / "probe"
        source.write_text(PROGRAM)
        link = [str(folder / LIBRARY), "-Wl,--allow-shlib-undefined", "-o", str(program)]
        run_step(["cc", "-DMPI_ABI", f"-I{header}", str(source), *link], env, "compiling")
        start = [*mpi.launcher, "-n", "2", "env", f"LD_LIBRARY_PATH={search}", str(program)]
        return find_world_library(mpi.mpiexec, run_step(start, env, "starting"), LIBRARY)


def build_launch_variables(folder: str) -> dict[str, str]:
    """Build the variable by which a program finds the library of one MPI, as a shell reads it.

    No path is in the program: where the variable is lost, it does not start, and takes no other MPI.

    :param folder: with the library; empty where programs find their own
    """
    value = f'{quote_word(folder)}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
    return {"LD_LIBRARY_PATH": value} if folder else {}
