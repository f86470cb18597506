"""Find who was held up in a launch, and which places are late more often than chance allows.

The places of a launch are its nodes or, with fewer than three nodes, the CPUs of its ranks. A place has a value
for each kind of lateness; it is hit if its value is far above the others'.

In a launch with h hits among n places, each place is hit with probability h / n if all are alike. How often a
place was hit is compared with that, and with its own earlier nights. The launches of a night are not
independent: what holds a node up for minutes hits several in a row. So a place is named only if it was hit in
most launches, or repeatedly with unhit launches between; then each period counts once. In the first case, as
many launches count once as the longest hold-up of any other place lasted, and at least two if places are few.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median, median_low

from postprocess.base.formats import natural_sort_key, parse_utc
from postprocess.model.launch import FinishedLaunch
from postprocess.model.measurement import Lateness, RankLateness
from postprocess.stats.detection import compare_shares, compute_tail

WAITED = "waited"  #: share of the launch in which a rank was ready to run while another ran
LOST = "lost"  #: share of the probe that something took from a rank
SLOW = "slow"  #: seconds for equal work
FAR = "far"  #: round trips, relative to the usual ones of the launch
KINDS = (WAITED, LOST, SLOW, FAR)
LEAST_NODES = 3  #: the fewest among which one can stand out; with fewer, CPUs are compared
LEAST_SHARE = 0.01  #: least difference between the share of a late node and the usual one
#: The same for a CPU: the first one of a node has the launcher, and more interrupts than the others
LEAST_SHARE_OF_CPU = 0.05
LEAST_WATCHED = 0.5  #: seconds; in a shorter launch, its own start is much of what a rank waits for
LEAST_RATIOS = {WAITED: 2.0, LOST: 2.0, SLOW: 1.1, FAR: 1.5}  #: least ratios to the usual value
ACROSS = 2.0  #: links between two switches, relative to those below one
MOST_HIT = 4  #: one in this many places; if more are hit, none stands out


@dataclass(frozen=True)
class Hit:
    """A place that stood out in a launch."""

    value: float  #: in the unit of its kind
    usual: float  #: the lower median of the places of the launch
    at: float  #: seconds since 1970 (UTC): of the longest wait, or of the launch
    rank: int
    #: CPUs on which the rank may run; empty if unknown, part of the place's name, or those of a whole node
    cpus: str


@dataclass(frozen=True)
class Watch:
    """One launch, watched for one kind of lateness."""

    kind: str
    when: float  #: seconds since 1970 (UTC)
    exact: bool  #: whether time is simulated, which leaves nothing to chance
    count: int  #: number of places
    names: tuple[str, ...]  #: names of the places; empty if they are many and it is long ago
    hits: dict[str, Hit]  #: by place


@dataclass(frozen=True)
class _Value:
    value: float
    rank: int
    at: float | None = None


def watch_launch(run: FinishedLaunch) -> Iterator[Watch]:
    """Find who stood out in a launch, for each kind of lateness that it recorded."""
    lateness = run.lateness
    if lateness is None:
        return
    record = run.run
    places, cpus = _name_places(record["ranks"], len(record["hosts"]))
    nodes = len(record["hosts"]) >= LEAST_NODES
    when = parse_utc(record["date_utc"]).timestamp()
    values = {
        WAITED: _find_worst(places, lateness.ranks, lambda rank: _compute_wait(rank, lateness)),
        LOST: _find_worst(places, lateness.ranks, lambda rank: rank.lost / rank.span),
    }
    if nodes and " + " not in record["cpu_model"]:
        values[SLOW] = _find_slow(places, lateness.ranks)
    if nodes:
        hosts = [host["name"] for host in record["hosts"]]
        values[FAR] = _find_far(hosts, places, lateness, run.launch.nodes_per_switch)
    for kind, by_place in values.items():
        if len(by_place) > 1:
            least = LEAST_SHARE if nodes else LEAST_SHARE_OF_CPU
            of_rank = nodes and kind in (WAITED, LOST)
            hits = _find_hits(kind, by_place, when, cpus if of_rank else [""] * len(cpus), least)
            yield Watch(kind, when, run.launch.exact, len(by_place), tuple(sorted(by_place)), hits)


def _name_places(ranks: Iterable[Mapping[str, str]], hosts: int) -> tuple[list[str], list[str]]:
    """Name the place of each rank, and the CPUs on which it may run."""
    cpus = [rank.get("cpus", "") for rank in ranks]
    if hosts >= LEAST_NODES:
        return [rank["host"] for rank in ranks], cpus
    return [f"CPU {cpu or 'unknown'} of {rank['host']}" for rank, cpu in zip(ranks, cpus, strict=True)], cpus


def _compute_wait(rank: RankLateness, told: Lateness) -> float | None:
    return None if rank.waited is None or told.watched < LEAST_WATCHED else rank.waited / told.watched


def _find_worst(
    places: list[str], ranks: Iterable[RankLateness], measure: Callable[[RankLateness], float | None]
) -> dict[str, _Value]:
    """Find the largest value among the ranks of each place; empty if a rank has no value."""
    worst: dict[str, _Value] = {}
    for number, (place, rank) in enumerate(zip(places, ranks, strict=False)):
        value = measure(rank)
        if value is None:
            return {}
        if place not in worst or value > worst[place].value:
            at = max(rank.holds, key=lambda hold: hold[1])[0] if rank.holds else None
            worst[place] = _Value(value, number, at)
    return worst


def _find_slow(places: list[str], ranks: Iterable[RankLateness]) -> dict[str, _Value]:
    """Find the time for equal work at each place, the median of its ranks."""
    quanta: dict[str, list[float]] = defaultdict(list)
    for place, rank in zip(places, ranks, strict=False):
        quanta[place].append(rank.quantum)
    return {place: _Value(median(seconds), places.index(place)) for place, seconds in quanta.items()}


def _find_far(hosts: list[str], places: list[str], lateness: Lateness, per_switch: int) -> dict[str, _Value]:
    """Find each host's round trips relative to the usual ones, at the size where the ratio is largest.

    A host most of whose partners are behind other switches is compared with other such hosts. If there is no
    other, its trips may take twice as long as those below a switch: they cross twice as many links.
    """
    if not lateness.reach:
        return {}
    trips = dict(zip(hosts, lateness.reach, strict=True))
    near, apart = _split_by_switches(hosts, lateness.partners, per_switch)
    usual = _find_usual([trips[host] for host in (near if len(near) >= LEAST_NODES else hosts)])
    across = [ACROSS * trip for trip in usual] if len(apart) == 1 else usual
    usual_apart = _find_usual([trips[host] for host in apart]) if len(apart) > 1 else across
    values = {}
    for host in hosts:
        expected = usual if host in near else usual_apart
        far = max(1.0, *(trip / most for trip, most in zip(trips[host], expected, strict=True)))
        values[host] = _Value(far, places.index(host))
    return values


def _split_by_switches(
    hosts: list[str], partners: Sequence[Sequence[int]], per_switch: int
) -> tuple[list[str], list[str]]:
    """List the hosts whose upper median trip ends below their own switch, and those whose does not.

    A host is in neither list if one slow partner could decide it.
    """
    if not per_switch:
        return hosts, []
    order = sorted(hosts, key=natural_sort_key)
    switches = [order.index(host) // per_switch for host in hosts]
    near, apart = [], []
    for host, switch, met in zip(hosts, switches, partners, strict=True):
        below = [partner for partner in met if switches[partner] == switch]
        if len(below) <= len(met) // 2:
            apart.append(host)
        elif len(below) - max(map(below.count, below)) > len(met) // 2:
            near.append(host)
    return near, apart


def _find_usual(trips: Iterable[tuple[float, float]]) -> list[float]:
    return [median_low(sizes) for sizes in zip(*trips, strict=True)]


def _find_hits(
    kind: str, found: Mapping[str, _Value], when: float, cpus: list[str], share: float
) -> dict[str, Hit]:
    """Find the places far above the usual value; none if they are more than a few."""
    usual = median_low(figure.value for figure in found.values())
    least = LEAST_RATIOS[kind] * usual
    if kind in (WAITED, LOST):
        least = max(least, usual + share)
    hit = {place: figure for place, figure in found.items() if figure.value >= least}
    if len(hit) > max(1, len(found) // MOST_HIT):
        return {}
    return {
        place: Hit(
            figure.value, usual, figure.at if figure.at is not None else when, figure.rank, cpus[figure.rank]
        )
        for place, figure in hit.items()
    }


LEVEL = 0.001  #: probability of naming any place in a night in which all are alike
LOOKS = 4  #: tonight, tonight with earlier nights, repeatedly, and against itself
LEAST_LAUNCHES = 3
STEADY = 0.8  #: share of the launches
LEAST_TIMES = 3  #: fewest hits that count as repeatedly
LEAST_EARLIER = 10  #: launches of earlier nights, to compare a place with itself
FEW_PLACES = 4  #: with fewer than these, at least two launches count once


@dataclass(frozen=True)
class LatePlace:
    """A place that is late, with the probability that it is so by chance."""

    place: str
    kind: str
    hits: int
    launches: int  #: watched, including the hits
    earlier: bool  #: whether some are of earlier nights
    value: float  #: median of the hits
    usual: float  #: likewise, of the other places
    rank: int  #: that of the last hit
    cpus: str
    chance: float  #: probability that any place is named like this in a night; 0 in simulated time
    itself: bool = False  #: compared with its own earlier nights, not with the others


def find_late_places(tonight: Sequence[Watch], earlier: Sequence[Watch] = ()) -> list[LatePlace]:
    """Find all late places of a night, of each kind; a place that both waited and lost is named once.

    :param tonight: all launches of one partition, of all kinds
    :param earlier: what is remembered of earlier nights there
    """
    named = []
    for kind in KINDS:
        now = sorted((watch for watch in tonight if watch.kind == kind), key=lambda watch: watch.when)
        before = sorted((watch for watch in earlier if watch.kind == kind), key=lambda watch: watch.when)
        hit = sorted({place for watch in now for place in watch.hits})
        named += [late for place in hit if (late := judge_place(place, kind, now, before)) is not None]
    waited = {late.place for late in named if late.kind == WAITED}
    return [late for late in named if late.kind != LOST or late.place not in waited]


def judge_place(place: str, kind: str, now: Sequence[Watch], before: Sequence[Watch]) -> LatePlace | None:
    """Judge one place in all ways, and return the most significant result; None if chance explains all."""
    tonight, past = ([watch for watch in watches if _has(watch, place)] for watches in (now, before))
    if all(watch.exact for watch in tonight):  # nothing there is chance
        return (
            _describe(place, kind, tonight, False, 0.0)
            if all(place in watch.hits for watch in tonight)
            else None
        )
    places = max(watch.count for watch in tonight) * LOOKS * len(KINDS)
    findings = [
        late
        for watches, chance, itself in _look(place, tonight, past)
        if (corrected := min(1.0, chance * places)) <= LEVEL
        and (late := _describe(place, kind, watches, watches is not tonight, corrected, itself))
    ]
    return min(findings, key=lambda late: late.chance, default=None)


def _has(watch: Watch, place: str) -> bool:
    return not watch.names or place in watch.names


def _look(
    place: str, own: Sequence[Watch], past: Sequence[Watch]
) -> Iterator[tuple[Sequence[Watch], float, bool]]:
    """Yield launches in which a place stands out, their chance, and whether it is compared with itself."""
    both = [*past, *own]
    steady = _is_steady(place, own)
    if steady:
        yield own, _compute_chance(place, own), False
    if past and steady and _is_steady(place, both):
        yield both, _compute_chance(place, both), False
    times = sum(1 for _ in _begin_times(place, both))
    if times >= LEAST_TIMES:
        chances = [1 / watch.count for name in _list_hit(both) for watch in _begin_times(name, both)]
        yield both if past else own, compute_tail(chances, times), False
    if steady and len(past) >= LEAST_EARLIER:
        hits, hits_before = (sum(place in watch.hits for watch in watches) for watches in (own, past))
        once = _count_once(place, both)
        counts = (hits // once, len(own) // once, -(-hits_before // once), len(past) // once)
        yield own, compare_shares(*counts), True


def _is_steady(place: str, watches: Sequence[Watch]) -> bool:
    hits = sum(place in watch.hits for watch in watches)
    return len(watches) >= LEAST_LAUNCHES and hits >= STEADY * len(watches)


def _compute_chance(place: str, watches: Sequence[Watch]) -> float:
    once = _count_once(place, watches)
    hit = [watch for watch in watches if watch.hits]
    chances = sorted(len(watch.hits) / watch.count for watch in hit)[::-1]
    return compute_tail(chances[: -(-len(hit) // once)], sum(place in watch.hits for watch in hit) // once)


def _count_once(place: str, watches: Sequence[Watch]) -> int:
    """Return the most launches in a row, among those with a hit, that hit another place: so many count once."""
    hit = [watch for watch in watches if watch.hits]
    others = (name for name in _list_hit(hit) if name != place)
    runs = [
        sum(1 for _ in group)
        for name in others
        for is_hit, group in groupby(name in watch.hits for watch in hit)
        if is_hit
    ]
    least = 2 if any(watch.count < FEW_PLACES for watch in watches) else 1
    return max([*runs, least])


def _list_hit(watches: Sequence[Watch]) -> list[str]:
    return sorted({place for watch in watches for place in watch.hits})


def _begin_times(place: str, watches: Sequence[Watch]) -> Iterator[Watch]:
    """Yield the first launch of each period in which a place was hit, of all in which it took part."""
    taken = (watch for watch in watches if _has(watch, place))
    for hit, group in groupby(taken, key=lambda watch: place in watch.hits):
        if hit:
            yield next(group)


def _describe(
    place: str, kind: str, watches: Sequence[Watch], earlier: bool, chance: float, itself: bool = False
) -> LatePlace:
    hits: list[Hit] = [watch.hits[place] for watch in watches if place in watch.hits]
    return LatePlace(
        place=place,
        kind=kind,
        hits=len(hits),
        launches=len(watches),
        earlier=earlier,
        value=median(hit.value for hit in hits),
        usual=median(hit.usual for hit in hits),
        rank=hits[-1].rank,
        cpus=hits[-1].cpus,
        chance=chance,
        itself=itself,
    )
