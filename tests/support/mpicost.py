"""Builds mpicost for an MPI of the tests, starts it, and reads what it writes."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.mpi import Installation, environment_with, fault_library, of_family
from tests.support.paths import SUITE
from tests.support.shared_files import make_once

FAMILIES = ("mpich", "openmpi")
BUILD_LOG = "build.log"  #: what compilers said, in the folder of a build
LIMIT = 240  #: seconds after which a launch counts as hung
EVICTED = ("--cache", "evict")  #: where the records must be believed
TINY = ("--flush-bytes", "4096")  #: where the test is not about the flush
#: Words that say how much a launch flushes, or that it measures nothing.
FLUSH_IS_TOLD = {"--flush-bytes", "evict", "warm", "--list", "--help", "--version"}

Record = dict[str, Any]


@dataclass(frozen=True)
class Ended:
    """A launch that has ended."""

    status: int
    output: str
    complaints: list[str]  #: lines of mpicost itself on standard error; launchers add their own


@dataclass(frozen=True)
class Records:
    """A file of records, unchecked."""

    run: Record
    cases: list[Record]
    end: Record


@dataclass(frozen=True)
class Program:
    """mpicost, built for one MPI."""

    mpi: Installation
    build: Path

    def run(
        self,
        processes: int,
        *options: str,
        wrapper: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        large_flush: bool = False,
    ) -> Ended:
        """Start it, behind the words of a wrapper, and wait for its end. A hang fails the test.

        :param large_flush: by default the machine's caches say how much is flushed. Only tests of that may.
        """
        told = large_flush or not FLUSH_IS_TOLD.isdisjoint(options)
        assert told, f"{options}: this flush takes as long as the cache is large; add *TINY"
        words = [*wrapper, str(self.build / "mpicost"), *options]
        status, output, errors = start(self.mpi, processes, words, variables or {})
        complaints = [line for line in errors.splitlines() if line.startswith("mpicost: ")]
        return Ended(status, output, complaints)

    def measure(
        self, processes: int, file: Path, *options: str, wrapper: Sequence[str] = (), large_flush: bool = False
    ) -> Records:
        """Start it on an output file; it must end well and write a whole file."""
        words = ("--output", str(file), *options)
        ended = self.run(processes, *words, wrapper=wrapper, large_flush=large_flush)
        assert ended.status == 0, (ended.complaints, ended.output)
        assert ended.complaints == []
        return read(file)


def start(
    mpi: Installation, processes: int, words: Sequence[str], variables: Mapping[str, str]
) -> tuple[int, str, str]:
    """Exit status, output and errors of a program that an MPI starts. A hang fails the test."""
    process = subprocess.Popen(
        [*mpi.mpiexec, "-n", str(processes), *words],
        env={**environment_with(mpi), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        raise AssertionError(f"{words} hung; it said:\n{output}\n{errors}") from None
    return process.returncode, output, errors


def lines(file: Path) -> list[Record]:
    """Every line of a file of records as JSON that any reader accepts: no NaN, no infinity."""
    return [json.loads(line, parse_constant=refuse) for line in file.read_text("utf-8").splitlines()]


def refuse(constant: str) -> None:
    """For constants that Python reads and JSON does not know."""
    raise ValueError(f"{constant} is not JSON")


def read(file: Path) -> Records:
    run, *cases, end = lines(file)
    assert (run["record"], end["record"]) == ("run", "end")
    assert {case["record"] for case in cases} == {"case"}
    return Records(run, cases, end)


def build(mpi: Installation, directory: Path, *definitions: str, targets: Sequence[str] = ()) -> Path:
    """Configure and build the suite with CMake, and return the directory with the programs.

    :param targets: what is built; without any, everything
    """
    settings = [f"-DMPI_C_COMPILER={mpi.mpicc}", "-DMPICOST_TESTS=ON", *definitions]
    cmake(directory, settings, environment_with(mpi), environment_with(mpi), targets=targets)
    return directory


def cmake(
    directory: Path,
    settings: Sequence[str],
    configuring: Mapping[str, str],
    building: Mapping[str, str],
    source: Path = SUITE,
    targets: Sequence[str] = (),
) -> None:
    """Configure and build the suite, each step with an environment of its own.

    :param source: the suite, or a copy of it that was changed
    """
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    configure = ["cmake", "-S", str(source), "-B", str(directory), *generator, *settings]
    make = ["cmake", "--build", str(directory), *(("--target", *targets) if targets else ())]
    for command, env in ((configure, configuring), (make, building)):
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    (directory / BUILD_LOG).write_text(done.stdout + done.stderr)


@cache
def program(family: str) -> Program:
    """mpicost for the MPI of a family, built once in a session."""
    mpi = of_family(family)
    return Program(mpi, make_once(family, lambda path: build(mpi, path)))


@cache
def library(family: str, name: str, soname: str = "") -> Path:
    """A library of ``tests/faults`` for the MPI of a family, built once in a session."""
    mpi = of_family(family)
    folder = make_once(f"{name}{soname}-{family}", lambda path: make_library(mpi, path, name, soname))
    return folder / f"{name}-{mpi.name}.so"


def make_library(mpi: Installation, folder: Path, name: str, soname: str) -> None:
    """Compile a library of ``tests/faults`` into a new folder."""
    folder.mkdir()
    fault_library(mpi, folder, name, soname)


def preload(path: Path) -> list[str]:
    """The wrapper that loads a library in front of all others."""
    return ["env", f"LD_PRELOAD={path}"]
