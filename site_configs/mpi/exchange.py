"""The program of each language in ``suite/bindings``: what it measures, and how it is started."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from postprocess.base.processes import run_captured
from site_configs.mpi.family import join_lines

BINDINGS = "bindings"  #: the program of a run
C = "c"  #: the language with which all others are compared
RANKS = 2
BARRIER = "barrier"  #: has no payload; it makes as many calls as the smallest size
ROUTINES = ("pingpong", "bcast", "allreduce", "alltoall", BARRIER)
SIZES = (8, 1000, 10_000, 1_000_000)
ELEMENT = 8  #: bytes of a double
BATCHES = 5  #: batches that are timed, after as many untimed ones
TIME_LIMIT = 120.0  #: seconds; a start usually takes one
MOST_CALLS, MOST_BATCH_BYTES = 200, 10_000_000  #: per batch
TIMED_OUT, NOT_FOUND = 124, 127  #: exit codes, as in a shell
Case = tuple[str, int]  #: routine and bytes


@dataclass(frozen=True)
class Program:
    """A program that is ready to be started."""

    command: tuple[str, ...]
    #: for the ranks only: a launcher may not work with the libraries of a language
    variables: Mapping[str, str] = field(default_factory=dict)
    launcher: tuple[str, ...] = ()  #: with its number of ranks, if it is not the MPI's launcher
    library: str = ""  #: what it must report as its library, if that is not the MPI's name


def count_calls(bytes_: int) -> int:
    return max(1, min(MOST_CALLS, MOST_BATCH_BYTES // bytes_))


def list_cases(sizes: Sequence[int]) -> list[Case]:
    return [(routine, size_) for routine in ROUTINES for size_ in ((0,) if routine == BARRIER else sizes)]


def list_options(sizes: Sequence[int]) -> list[str]:
    """List the options that make a program measure these sizes in bytes, rising."""
    return [str(BATCHES), *(str(n) for size in sizes for n in (size, count_calls(size)))]


@dataclass(frozen=True)
class Ran:
    code: int
    output: str = ""
    stderr: str = ""

    @property
    def errors(self) -> str:
        """The end of its standard error, on one line."""
        return join_lines(self.stderr)[-300:]


def run_exchange(
    program: Program,
    launcher: Sequence[str],
    options: Sequence[str],
    env: Mapping[str, str],
    limit: float = TIME_LIMIT,
) -> Ran:
    """Start a program and wait for its end.

    :param launcher: launcher of the MPI, with its number of ranks
    :param limit: time limit in seconds
    """
    assignments = [f"{name}={value}" for name, value in program.variables.items()]
    words = [*(program.launcher or launcher)]
    words += [
        *(["env", *assignments] if assignments and not program.launcher else []),
        *program.command,
        *options,
    ]
    try:
        done = run_captured(words, {**env, **program.variables} if program.launcher else env, limit)
    except OSError as error:
        return Ran(NOT_FOUND, stderr=f"cannot be started: {words[0]}: {error.strerror}")
    except subprocess.TimeoutExpired:
        return Ran(TIMED_OUT, stderr=f"did not end within {limit:g} s")
    return Ran(done.returncode, done.stdout, done.stderr)
