"""What a night says of its nodes: which were late, and whose set-up changed or differs.

A governor, a boost that is off, a link at a lower rate or another firmware explain a slow night. ``mpicost``
and the witness read them on every node that a launch runs on.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from postprocess.base.formats import duration, first_of, format_percent
from postprocess.base.grouping import group_pairs
from postprocess.base.records import recall, remember
from postprocess.base.sanitize import sanitize_line
from postprocess.judging import lateness
from postprocess.model.launch import FinishedLaunch
from postprocess.model.measurement import Interruption
from postprocess.stats.launches import find_period, find_timer

FACTS_FILE = "node_facts.json"  #: in a work directory
MOST_NODES = 4  #: of nodes in a line
MOST_FACTS = 10  #: of each kind
LEAST_NODES = 3  #: of which most must be alike before one can differ from them
MOST_ALIKE = 2 / 3  #: the share of nodes from which on the others differ
ABSENT = "not reported"
INSIDE = " in "  #: between a node and the container that saw it
#: What the suite tells of a device whose port is up; RoCE, which any Ethernet card may have, is none
FABRIC = re.compile(r", port 1 4: ACTIVE, link InfiniBand\b")

Facts = Mapping[str, Mapping[str, str]]  #: value by name, by node


@dataclass(frozen=True)
class KnownNodes:
    """How each node was set up when it was last measured, and when that was: beside containers and in each."""

    schema: int = 2
    #: by ``system:node``, or ``system:node in ENVIRONMENT`` of what a container's launches told
    facts: dict[str, dict[str, str]] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)  #: UTC, likewise


def collect_node_facts(finished: Sequence[FinishedLaunch]) -> dict[str, dict[str, dict[str, str]]]:
    """Collect the facts of all nodes that launches ran on, by partition (``system:partition``) and node."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    add_node_facts(found, finished)
    return found


def add_node_facts(known: dict[str, dict[str, dict[str, str]]], finished: Sequence[FinishedLaunch]) -> None:
    """Add the facts of all nodes that launches ran on to those that are known.

    A launch in a container may see fewer facts of its node than one beside it: what any of them saw counts.
    """
    for run in finished:
        nodes = known.setdefault(run.launch.partition, {})
        nodes |= {node: nodes.get(node, {}) | facts for node, facts in run.node_facts.items()}


def list_fabrics(nodes: Facts) -> list[str]:
    """List the InfiniBand and Omni-Path devices with a port that is up on every node."""
    active = [{name for name, told in facts.items() if FABRIC.search(told)} for facts in nodes.values()]
    return sorted(set.intersection(*active)) if active else []


def describe_node_facts(work: Path, finished: Sequence[FinishedLaunch], now: str) -> list[str]:
    """Describe what changed and what differs in lines, and remember how the nodes are set up now.

    :param now: when the session began, in UTC
    """
    told = collect_node_facts(finished)
    known = recall(work / FACTS_FILE, KnownNodes)
    views = group_pairs(((run.launch.environment if run.launch.in_container else ""), run) for run in finished)
    tonight = {
        name_node(partition, node, view): facts
        for view, runs in views.items()
        for partition, nodes in collect_node_facts(runs).items()
        for node, facts in nodes.items()
    }
    changes = [*describe_changes(known, tonight)]
    odd = [
        line
        for partition, nodes in sorted(told.items())
        for line in describe_odd_nodes(nodes, [n for n in nodes if name_node(partition, n) not in tonight])
    ]
    if tonight:
        seen = known.seen | dict.fromkeys(tonight, now)
        remember(work / FACTS_FILE, KnownNodes(facts=known.facts | tonight, seen=seen))
    return [*shorten(changes), *shorten(odd)]


def name_node(partition: str, node: str, container: str = "") -> str:
    """Name a node by its site's system, which all partitions of the site share, and who saw it."""
    name = f"{partition.partition(':')[0]}:{node}"
    return f"{name}{INSIDE}{container}" if container else name


