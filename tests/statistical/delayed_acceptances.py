"""Acceptances on a real MPI with calls delayed by a known share, beside what the protocol states of them.

Usage: ``python -m tests.statistical.delayed_acceptances BUILD MPIEXEC FILE [LAUNCHES]``, where BUILD is that of
the suite with this MPI, and FILE gets a line for each launch; a second call adds to it and counts all of them.

Launches with 0, 2, 5 and 10% are taken in turn, with the library of the self-test, idle where nothing is
delayed. What is committed of a row is the center of all launches without a delay. Each acceptance has launches
of its own, and is judged look by look by the package's own functions.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from postprocess.parsers.mpicost import read_launch
from postprocess.stats.procurement.acceptance import (
    RowVerdict,
    choose_acceptance_looks,
    judge_acceptance,
    simulate_characteristic,
)
from tests.statistical.simulated_acceptances import COUNTED, SLOWER, rules

ROUTINES = "--routine=bcast:8:100000,allreduce_sum:8:100000,allgather:8:10000"
FUNCTIONS = "MPI_Bcast,MPI_Allreduce,MPI_Allgather"
OPTIONS = (ROUTINES, "--trials=31", "--cache=warm")


def launch(build: Path, mpiexec: str, slower: float) -> dict[str, float]:
    """Launch mpicost on two processes; headlines in seconds by routine and bytes."""
    told = {
        "LD_PRELOAD": str(build / "libdelay.so"),
        "PLUMBLINE_DELAY_FRACTION": str(slower or 1.0),
        "PLUMBLINE_DELAY_ROUTINES": FUNCTIONS,
        "PLUMBLINE_DELAY_LAUNCHES": "1" if slower else "0",
    }
    with TemporaryDirectory() as scratch:
        path = Path(scratch, "records.jsonl")
        words = ["env", *(f"{name}={value}" for name, value in told.items())]
        words += [str(build / "mpicost"), *OPTIONS, f"--output={path}"]
        subprocess.run(
            [mpiexec, "-n", "2", *words], check=True, stdout=subprocess.DEVNULL, env=os.environ
        )
        found = read_launch(path)
        return {f"{e.routine} {e.bytes}": e.summary.headline for e in found.cases}


def main(build: Path, mpiexec: str, path: Path, launches: int) -> None:
    """Launch, and print counted and stated shares."""
    until = time.monotonic()
    with path.open("a") as file:
        for _ in range(launches):
            for slower in SLOWER:
                print(json.dumps([slower, launch(build, mpiexec, slower)]), file=file, flush=True)
    print(f"{launches} launches of each: {time.monotonic() - until:.0f} s")
    every = [json.loads(line) for line in path.read_text().splitlines()]
    names = list(every[0][1])
    values = {
        (slower, name): [math.log(told[name]) for share, told in every if share == slower]
        for slower in SLOWER
        for name in names
    }
    for name in names:
        center = statistics.fmean(values[0.0, name])
        shown = ", ".join(
            f"{math.expm1(statistics.fmean(values[s, name]) - center):+.1%}" for s in SLOWER
        )
        print(f"{name}: spread {statistics.stdev(values[0.0, name]):.1%}; slower by {shown}")
    for slower in SLOWER:
        print_counts(slower, {name: values[slower, name] for name in names}, values)


def print_counts(slower: float, own: dict, values: dict) -> None:
    """Print what acceptances of so many launches each say of every row, beside what is stated."""
    told = rules()
    looks = choose_acceptance_looks(told.launches, told.risk.most_launches)
    risks = told.risk.good_failed, told.risk.slow_accepted
    counts: Counter[RowVerdict] = Counter()
    stated = [0.0, 0.0]
    for name, logs in own.items():
        limit = statistics.fmean(values[0.0, name]) + math.log1p(told.tolerance)
        spread = statistics.stdev(values[0.0, name])
        drawn = simulate_characteristic(spread, told.tolerance, looks, *risks, [slower])
        parts = [logs[n : n + looks[-1]] for n in range(0, len(logs) - looks[-1] + 1, looks[-1])]
        for part in parts:
            counts[judge_acceptance([log - limit for log in part], looks, *risks).verdict] += 1
        stated = [stated[0] + len(parts) * drawn.met[0], stated[1] + len(parts) * drawn.missed[0]]
    shares = ", ".join(f"{counts[verdict]} {verdict}" for verdict in COUNTED)
    print(
        f"{slower:.0%} slower: {counts.total()} acceptances: {shares}; "
        f"stated {stated[0]:.1f} met, {stated[1]:.1f} missed"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int((sys.argv[4:] or ["140"])[0]))
