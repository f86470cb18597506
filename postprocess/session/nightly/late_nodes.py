"""Say which node or CPU was late in the launches of a night, and remember that for the nights to come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from postprocess.base.documents.memory import recall, remember
from postprocess.base.formats import duration, format_percent
from postprocess.base.sanitize import sanitize_line
from postprocess.judging.late_places import LatePlace, find_late_places
from postprocess.judging.lateness import KINDS, LOST, SLOW, WAITED, Watch, watch_launch
from postprocess.model.lateness import Interruption
from postprocess.model.launch import FinishedLaunch
from postprocess.stats.period import find_period, find_timer

FILE = "late_nodes.json"  #: in a work directory
MOST_REMEMBERED = 400  #: launches of a partition, of each kind
MOST_NAMES = 16  #: places that are remembered by name; of more it is not told who took part
MOST_LINES = 5  #: of a partition
SHORT = (0.001, 0.02)  #: periods that a probe of 40 ms shows, in seconds
MOST_APART = 2.0  #: factor between a share of the time and length over period
LEAST_LONG = 0.1  #: shortest period that the waits between the cases of a launch show, in seconds


@dataclass(frozen=True)
class KnownLaunches:
    """Who was hit in earlier launches."""

    schema: int = 1
    launches: dict[str, list[Watch]] = field(default_factory=dict)  #: by ``system:partition``


def describe_late_nodes(work: Path, finished: Sequence[FinishedLaunch]) -> list[str]:
    """Describe who was late in the launches of a night, each in one line, and remember them.

    :param work: the work directory
    """
    known = recall(work / FILE, KnownLaunches)
    partitions: dict[str, list[FinishedLaunch]] = defaultdict(list)
    for run in finished:
        if run.lateness is not None:
            partitions[run.launch.partition].append(run)
    lines: list[str] = []
    remembered = dict(known.launches)
    for partition, runs in sorted(partitions.items()):
        tonight = [watch for run in runs for watch in watch_launch(run)]
        earlier = known.launches.get(partition, [])
        late = find_late_places(tonight, earlier)
        told = [describe_late_place(each, runs, [*earlier, *tonight]) for each in late]
        more = [f"and {len(told) - MOST_LINES} more places are late"] if len(told) > MOST_LINES else []
        lines += [*told[:MOST_LINES], *more]
        remembered[partition] = cut_memory([*earlier, *(each for each in tonight if not each.exact)])
    if remembered != known.launches:
        remember(work / FILE, KnownLaunches(launches=remembered))
    return lines


def cut_memory(watches: Sequence[Watch]) -> list[Watch]:
    """Cut what is remembered to the last launches, and to the names of few places."""
    kept = [each for kind in KINDS for each in [w for w in watches if w.kind == kind][-MOST_REMEMBERED:]]
    return [replace(each, names=each.names if each.count <= MOST_NAMES else ()) for each in kept]


def describe_late_place(late: LatePlace, runs: Sequence[FinishedLaunch], watches: Sequence[Watch]) -> str:
    """Describe one place in one line: what, how often, how much, its period, and the part of chance."""
    where = f"{late.place} (rank {late.rank}, CPU {late.cpus})" if late.cpus else late.place
    when = " of this night and earlier ones" if late.earlier else ""
    often = f"in {late.hits} of {late.launches} launches{when}"
    return sanitize_line(
        f"{where} is late: {often} {_describe_kind(late)}{_describe_period(late, runs, watches)}"
        f"{_describe_chance(late)}"
    )


def _describe_kind(late: LatePlace) -> str:
    value, usual = format_percent(late.value), format_percent(late.usual)
    if late.kind == WAITED:
        return f"its rank waited for the processor for {value} of the time, the others for {usual}"
    if late.kind == LOST:
        return f"something took {value} of the time from its rank, {usual} from the others"
    if late.kind == SLOW:
        return f"it computes {late.value / late.usual:.2f} times as long as most other nodes"
    return f"its messages take {late.value:.2f} times as long as those of most other nodes"


def _describe_chance(late: LatePlace) -> str:
    if late.chance <= 0:
        return ""
    against = "itself in earlier nights" if late.itself else "chance among the places"
    shown = f"{late.chance:.1g}" if late.chance >= 1e-9 else "less than 1e-9"
    return f" (against {against}: {shown})"


def _describe_period(late: LatePlace, runs: Sequence[FinishedLaunch], watches: Sequence[Watch]) -> str:
    if late.kind not in (WAITED, LOST):
        return ""
    detours, holds = collect_trains(late, runs)
    period = find_period(detours, *SHORT)
    if period is not None and _accounts_for(period, _find_length(detours), late.value):
        return f", {_find_length(detours) * 1e3:.2g} ms every {period * 1e3:.3g} ms"
    longest = min((train[-1][0] - train[0][0] for train in holds if len(train) > 1), default=0.0) / 2
    period = find_period(holds, LEAST_LONG, longest) if longest > LEAST_LONG else None
    if period is not None:
        return f", every {duration(period)}"
    own = [each for each in watches if each.kind == late.kind]
    hits = [each.hits[late.place].at for each in own if late.place in each.hits]
    others = [each.when for each in own if late.place not in each.hits]
    timer = find_timer(hits, [*hits, *others])
    return f", every {duration(timer)} by the clock" if timer is not None else ""


def _accounts_for(period: float, length: float, share: float) -> bool:
    """Return whether interruptions of this period and length take about this share of the time."""
    return share / MOST_APART <= length / period <= share * MOST_APART


def _find_length(trains: Sequence[Sequence[Interruption]]) -> float:
    """Find how long an interruption takes: the median of those that are half as long as the longest or more."""
    long = [took for train in trains for _, took in train if 2 * took >= max(each[1] for each in train)]
    return median(long)


def collect_trains(
    late: LatePlace, runs: Sequence[FinishedLaunch]
) -> tuple[list[tuple[Interruption, ...]], list[tuple[Interruption, ...]]]:
    """Collect what interrupted the late rank: in the probes, and between the cases; a train for each launch."""
    detours, holds = [], []
    for run in runs:
        hit = next(
            (w.hits[late.place] for w in watch_launch(run) if w.kind == late.kind and late.place in w.hits),
            None,
        )
        if hit is None or run.lateness is None:
            continue
        rank = run.lateness.ranks[hit.rank]
        detours.append(rank.detours)
        holds.append(rank.holds)
    return [train for train in detours if train], [train for train in holds if train]