def describe_changes(known: KnownNodes, tonight: Facts) -> Iterator[str]:
    """Describe the facts that nodes had otherwise when they were last measured, equal changes in one line.

    A container may hide facts. Where a node has launches beside containers, these tell; else each container is
    compared with its own last night, and what it does not tell may be there.

    :param tonight: by names as in :class:`KnownNodes`
    """
    changed: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for view, here in sorted(tonight.items()):
        node, _, container = view.partition(INSIDE)
        if (container and node in tonight) or (last := _find_last(known, node, view)) is None:
            continue
        then, since = known.facts[last], known.seen[last]
        others = [known.facts[each] for each in _list_views(known, node) if known.seen[each] > since]
        for name in sorted(then.keys() | here.keys()):
            before, now = then.get(name, ABSENT), here.get(name, ABSENT)
            hidden = (now == ABSENT and container) or (before == ABSENT and last not in (view, node))
            told = any(facts.get(name) == now for facts in others)
            if before != now and not hidden and not told:
                changed[name, before, now][node] = since
    for (name, before, now), dates in changed.items():
        names = first_of([node.partition(":")[2] for node in dates], MOST_NODES)
        yield sanitize_line(f"{name} of {names} is {now}, and was {before} on {max(dates.values())[:10]}")


def _list_views(known: KnownNodes, node: str) -> list[str]:
    return [view for view in known.facts if view.partition(INSIDE)[0] == node]


def _find_last(known: KnownNodes, node: str, view: str) -> str | None:
    """Find what tonight's view of a node is compared with: the same view, else the last one of others."""
    if view in known.facts:
        return view
    return max(_list_views(known, node), key=lambda each: (known.seen[each], each == node), default=None)


def describe_odd_nodes(nodes: Facts, inside: Collection[str] = ()) -> Iterator[str]:
    """Describe the nodes of a partition that differ from most others, equal differences in one line.

    :param inside: nodes that were seen from inside containers alone: what they do not tell may be there
    """
    for name in sorted({name for facts in nodes.values() for name in facts}):
        values = {
            node: facts.get(name, ABSENT)
            for node, facts in nodes.items()
            if name in facts or node not in inside
        }
        usual, count = Counter(values.values()).most_common(1)[0]
        if len(values) < LEAST_NODES or not MOST_ALIKE * len(values) <= count < len(values):
            continue
        for value in sorted(set(values.values()) - {usual}):
            names = first_of(sorted(node for node in values if values[node] == value), MOST_NODES)
            yield sanitize_line(f"{name} of {names} is {value}; most other nodes have {usual}")


def shorten(lines: Sequence[str]) -> list[str]:
    """Leave out what is beyond the most lines that one reads, and say so."""
    left = len(lines) - MOST_FACTS
    more = [f"and {left} more such facts in {FACTS_FILE}"] if left > 0 else []
    return [*lines[:MOST_FACTS], *more]


LATE_FILE = "late_nodes.json"  #: in a work directory
MOST_REMEMBERED = 400  #: launches of a partition, of each kind
MOST_NAMES = 16  #: places that are remembered by name; of more it is not told who took part
MOST_LATE = 5  #: of a partition
SHORT = (0.001, 0.02)  #: periods that a probe of 40 ms shows, in seconds
MOST_APART = 2.0  #: factor between a share of the time and length over period
LEAST_LONG = 0.1  #: shortest period that the waits between the cases of a launch show, in seconds


@dataclass(frozen=True)
class KnownLaunches:
    """Who was hit in earlier launches."""

    schema: int = 1
    launches: dict[str, list[lateness.Watch]] = field(default_factory=dict)  #: by ``system:partition``


def describe_late_nodes(work: Path, finished: Sequence[FinishedLaunch]) -> list[str]:
    """Describe who was late in the launches of a night, each in one line, and remember them."""
    known = recall(work / LATE_FILE, KnownLaunches)
    partitions: dict[str, list[FinishedLaunch]] = defaultdict(list)
    for run in finished:
        if run.lateness is not None:
            partitions[run.launch.partition].append(run)
    lines: list[str] = []
    remembered = dict(known.launches)
    for partition, runs in sorted(partitions.items()):
        tonight = [watch for run in runs for watch in lateness.watch_launch(run)]
        earlier = known.launches.get(partition, [])
        late = lateness.find_late_places(tonight, earlier)
        told = [describe_late_place(place, runs, [*earlier, *tonight]) for place in late]
        more = [f"and {len(told) - MOST_LATE} more places are late"] if len(told) > MOST_LATE else []
        lines += [*told[:MOST_LATE], *more]
        remembered[partition] = cut_memory([*earlier, *(each for each in tonight if not each.exact)])
    if remembered != known.launches:
        remember(work / LATE_FILE, KnownLaunches(launches=remembered))
    return lines


