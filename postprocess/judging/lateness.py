"""Find who was held up in a launch more than the others: the hits, of which many launches tell what is chance.

A launch has places: its nodes, or where these are fewer than three the CPUs of its ranks. Of each kind
of lateness a place has a value; it is hit if that is far above the others'. What chance makes of them:
``late_places.py``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median, median_low

from postprocess.base.formats import parse_utc
from postprocess.model.lateness import Lateness, RankLateness
from postprocess.model.launch import FinishedLaunch

WAITED = "waited"  #: share of the launch in which a rank was ready to run and another ran
LOST = "lost"  #: share of the probe that something took from a rank
SLOW = "slow"  #: seconds of equal work
FAR = "far"  #: round trips, over those that are usual in the launch
KINDS = (WAITED, LOST, SLOW, FAR)
LEAST_NODES = 3  #: of which one can differ from the others; of fewer the CPUs are compared
LEAST_SHARE = 0.01  #: by which the share of a node must exceed what is usual
#: The same of a CPU: the first one of a node has the launcher, and more interrupts than the others
LEAST_SHARE_OF_CPU = 0.05
LEAST_WATCHED = 0.5  #: seconds; in a shorter launch its own start is much of what a rank waits for
LEAST_TIMES = {WAITED: 2.0, LOST: 2.0, SLOW: 1.1, FAR: 1.5}  #: what is usual
MOST_HIT = 4  #: one of so many places; where more are hit none stands out


@dataclass(frozen=True)
class Hit:
    """A place that stood out in a launch."""

    value: float  #: of its kind
    usual: float  #: of the places of the launch: the lower median
    at: float  #: seconds since 1970 (UTC): of the longest wait, else of the launch
    rank: int
    cpus: str  #: that the rank may run on; empty if unknown, named by the place, or of a whole node


@dataclass(frozen=True)
class Watch:
    """One launch, watched for one kind of lateness."""

    kind: str
    when: float  #: seconds since 1970 (UTC)
    exact: bool  #: of simulated time, which has no chance
    count: int  #: of places
    names: tuple[str, ...]  #: of them; empty if they are many and it is long ago
    hits: dict[str, Hit]  #: by place


@dataclass(frozen=True)
class _Value:
    value: float
    rank: int
    at: float | None = None


def watch_launch(run: FinishedLaunch) -> Iterator[Watch]:
    """Find who stood out in a launch, of each kind that it tells."""
    told = run.lateness
    if told is None:
        return
    record = run.run
    places, cpus = _name_places(record["ranks"], len(record["hosts"]))
    nodes = len(record["hosts"]) >= LEAST_NODES
    when = parse_utc(record["date_utc"]).timestamp()
    values = {
        WAITED: _find_worst(places, told.ranks, lambda rank: _compute_wait(rank, told)),
        LOST: _find_worst(places, told.ranks, lambda rank: rank.lost / rank.span),
    }
    if nodes and " + " not in record["cpu_model"]:
        values[SLOW] = _find_slow(places, told.ranks)
    if nodes:
        values[FAR] = _find_far([host["name"] for host in record["hosts"]], places, told.reach)
    for kind, found in values.items():
        if len(found) > 1:
            least = LEAST_SHARE if nodes else LEAST_SHARE_OF_CPU
            of_rank = nodes and kind in (WAITED, LOST)
            hits = _find_hits(kind, found, when, cpus if of_rank else [""] * len(cpus), least)
            yield Watch(kind, when, run.launch.exact, len(found), tuple(sorted(found)), hits)


def _name_places(ranks: Iterable[Mapping[str, str]], hosts: int) -> tuple[list[str], list[str]]:
    """Name the place of each rank, and the CPUs that it may run on."""
    cpus = [each.get("cpus", "") for each in ranks]
    if hosts >= LEAST_NODES:
        return [each["host"] for each in ranks], cpus
    return [f"CPU {own or 'unknown'} of {each['host']}" for each, own in zip(ranks, cpus, strict=True)], cpus


def _compute_wait(rank: RankLateness, told: Lateness) -> float | None:
    return None if rank.waited is None or told.watched < LEAST_WATCHED else rank.waited / told.watched


def _find_worst(
    places: list[str], ranks: Iterable[RankLateness], measure: Callable[[RankLateness], float | None]
) -> dict[str, _Value]:
    """Find the largest value of the ranks of each place; a launch of which one rank tells nothing has none."""
    found: dict[str, _Value] = {}
    for number, (place, rank) in enumerate(zip(places, ranks, strict=False)):
        value = measure(rank)
        if value is None:
            return {}
        if place not in found or value > found[place].value:
            at = max(rank.holds, key=lambda hold: hold[1])[0] if rank.holds else None
            found[place] = _Value(value, number, at)
    return found


def _find_slow(places: list[str], ranks: Iterable[RankLateness]) -> dict[str, _Value]:
    """Find the time of equal work of each place, the median of its ranks."""
    quanta: dict[str, list[float]] = defaultdict(list)
    for place, rank in zip(places, ranks, strict=False):
        quanta[place].append(rank.quantum)
    return {place: _Value(median(each), places.index(place)) for place, each in quanta.items()}


def _find_far(hosts: list[str], places: list[str], reach: Iterable[tuple[float, float]]) -> dict[str, _Value]:
    """Find the round trips of each host over those usual, of the size of which they are longest."""
    trips = [*reach]
    if not trips:
        return {}
    usual = [median_low(sizes) for sizes in zip(*trips, strict=True)]
    values = (max(trip / most for trip, most in zip(each, usual, strict=True)) for each in trips)
    return {host: _Value(value, places.index(host)) for host, value in zip(hosts, values, strict=True)}


def _find_hits(
    kind: str, found: Mapping[str, _Value], when: float, cpus: list[str], share: float
) -> dict[str, Hit]:
    """Find the places far above what is usual; none if they are more than a few."""
    usual = median_low(each.value for each in found.values())
    least = LEAST_TIMES[kind] * usual
    if kind in (WAITED, LOST):
        least = max(least, usual + share)
    hit = {place: each for place, each in found.items() if each.value >= least}
    if len(hit) > max(1, len(found) // MOST_HIT):
        return {}
    return {
        place: Hit(each.value, usual, each.at if each.at is not None else when, each.rank, cpus[each.rank])
        for place, each in hit.items()
    }
