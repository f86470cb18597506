"""Measure the CPU load of other processes, because calibrations need an idle machine."""

import contextlib
import math
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from itertools import pairwise
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

from postprocess.base import files
from postprocess.base.formats import compute_slowdown, first_of, parse_utc
from postprocess.base.processes import PROC
from postprocess.base.progress import Progress
from postprocess.calibration.samples import CaseSample
from postprocess.model.reference import ENOUGH_LAUNCHES, ENOUGH_SESSIONS, Reference
from postprocess.stats.sessions import estimate_session_spread
from site_configs.topology.machine import read_cpu_times

LOOK_SECONDS = 0.5  #: duration of a measurement
WAIT_SECONDS = 60  #: how long a calibration waits for other processes to end
PAUSE_SECONDS = 2.0  #: between two measurements
BUSY_SHARE = 0.15  #: share of all CPUs; the daemons of a quiet machine need far less
#: If it is 1, calibrations do not wait for a quiet machine, as with ``--beside-others``; for tests.
BESIDE_OTHERS = "PLUMBLINE_BESIDE_OTHERS"


@dataclass(frozen=True)
class LoadMonitor:
    """The CPU time of other processes on this machine since a moment."""

    ticks: tuple[int, int]  #: those of all CPUs, as :func:`read_cpu_times` returns them
    own: float  #: CPU time of this process, in seconds

    def share(self) -> float | None:
        """Measure the share of this machine, from 0 to 1, that others have used since; None if unknown."""
        idle, total = (now - then for now, then in zip(read_cpu_times(), self.ticks, strict=True))
        if total <= 0:
            return None
        second = os.sysconf("SC_CLK_TCK")
        others = (total - idle) / second - (read_own_cpu_seconds() - self.own)
        return min(max(others / (total / second), 0.0), 1.0)


def start_load_monitor() -> LoadMonitor:
    return LoadMonitor(read_cpu_times(), read_own_cpu_seconds())


def measure_other_load() -> float:
    """Measure the share of this machine, from 0 to 1, that others use now; 0 if unknown."""
    monitor = start_load_monitor()
    time.sleep(LOOK_SECONDS)
    return monitor.share() or 0.0


def read_own_cpu_seconds() -> float:
    """Read the CPU seconds of this process and its children, including launchers and ranks that have ended."""
    used = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used) + read_running_children_seconds()


def read_running_children_seconds() -> float:
    """Read the CPU seconds of the children that still run, and of what has ended below them.

    A pass of ReFrame, with all its launches, is below a child that runs as long as this process.
    """
    ticks = 0
    for path in PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            _, parent, *numbers = files.read_text(path, "replace").rpartition(")")[2].split()
            if int(parent) == os.getpid():
                ticks += sum(map(int, numbers[9:13]))  # utime, stime, cutime and cstime of proc(5)
    return ticks / os.sysconf("SC_CLK_TCK")


def note_other_work(progress: Progress) -> None:
    share = measure_other_load()
    if share > BUSY_SHARE:
        progress.note(
            f"machine is {share:.0%} busy with other processes: these times are unreliable; run "
            "./plumbline calibrate on the idle machine"
        )


def is_disturbed(share: float | None) -> bool:
    """Return whether others used so much of this machine, from 0 to 1, that times are unreliable.

    None means unknown. ``PLUMBLINE_BESIDE_OTHERS=1`` allows measuring beside others.
    """
    return share is not None and share > BUSY_SHARE and os.environ.get(BESIDE_OTHERS) != "1"


def wait_for_idle(progress: Progress) -> float:
    """Wait until others leave the machine. Return the share that they still use after a minute, else 0.

    With ``PLUMBLINE_BESIDE_OTHERS=1`` it does not wait.
    """
    if os.environ.get(BESIDE_OTHERS) == "1":
        return 0.0
    share = measure_other_load()
    if share <= BUSY_SHARE:
        return 0.0
    deadline = time.monotonic() + WAIT_SECONDS
    with progress.phase("waiting"):
        while share > BUSY_SHARE and time.monotonic() < deadline:
            progress.now(f"machine is {share:.0%} busy with other processes; waiting until it is idle")
            time.sleep(PAUSE_SECONDS)
            share = measure_other_load()
    return share if share > BUSY_SHARE else 0.0


ODD_FACTOR = 3.0  #: relative to the median launch; a launch beyond it was not on the same machine
MODE_FACTOR = 1.2  #: least factor between two groups of launches
MODE_GAP = 3.0  #: relative to the widest gap within the groups
LEAST_IN_MODE = 3  #: launches
MOST_NODES = 4  #: whose names are shown
SHORT = timedelta(hours=12)  #: launches within less time say nothing about differences between days


class MarkKind(Enum):
    """The kinds of marks, in the order in which they are reported."""

    ABSORBS = auto()
    DISTURBED = auto()
    ONE_DAY = auto()
    FEW_SESSIONS = auto()
    OTHER_WORK = auto()
    BLIND = auto()
    OTHER_METHOD = auto()
    SHELL = auto()
    ONE_NODE_SET = auto()
    ONE_LAUNCH = auto()
    BY_HAND = auto()
    PROVISIONAL = auto()

    @property
    def of_one(self) -> bool:
        """Whether the mark is about its case alone, not about how the calibration was done."""
        return self in (MarkKind.ABSORBS, MarkKind.DISTURBED)


