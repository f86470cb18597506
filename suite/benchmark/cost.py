"""What mpicost itself costs: time of the default family, how much of it is timed, memory per rank.

``python -m suite.benchmark.cost --mpicc PREFIX/bin/mpicc --mpiexec PREFIX/bin/mpiexec``

Builds the program, runs it and prints tables. Times depend on the machine and on what else it does;
memory does not.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SUITE = Path(__file__).resolve().parent.parent
SIZES = (8, 10_000, 1_000_000)
CACHES = ("evict", "flush", "warm")
SETTLE = 0.5  #: seconds of work before the first case, as in a night
GROWING = ("rightshift", "bcast", "allgather", "alltoall", "allreduce_sum")


@dataclass(frozen=True)
class Launch:
    """One launch of the program. Times in seconds."""

    wall: float  #: of the launch line, from start to end
    elapsed: float  #: by the program's own clock, after MPI is up
    timed: float  #: between stamps
    cooling: float  #: of a flush, before all trials: as long as it took in the proof that caches get cold
    cases: int
    trials: int
    flush_bytes: int
    memory: int  #: bytes per rank at the peak


@dataclass(frozen=True)
class Bench:
    """The program and how it is started."""

    program: Path
    mpiexec: Sequence[str]

    def launch(self, processes: int, *options: str) -> Launch:
        """Run it once. Raises subprocess.CalledProcessError if it fails."""
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "out.jsonl"
            command = [*self.mpiexec, "-n", str(processes), str(self.program), *options]
            command += ["--output", str(file)]
            start = time.monotonic()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            wall = time.monotonic() - start
            run, *cases, end = map(json.loads, file.read_text().splitlines())
        trials = sum(case["trials"] for case in cases)
        return Launch(
            wall=wall,
            elapsed=end["elapsed"],
            timed=end["timed"],
            cooling=run["coldness"]["took"] * trials if run["cache"] == "flush" else 0.0,
            cases=len(cases),
            trials=trials,
            flush_bytes=run["flush_bytes"],
            memory=end["memory_bytes"],
        )


def build(mpicc: str, directory: Path) -> Path:
    """Build the program with an MPI's compiler wrapper. Raises CalledProcessError."""
    configure = ["cmake", "-S", str(SUITE), "-B", str(directory), f"-DMPI_C_COMPILER={mpicc}"]
    for command in (configure, ["cmake", "--build", str(directory)]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return directory / "mpicost"


def table(head: Sequence[str], rows: Iterator[Sequence[object]]) -> None:
    """Print rows as they come, right-aligned under their heads."""
    widths = [max(len(word), 12) for word in head]
    print("  ".join(word.rjust(width) for word, width in zip(head, widths, strict=True)))
    for row in rows:
        cells = (str(cell).rjust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells), flush=True)
    print()


def time_rows(bench: Bench, counts: Sequence[int]) -> Iterator[Sequence[object]]:
    """One row per process count, cache state and synchroniser, of the default family."""
    variants = (*((cache, "dissemination") for cache in CACHES), ("evict", "barrier"))
    for processes in counts:
        for cache, sync in variants:
            settled = ("--settle", str(SETTLE))
            run = bench.launch(processes, "--cache", cache, "--sync", sync, *settled)
            rest = run.elapsed - SETTLE - run.timed - run.cooling
            yield (
                *(processes, cache, sync, run.cases, run.trials),
                f"{run.wall:.2f}",
                f"{run.wall - run.elapsed:.2f}",
                f"{SETTLE:.2f}",
                f"{run.cooling:.2f}",
                f"{run.timed:.2f}",
                f"{rest:.2f}",
                f"{1e3 * rest / run.trials:.3f}",
            )


def trial_seconds(bench: Bench, processes: int, cache: str) -> tuple[float, int]:
    """Time of one whole trial of a barrier, flush included, and bytes flushed per rank."""
    options = ("--routine", "barrier", "--cache", cache, "--trials", "501")
    run = bench.launch(processes, *options)
    return run.elapsed / run.trials, run.flush_bytes


def flush_rows(bench: Bench, counts: Sequence[int]) -> Iterator[Sequence[object]]:
    """Time that a flushed trial takes beyond a warm one, on a routine that costs next to nothing."""
    for processes in counts:
        flushed, size = trial_seconds(bench, processes, "flush")
        warm, _ = trial_seconds(bench, processes, "warm")
        seconds = flushed - warm
        rate = f"{size / seconds / 1e9:.1f}" if seconds > 0 else "-"
        yield processes, size, f"{1e3 * flushed:.3f}", f"{1e3 * warm:.3f}", rate


def memory_rows(bench: Bench, counts: Sequence[int]) -> Iterator[Sequence[object]]:
    """Bytes per rank of single routines without the flush array, over sizes and process counts."""
    options = ("--cache", "warm", "--trials", "2")
    for routine in GROWING:
        for size in SIZES:
            selected = ("--routine", routine, "--bytes", str(size))
            peaks = [bench.launch(p, *selected, *options).memory for p in counts]
            yield routine, size, *peaks


def parse_counts(text: str) -> list[int]:
    """Process counts from a comma-separated list."""
    counts = [int(word) for word in text.split(",")]
    if min(counts) < 1:
        raise ValueError(text)
    return counts


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--mpicc", required=True, help="compiler wrapper of the MPI")
    parser.add_argument("--mpiexec", required=True, help="its launcher, with options if need be")
    cores = os.cpu_count() or 1
    parser.add_argument(
        "--processes",
        type=parse_counts,
        default=sorted({1, 2, cores} & set(range(1, cores + 1))),
        help="process counts of the timings (default: 1, 2 and the number of cores)",
    )
    parser.add_argument(
        "--memory-processes",
        type=parse_counts,
        default=[1, 2, 4, 8],
        help="process counts of the memory table, more than cores if the launcher allows it",
    )
    return parser.parse_args()


def main() -> int:
    """Build, run, print."""
    options = arguments()
    with tempfile.TemporaryDirectory() as directory:
        try:
            program = build(options.mpicc, Path(directory))
            bench = Bench(program, shlex.split(options.mpiexec))
            print("Default family, in seconds. `rest`: filling, verifying, evicting, synchronising.")
            head = ("processes", "cache", "sync", "cases", "trials", "wall s", "start s", "settle s")
            head = (*head, "cooling s", "timed s", "rest s", "rest ms/trial")
            table(head, time_rows(bench, options.processes))
            print("The flush: time of a whole trial of a barrier with and without it.")
            head = ("processes", "bytes/rank", "flushed ms", "warm ms", "GB/s a rank")
            table(head, flush_rows(bench, options.processes))
            print("Memory per rank in bytes, without flush array, over process counts.")
            head = ("routine", "bytes", *(f"p={p}" for p in options.memory_processes))
            table(head, memory_rows(bench, options.memory_processes))
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"cost: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
