"""Starts programs that are not ours with the witness of an MPI in front of them."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.support.mpi import FAULTS, Installation, environment_with, mpi_installations, of_family
from tests.support.mpicost import program, start
from tests.support.shared_files import make_once

FAMILIES = ("mpich", "openmpi", "intel-mpi")
OTHER = {"mpich": "openmpi", "openmpi": "mpich"}  #: another family of MPI
SAYS = {"mpich": "MPICH Version:", "openmpi": "Open MPI v", "intel-mpi": "Intel(R) MPI Library"}


@dataclass(frozen=True)
class Watched:
    """A start that has ended."""

    status: int
    output: list[str]  #: lines, sorted: ranks print in any order
    complaints: list[str]  #: lines of the witness on standard error


def family_here(family: str) -> str:
    """The family, if there is an MPI of it. Skips the test where its wheel is missing."""
    if family not in {mpi.family for mpi in mpi_installations()}:
        pytest.skip(f"no MPI of family {family}")
    return family


def library(family: str) -> Path:
    """The witness of an MPI, built once in a session."""
    return program(family).build / "libwitness.so"


@cache
def executable(family: str, name: str = "witnessed") -> Path:
    """A program of ``tests/faults`` for the MPI of a family, built once in a session."""
    mpi = of_family(family)
    words = [mpi.mpicc, "-std=c11", "-O1", str(FAULTS / f"{name}.c"), "-ldl", "-o"]

    def compile_to(path: Path) -> None:
        subprocess.run([*words, str(path)], check=True, env=environment_with(mpi))

    return make_once(f"{name}-{family}", compile_to)


def watch(
    family: str,
    processes: int,
    words: Sequence[str],
    file: Path | None,
    *,
    loaded: Sequence[Path] | None = None,
    wrapper: Sequence[str] = (),
    launcher: Installation | None = None,
) -> Watched:
    """Start a program with its MPI's witness, which is told to write to ``file``; told nothing if that is None.

    :param loaded: what is preloaded instead of the witness alone
    :param launcher: the MPI whose launcher starts it, instead of its own
    """
    libraries = [library(family)] if loaded is None else loaded
    settings = [f"LD_PRELOAD={':'.join(str(path) for path in libraries)}"]
    if file is not None:
        settings.append(f"PLUMBLINE_WITNESS={file}")
    command = [*wrapper, "env", *settings, *words]
    status, output, errors = start(launcher or of_family(family), processes, command, {})
    complaints = [line for line in errors.splitlines() if line.startswith("witness: ")]
    return Watched(status, sorted(output.splitlines()), complaints)
