"""Measure CPU load of other processes; calibrations need an idle machine."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

from postprocess.base.progress import Progress
from site_configs.topology.machine import compute_busy_share, read_cpu_times

LOOK_SECONDS = 0.5  #: for which the machine is watched
WAIT_SECONDS = 60  #: that a calibration waits for other processes to end
PAUSE_SECONDS = 2.0  #: between two measurements
BUSY_SHARE = 0.15  #: of all CPUs; a quiet machine's daemons need far less
#: Set to 1, calibrations do not wait for a quiet machine, as with ``--beside-others``: for tests.
BESIDE_OTHERS = "PLUMBLINE_BESIDE_OTHERS"


def measure_other_load() -> float:
    """Measure the share of this machine, from 0 to 1, that is in use while nothing of ours runs."""
    before = read_cpu_times()
    time.sleep(LOOK_SECONDS)
    return compute_busy_share(before, read_cpu_times())


@dataclass(frozen=True)
class LoadMonitor:
    """The CPU time of other processes on this machine since a moment."""

    ticks: tuple[int, int]  #: of all CPUs, as :func:`read_cpu_times` has them
    own: float  #: CPU time of ours, in seconds

    def share(self) -> float | None:
        """Measure the share of this machine, from 0 to 1, that others have used since; None if unknown."""
        idle, total = (now - then for now, then in zip(read_cpu_times(), self.ticks, strict=True))
        if total <= 0:
            return None
        second = os.sysconf("SC_CLK_TCK")
        others = (total - idle) / second - (read_own_cpu_seconds() - self.own)
        return min(max(others / (total / second), 0.0), 1.0)


def start_load_monitor() -> LoadMonitor:
    """Start a monitor of the machine's load from now on."""
    return LoadMonitor(read_cpu_times(), read_own_cpu_seconds())


def read_own_cpu_seconds() -> float:
    """Read the CPU seconds of this process and of its ended children, launchers and their ranks included."""
    used = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def note_other_work(progress: Progress) -> None:
    """Say so if others use this machine now."""
    share = measure_other_load()
    if share > BUSY_SHARE:
        progress.note(
            f"machine is {share:.0%} busy with other processes: these times are unreliable; run "
            "./plumbline calibrate on the idle machine"
        )


def wait_for_idle(progress: Progress) -> float:
    """Wait until others leave the machine; the share that they use after a minute, 0 if they did leave.

    Who wants to measure beside them says so by ``PLUMBLINE_BESIDE_OTHERS=1``, and waits for nothing.
    """
    if os.environ.get(BESIDE_OTHERS) == "1":
        return 0.0
    share = measure_other_load()
    if share <= BUSY_SHARE:
        return 0.0
    deadline = time.monotonic() + WAIT_SECONDS
    with progress.phase("waiting"):
        while share > BUSY_SHARE and time.monotonic() < deadline:
            progress.now(
                f"machine is {share:.0%} busy with other processes; waiting until it is idle"
            )
            time.sleep(PAUSE_SECONDS)
            share = measure_other_load()
    return share if share > BUSY_SHARE else 0.0