@dataclass(frozen=True)
class Mark:
    """A mark on a proposed reference that people should see before they take it, with its text."""

    kind: MarkKind
    text: str


def find_disturbances(sample: CaseSample) -> list[Mark]:
    """Find launches far from all others, two groups with a gap between them, and launches beside other work."""
    marks = []
    values, middle = sample.values, statistics.median(sample.values)
    pairs = zip(values, sample.launches, strict=True)
    times = [(compute_slowdown(value, middle, sample.unit), launch) for value, launch in pairs]
    odd = [pair for pair in times if abs(math.log(pair[0])) >= math.log(ODD_FACTOR)]
    if odd and len(values) > 2:
        factor, launch = max(odd, key=lambda pair: abs(math.log(pair[0])))
        how = f"{factor:.3g} times as slow" if factor > 1 else f"{1 / factor:.3g} times as fast"
        text = (
            f"disturbed: {len(odd)} of {len(values)} launches are far off; one is {how} as the median "
            f"({launch.session} on {','.join(launch.hosts)})"
        )
        marks.append(Mark(MarkKind.DISTURBED, text))
    elif gap := compute_mode_gap(values):
        text = f"disturbed: two groups of launches, {gap:.3g} times apart"
        marks.append(Mark(MarkKind.DISTURBED, text))
    return marks + check_other_load(sample)


def check_other_load(sample: CaseSample) -> list[Mark]:
    """Return the mark of a sample during which others used the machine, if they did."""
    shares = [share for launch in sample.launches if (share := launch.others or 0.0) > BUSY_SHARE]
    if not shares:
        return []
    text = (
        f"beside other work, which kept up to {max(shares):.0%} of the machine busy: "
        f"{len(shares)} of {len(sample.launches)} launches are disturbed"
    )
    return [Mark(MarkKind.OTHER_WORK, text)]


def compute_mode_gap(values: Sequence[float]) -> float:
    """Compute the factor between two groups of values with a gap between them; 0 if there is no such gap.

    Each group has at least three values. The gap is at least a fifth, and three times as wide as any gap within
    the groups.
    """
    logs = sorted(map(math.log, values))
    gaps = [above - below for below, above in pairwise(logs)]
    inner = gaps[LEAST_IN_MODE - 1 : len(gaps) - LEAST_IN_MODE + 1]
    if not inner:
        return 0.0
    widest = max(inner)
    others = [gap for gap in gaps if gap != widest]
    apart = widest >= math.log(MODE_FACTOR) and widest >= MODE_GAP * max(others, default=0.0)
    return math.exp(widest) if apart else 0.0


def check_one_day(sample: CaseSample) -> list[Mark]:
    """Return the mark of launches that are all from one day, if they are."""
    minutes = count_minutes_together([launch.ended_utc for launch in sample.launches])
    text = f"all {len(sample.launches)} launches within {minutes} min: differences between days are not in it"
    return [Mark(MarkKind.ONE_DAY, text)] if minutes else []


def check_few_sessions(reference: Reference) -> list[Mark]:
    """Return the mark of a reference with too few sessions to show how they differ, if it is one."""
    if reference.sessions >= ENOUGH_SESSIONS:
        return []
    spread = f"the spread between sessions, {estimate_session_spread(reference):.1%}"
    text = f"{reference.sessions} of {ENOUGH_SESSIONS} sessions: {spread}, is mostly that of other machines"
    return [Mark(MarkKind.FEW_SESSIONS, text)]


def check_one_node_set(sample: CaseSample) -> list[Mark]:
    """Return the mark of launches that all ran on the same nodes, if they did."""
    same = find_common_nodes([launch.hosts for launch in sample.launches])
    number = len(sample.launches)
    text = f"nodes: one node set in all {number} launches ({first_of(same, MOST_NODES)})"
    return [Mark(MarkKind.ONE_NODE_SET, f"{text}: differences between nodes are not in it")] if same else []


def find_common_nodes(hosts: Sequence[Sequence[str]], nodes: int = 0) -> Sequence[str]:
    """Find the nodes that all launches ran on; empty if they differ or had no choice.

    :param nodes: nodes of the partition; if 0 for unknown, many launches on several nodes are reported
    """
    sets = {tuple(sorted(names)) for names in hosts}
    if len(hosts) < 2 or len(sets) != 1:
        return ()
    (same,) = sets
    others = len(same) < nodes if nodes else len(same) > 1 and len(hosts) >= ENOUGH_LAUNCHES
    return same if others else ()


def count_minutes_together(moments: Sequence[str]) -> int:
    """Count the minutes between the ends of launches if all are from one day; else return 0."""
    parsed = [parse_utc(moment) for moment in moments]
    if len(parsed) < 2 or (lasted := max(parsed) - min(parsed)) >= SHORT:
        return 0
    return max(round(lasted.total_seconds() / 60), 1)
