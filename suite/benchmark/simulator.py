"""Runs MPI programs under SimGrid's SMPI and counts every message they send, inside of collectives too."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SIMULATE = ("--log=root.thres:error", "--cfg=smpi/simulate-computation:no")
TRACE = ("--cfg=tracing/smpi/internals:yes", "-trace", "-trace-file")
TIMING = ("--log=smpi_utils.thres:info", "--cfg=smpi/display-timing:yes")
TIME_MARK = "Simulated time: "
#: messages that a rank sends or receives in a call; those inside of other calls have lines of their own
MESSAGES = {"PMPI_Send": 1, "PMPI_Recv": 1, "PMPI_Sendrecv": 2}
MOST_HOSTS = 1024
PLATFORM = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="top" routing="Full">
 <cluster id="torus" prefix="n" suffix="" radical="0-{last}" speed="600Mf" bw="350MBps" lat="1.8us"
  loopback_bw="1GBps" loopback_lat="0.2us" topology="TORUS" topo_parameters="{lengths}"/>
</zone></platform>
"""


@dataclass(frozen=True)
class Messages:
    """Messages that each rank sent or received."""

    direct: list[int]  #: by point-to-point calls of the program
    inside: list[int]  #: inside of its collective calls, MPI_Init and the making of communicators


@dataclass(frozen=True)
class Cost:
    """One run of a program."""

    output: str
    simulated: float  #: s from the start of the program to its end, on the simulated machine
    wall: float  #: s on this one
    memory: int  #: bytes at the peak, of all ranks and of the simulator


@dataclass(frozen=True)
class Simulator:
    """smpirun on a machine of at least as many hosts as there will be ranks."""

    launcher: Sequence[str]  #: with its options

    def trace(self, program: Path, processes: int, *options: str) -> Messages:
        """Run a program and count. Raises CalledProcessError if it fails, ValueError as count_messages."""
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "trace"
            command = [*self.launcher, *TRACE, str(file), "-n", str(processes)]
            subprocess.run([*command, str(program), *options], check=True, capture_output=True)
            with file.open() as lines:
                return count_messages(lines, processes)

    def measure(self, program: Path, processes: int, *options: str) -> Cost:
        """Run a program. Raises CalledProcessError if it fails, ValueError if it does not tell its time."""
        command = [*self.launcher, *TIMING, "-n", str(processes), str(program), *options]
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            start = time.monotonic()
            process = subprocess.Popen(command, stdout=output, stderr=errors)
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.monotonic() - start
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0), errors.seek(0)
            said, complaints = output.read(), errors.read()
        if process.returncode != 0:
            print(complaints, file=sys.stderr)
            raise subprocess.CalledProcessError(process.returncode, command)
        simulated = complaints.rpartition(TIME_MARK)[2].split()
        if TIME_MARK not in complaints:
            raise ValueError(f"{self.launcher[0]}: did not say {TIME_MARK!r}")
        return Cost(said, float(simulated[0]), wall, usage.ru_maxrss * 1024)


def torus(smpirun: str, directory: Path, processes: int = MOST_HOSTS) -> Simulator:
    """A simulator of a 3-D torus, a rank on each host, whose description goes to ``directory``.

    It has as many hosts as processes, or the next power of two: where ranks fill a part of a ring only, the
    way from its last rank to its first does not grow with their number as it would on a machine of that size.
    """
    doublings = max(3, (processes - 1).bit_length())  # SimGrid 3.32 needs two hosts in each direction
    lengths = [2 ** ((doublings + more) // 3) for more in range(3)]
    count = 2**doublings
    platform, hosts = directory / f"torus{count}.xml", directory / f"hosts{count}"
    words = ",".join(map(str, lengths))
    platform.write_text(PLATFORM.format(last=count - 1, lengths=words))
    hosts.write_text("".join(f"n{number}\n" for number in range(count)))
    return Simulator([smpirun, *SIMULATE, "-platform", str(platform), "-hostfile", str(hosts)])


def count_messages(lines: Iterable[str], processes: int) -> Messages:
    """Count the messages in a trace of SimGrid 3.32 in the format of Paje, with internals.

    Point-to-point calls are counted by the states that ranks enter, because SimGrid draws two links for
    each MPI_Sendrecv; messages inside of collectives, which have negative tags, by their links.
    Raises ValueError for a call whose messages are not known.
    """
    calls: dict[str, int] = {}  # messages of a call by the number of its state
    direct, inside = Counter[int](), Counter[int]()
    for line in lines:
        kind, *words = line.split()
        if kind == "5":  # a name for a state: number, type, name
            calls[words[0]] = _messages_of(words[2])
        elif kind == "12":  # a rank enters a state: time, type, rank, state
            direct[int(words[2])] += calls[words[3]]
        elif kind in ("15", "16") and words[3] == "PTP":  # ..., rank, from_to_tag_number
            inside[int(words[4])] += int(words[5].split("_")[2]) < 0
    ranks = range(1, processes + 1)
    return Messages([direct[rank] for rank in ranks], [inside[rank] for rank in ranks])


def _messages_of(call: str) -> int:
    if call not in MESSAGES and any(word in call.lower() for word in ("send", "recv", "start")):
        raise ValueError(f"{call}: the number of its messages is not known")
    return MESSAGES.get(call, 0)