def cut_memory(watches: Sequence[lateness.Watch]) -> list[lateness.Watch]:
    """Cut what is remembered to the last launches, and to the names of few places."""
    kept = [
        watch for kind in lateness.KINDS for watch in [w for w in watches if w.kind == kind][-MOST_REMEMBERED:]
    ]
    return [replace(watch, names=watch.names if watch.count <= MOST_NAMES else ()) for watch in kept]


def describe_late_place(
    late: lateness.LatePlace, runs: Sequence[FinishedLaunch], watches: Sequence[lateness.Watch]
) -> str:
    """Describe one place in one line: what, how often, how much, its period, and the part of chance."""
    where = f"{late.place} (rank {late.rank}, CPU {late.cpus})" if late.cpus else late.place
    when = " of this night and earlier ones" if late.earlier else ""
    often = f"in {late.hits} of {late.launches} launches{when}"
    return sanitize_line(
        f"{where} is late: {often} {_describe_kind(late)}{_describe_period(late, runs, watches)}"
        f"{_describe_chance(late)}"
    )


def _describe_kind(late: lateness.LatePlace) -> str:
    value, usual = format_percent(late.value), format_percent(late.usual)
    if late.kind == lateness.WAITED:
        return f"its rank waited for the processor for {value} of the time, the others for {usual}"
    if late.kind == lateness.LOST:
        return f"something took {value} of the time from its rank, {usual} from the others"
    if late.kind == lateness.SLOW:
        return f"it computes {late.value / late.usual:.2f} times as long as most other nodes"
    return f"its messages take {late.value:.2f} times as long as those of most other nodes"


def _describe_chance(late: lateness.LatePlace) -> str:
    if late.chance <= 0:
        return ""
    against = "itself in earlier nights" if late.itself else "chance among the places"
    shown = f"{late.chance:.1g}" if late.chance >= 1e-9 else "less than 1e-9"
    return f" (against {against}: {shown})"


def _describe_period(
    late: lateness.LatePlace, runs: Sequence[FinishedLaunch], watches: Sequence[lateness.Watch]
) -> str:
    if late.kind not in (lateness.WAITED, lateness.LOST):
        return ""
    detours, holds = collect_trains(late, runs)
    period = find_period(detours, *SHORT)
    if period is not None and _accounts_for(period, _find_length(detours), late.value):
        return f", {_find_length(detours) * 1e3:.2g} ms every {period * 1e3:.3g} ms"
    longest = min((train[-1][0] - train[0][0] for train in holds if len(train) > 1), default=0.0) / 2
    period = find_period(holds, LEAST_LONG, longest) if longest > LEAST_LONG else None
    if period is not None:
        return f", every {duration(period)}"
    own = [watch for watch in watches if watch.kind == late.kind]
    hits = [watch.hits[late.place].at for watch in own if late.place in watch.hits]
    others = [watch.when for watch in own if late.place not in watch.hits]
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
    late: lateness.LatePlace, runs: Sequence[FinishedLaunch]
) -> tuple[list[tuple[Interruption, ...]], list[tuple[Interruption, ...]]]:
    """Collect what interrupted the late rank: in the probes, and between the cases; a train for each launch."""
    detours, holds = [], []
    for run in runs:
        hit = next(
            (
                w.hits[late.place]
                for w in lateness.watch_launch(run)
                if w.kind == late.kind and late.place in w.hits
            ),
            None,
        )
        if hit is None or run.lateness is None:
            continue
        rank = run.lateness.ranks[hit.rank]
        detours.append(rank.detours)
        holds.append(rank.holds)
    return [train for train in detours if train], [train for train in holds if train]
