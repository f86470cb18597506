"""One start of a program of ``suite/bindings``: what it printed, held against what was asked for."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from postprocess.base.formats import plural, size
from postprocess.base.processes import run_captured
from site_configs.mpi.family import is_library, join_lines

RANKS = 2
ROUTINES = ("pingpong", "bcast", "allreduce")
BATCHES = 5  #: that are timed; as many untimed ones go before them
TIME_LIMIT = 120.0  #: seconds of a start; a usual one takes one
MOST_CALLS, MOST_BATCH_BYTES = 200, 10_000_000  #: of a batch
Case = tuple[str, int]  #: routine and bytes


class ExchangeError(Exception):
    """One line: what a start did wrong."""


@dataclass(frozen=True)
class Program:
    """A program that is ready to be started."""

    command: tuple[str, ...]
    #: of the ranks alone: a launcher may not bear the libraries of a language
    variables: Mapping[str, str] = field(default_factory=dict)
    launcher: tuple[str, ...] = ()  #: with its number of ranks, where it is not the MPI's
    library: str = ""  #: what it has to say of its library, where that is not the MPI's name


@dataclass(frozen=True)
class Exchange:
    """What a start measured."""

    level: str  #: of threads that was provided: ``single`` or ``multiple``
    seconds: Mapping[Case, float]  #: of a call, the least of the batches


def count_calls(bytes_: int) -> int:
    """Return the calls of a batch."""
    return max(1, min(MOST_CALLS, MOST_BATCH_BYTES // bytes_))


def start_exchange(
    program: Program, launcher: Sequence[str], library: str, sizes: Sequence[int], env: Mapping[str, str]
) -> Exchange:
    """Start a program and read what it measured.

    :param launcher: of the MPI, without its number of ranks
    :param library: what MPI_Get_library_version has to say in it
    :param sizes: in bytes, rising
    :raises ExchangeError: for whatever is wrong, in one line
    """
    own = [f"{name}={value}" for name, value in program.variables.items()]
    words = [*(program.launcher or (*launcher, "-n", str(RANKS)))]
    words += [*(["env", *own] if own and not program.launcher else []), *program.command]
    words += [str(BATCHES), *(str(n) for each in sizes for n in (each, count_calls(each)))]
    try:
        done = run_captured(words, {**env, **program.variables} if program.launcher else env, TIME_LIMIT)
    except OSError as error:
        raise ExchangeError(f"cannot be started: {words[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise ExchangeError(f"did not end within {TIME_LIMIT:g} s") from None
    read = read_exchange(done.stdout, program.library or library, sizes)
    if done.returncode or isinstance(read, str):
        said = join_lines(done.stderr)[-300:]
        why = read if isinstance(read, str) else f"exit code {done.returncode}"
        raise ExchangeError(": ".join(filter(None, [why, said])))
    return read


def read_exchange(output: str, library: str, sizes: Sequence[int]) -> Exchange | str:
    """Read the output of a start; return what is wrong with it, if something is."""
    lines = [line.split() for line in output.splitlines() if line.strip()]
    world = next((line for line in lines if line[0] == "world" and len(line) > 3), None)
    if world is None:
        return "said nothing of its world"
    if world[1] != str(RANKS):
        return (
            f"world of {world[1]}, not of {RANKS}: the launcher does not belong to the library that "
            f"was loaded, {' '.join(world[3:])[:60]}"
        )
    said = " ".join(world[3:])
    if not is_same_library(said, library):
        return f"wrong library: it ran on {said[:60]}, not on {library[:60]}"
    try:
        own = [line for line in lines if line[0] in (*ROUTINES, "end")]
        found = {(line[0], int(line[1])): line[2:] for line in own[:-1]}
        wrong = {case: math.ceil(float(rest[0])) for case, rest in found.items()}
        times = {case: [float(word) for word in rest[1:]] for case, rest in found.items()}
    except (ValueError, IndexError, OverflowError):
        return "a line that is none of ours"
    for (routine, bytes_), count in wrong.items():
        if count:
            numbers = plural(count, "wrong number")
            return f"wrong data: {routine} of {size(bytes_)}: {numbers} received"
    planned = [(routine, bytes_) for routine in ROUTINES for bytes_ in sizes]
    if [*times] != planned or len(own) != len(planned) + 1 or own[-1] != ["end"]:
        return "ended before its last case"
    if any(len(each) != BATCHES or not all(0 < t < math.inf for t in each) for each in times.values()):
        return f"a case has not {BATCHES} times above 0"
    level = "single" if world[2] == "0" else "multiple"
    return Exchange(level, {case: min(each) for case, each in times.items()})


def is_same_library(said: str, wanted: str) -> bool:
    """Return whether a library is the wanted one; a binding that knows no more names the loaded file."""
    if wanted.startswith("/"):
        return Path(said).resolve().is_relative_to(Path(wanted).resolve())
    return is_library(said, wanted)
