"""Find launches of a calibration that do not look like those of a healthy machine, and describe them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from itertools import pairwise

from postprocess.base.formats import first_of, parse_utc
from postprocess.base.units import compute_slowdown
from postprocess.calibration.machine_load import BUSY_SHARE
from postprocess.calibration.samples import CaseSample
from postprocess.model.reference import ENOUGH_LAUNCHES, ENOUGH_SESSIONS, Reference
from postprocess.stats.sessions import estimate_session_spread

ODD_FACTOR = 3.0  #: of the median launch, beyond which one is not of the same machine
MODE_FACTOR = 1.2  #: between two groups of launches, at least
MODE_GAP = 3.0  #: times the widest gap within the groups
LEAST_IN_MODE = 3  #: launches
MOST_NODES = 4  #: that are named
SHORT = timedelta(hours=12)  #: launches within less say nothing about differences between days


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
        """Whether it is about its case alone, and not about how the calibration was done."""
        return self in (MarkKind.ABSORBS, MarkKind.DISTURBED)


@dataclass(frozen=True)
class Mark:
    """A mark on a proposed reference, which a person should know before taking it; the text is for people."""

    kind: MarkKind
    text: str


def find_disturbances(sample: CaseSample) -> list[Mark]:
    """Find launches far from all others, two groups with a gap between, and launches beside other work."""
    found = []
    values, middle = sample.values, statistics.median(sample.values)
    pairs = zip(values, sample.launches, strict=True)
    times = [(compute_slowdown(value, middle, sample.unit), launch) for value, launch in pairs]
    odd = [pair for pair in times if abs(math.log(pair[0])) >= math.log(ODD_FACTOR)]
    if odd and len(values) > 2:
        factor, launch = max(odd, key=lambda pair: abs(math.log(pair[0])))
        how = f"{factor:.3g} times as slow" if factor > 1 else f"{1 / factor:.3g} times as fast"
        told = (
            f"disturbed: {len(odd)} of {len(values)} launches are far off; one is {how} as the median "
            f"({launch.session} on {','.join(launch.hosts)})"
        )
        found.append(Mark(MarkKind.DISTURBED, told))
    elif gap := compute_mode_gap(values):
        told = f"disturbed: two groups of launches, {gap:.3g} times apart"
        found.append(Mark(MarkKind.DISTURBED, told))
    return found + check_other_load(sample)


def check_other_load(sample: CaseSample) -> list[Mark]:
    """Return the mark of a sample during which others used the machine, if they did."""
    shares = [share for each in sample.launches if (share := each.others or 0.0) > BUSY_SHARE]
    if not shares:
        return []
    told = (
        f"beside other work, which kept up to {max(shares):.0%} of the machine busy: "
        f"{len(shares)} of {len(sample.launches)} launches are disturbed"
    )
    return [Mark(MarkKind.OTHER_WORK, told)]


def compute_mode_gap(values: Sequence[float]) -> float:
    """Compute the factor between two groups of values with a gap between them; 0 if there is no such gap.

    Each has three values at least, a gap of a fifth parts them, and no gap within them is a third as wide.
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
    """Return the mark of launches that are all of one day, if they are."""
    minutes = count_minutes_together([each.ended_utc for each in sample.launches])
    told = f"all {len(sample.launches)} launches within {minutes} min: differences between days are not in it"
    return [Mark(MarkKind.ONE_DAY, told)] if minutes else []


def check_few_sessions(reference: Reference) -> list[Mark]:
    """Return the mark of a reference whose sessions are too few to tell how they differ, if they are."""
    if reference.sessions >= ENOUGH_SESSIONS:
        return []
    spread = f"the spread between sessions, {estimate_session_spread(reference):.1%}"
    told = f"{reference.sessions} of {ENOUGH_SESSIONS} sessions: {spread}, is mostly that of other machines"
    return [Mark(MarkKind.FEW_SESSIONS, told)]


def check_one_node_set(sample: CaseSample) -> list[Mark]:
    """Return the mark of launches that all ran on the same nodes, if they did."""
    same = find_common_nodes([each.hosts for each in sample.launches])
    number = len(sample.launches)
    told = f"nodes: one node set in all {number} launches ({first_of(same, MOST_NODES)})"
    return (
        [Mark(MarkKind.ONE_NODE_SET, f"{told}: differences between nodes are not in it")]
        if same
        else []
    )


def find_common_nodes(hosts: Sequence[Sequence[str]], nodes: int = 0) -> Sequence[str]:
    """Find the nodes that all of several launches ran on; none if they differ or had no choice.

    :param nodes: of the partition; 0 if that is not known: then many launches on several nodes are told
    """
    sets = {tuple(sorted(each)) for each in hosts}
    if len(hosts) < 2 or len(sets) != 1:
        return ()
    (same,) = sets
    others = len(same) < nodes if nodes else len(same) > 1 and len(hosts) >= ENOUGH_LAUNCHES
    return same if others else ()


def count_minutes_together(moments: Sequence[str]) -> int:
    """Count the minutes between the ends of several launches, if all are of one day; else return 0."""
    parsed = [parse_utc(each) for each in moments]
    if len(parsed) < 2 or (lasted := max(parsed) - min(parsed)) >= SHORT:
        return 0
    return max(round(lasted.total_seconds() / 60), 1)
