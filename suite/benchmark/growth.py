"""How the cost of mpicost grows with the number of processes, in simulated time, beside that of OSU.

``python -m suite.benchmark.growth --mpicost BUILD/mpicost --osu DIRECTORY``

Runs programs that were built for SimGrid's SMPI on a torus with a host for each process and prints, for
each routine and number of processes, what a launch of one case costs beyond the routine itself. Messages
and simulated time are exact; wall time is that of this machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from suite.benchmark.cost import parse_counts, table
from suite.benchmark.simulator import Cost, Simulator, torus

#: routine and its program among those of OSU
ROUTINES = {
    "barrier": "osu_barrier",
    "bcast": "osu_bcast",
    "allreduce_sum": "osu_allreduce",
    "alltoall": "osu_alltoall",
}
BYTES = "8"
VERIFIED = 2  #: calls of the routine that mpicost verifies and does not time
WARM = ("--cache", "warm", "--seed", "1")
HEAD = ("processes", "routine", "program", "messages", "most", "simulated ms", "wall s", "KiB/rank")


@dataclass(frozen=True)
class Overhead:
    """What a launch of one case costs beyond the timed calls."""

    messages: list[int]  #: of each rank, sent and received, beyond those of the routine
    simulated: float  #: s beyond the timed calls
    cost: Cost  #: of the whole launch

    def row(self, processes: int, routine: str, program: str) -> Sequence[object]:
        """As a row of the table: messages are the mean over ranks and the rank with most."""
        return (
            *(processes, routine, program),
            f"{sum(self.messages) / processes:.1f}",
            max(self.messages),
            f"{1e3 * self.simulated:.3f}",
            f"{self.cost.wall:.2f}",
            f"{self.cost.memory / processes / 1024:.1f}",
        )


@dataclass(frozen=True)
class Growth:
    """The programs, and how often each calls its routine."""

    smpirun: str
    directory: Path  #: for the descriptions of the simulated machines
    mpicost: Path
    osu: Path | None  #: directory of OSU's programs
    trials: int

    def rows(self, counts: Sequence[int]) -> Iterator[Sequence[object]]:
        """One row per number of processes, routine and program."""
        for processes in counts:
            simulator = torus(self.smpirun, self.directory, processes)
            # What is not sent point to point is what MPI needs to make communicators.
            start = simulator.trace(self.mpicost, processes, "--list").inside
            for routine, program in ROUTINES.items():
                own, per_call = self.of_mpicost(simulator, routine, processes, start)
                yield own.row(processes, routine, "mpicost")
                if self.osu is not None:
                    theirs = self.of_osu(simulator, self.osu / program, routine, processes, per_call)
                    yield theirs.row(processes, routine, "osu")

    def of_mpicost(
        self, simulator: Simulator, routine: str, processes: int, start: list[int]
    ) -> tuple[Overhead, list[int]]:
        """Overhead of mpicost, and the messages of one call of the routine on each rank."""
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "out.jsonl"
            options = (*WARM, "--trials", str(self.trials), "--routine", with_bytes(routine))
            options = (*options, "--output", str(file))
            traced = simulator.trace(self.mpicost, processes, *options)
            cost = simulator.measure(self.mpicost, processes, *options)
            timed = json.loads(file.read_text().splitlines()[-1])["timed"]
        calls = self.trials + VERIFIED
        routines = [whole - first for whole, first in zip(traced.inside, start, strict=True)]
        if any(messages % calls for messages in routines):
            raise ValueError(f"{routine}: not all of its {calls} calls send as many messages")
        own = [direct + first for direct, first in zip(traced.direct, start, strict=True)]
        per_call = [messages // calls for messages in routines]
        return Overhead(own, cost.simulated - timed, cost), per_call

    def of_osu(
        self, simulator: Simulator, program: Path, routine: str, processes: int, per_call: list[int]
    ) -> Overhead:
        """Overhead of a program of OSU, given the messages of one call on each rank."""
        options = ["-i", str(self.trials), "-x", "0", "-f"]
        options += [] if routine == "barrier" else ["-m", f"{BYTES}:{BYTES}"]
        traced = simulator.trace(program, processes, *options)
        cost = simulator.measure(program, processes, *options)
        all_messages = zip(traced.direct, traced.inside, per_call, strict=True)
        own = [direct + inside - self.trials * each for direct, inside, each in all_messages]
        if min(own) < 0:
            raise ValueError(f"{program}: sends fewer messages than {self.trials} calls do")
        slowest = 1e-6 * float(cost.output.split()[-2])  # the last columns: max latency, iterations
        return Overhead(own, cost.simulated - self.trials * slowest, cost)


def with_bytes(routine: str) -> str:
    """The word that chooses a routine at the size that is looked at."""
    return routine if routine == "barrier" else f"{routine}:{BYTES}"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--mpicost", required=True, type=Path, help="the program, built by smpicc")
    parser.add_argument("--osu", type=Path, help="directory of OSU's collectives, built by smpicc")
    parser.add_argument("--smpirun", default="smpirun", help="the launcher (default: on the PATH)")
    parser.add_argument("--trials", type=int, default=10, help="timed calls in a launch")
    parser.add_argument(
        "--processes",
        type=parse_counts,
        default=[128, 512, 1024],
        help="process counts, 1024 at most (default: 128,512,1024)",
    )
    return parser.parse_args()


def main() -> int:
    """Run, print."""
    options = arguments()
    with tempfile.TemporaryDirectory() as directory:
        places = (options.smpirun, Path(directory), options.mpicost.resolve(), options.osu)
        growth = Growth(*places, options.trials)
        print(f"A launch of one case of {BYTES} bytes with {options.trials} timed calls, beyond")
        print("those calls. Messages of a rank, sent and received: the mean and the most.")
        print("Wall time and memory are those of the whole launch.")
        try:
            table(HEAD, growth.rows(options.processes))
        except (subprocess.CalledProcessError, OSError, ValueError) as error:
            print(f"growth: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
