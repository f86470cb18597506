"""Find who was held up in a launch, and which places are late more often than chance allows.

A launch has places: its nodes, or where these are fewer than three the CPUs of its ranks. Of each kind
of lateness a place has a value; it is hit if that is far above the others'.

In a launch with h hits among n places, each place is hit with the chance h / n if all are alike. How often a
place was hit is held against that, and against its own earlier nights. Launches of a night are not independent:
what holds a node up for minutes hits several in turn. So a place is named only if it was hit in most of the
launches, or again and again with launches between that were not; then each time counts once. And as many
launches count once as the longest hold-up of any other place lasted, of few places two at least.
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
LEAST_RATIOS = {WAITED: 2.0, LOST: 2.0, SLOW: 1.1, FAR: 1.5}  #: what is usual
ACROSS = 2.0  #: ways between two switches over those below one
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
        hosts = [host["name"] for host in record["hosts"]]
        values[FAR] = _find_far(hosts, places, told, run.launch.nodes_per_switch)
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


def _find_far(hosts: list[str], places: list[str], told: Lateness, per_switch: int) -> dict[str, _Value]:
    """Find the round trips of each host over those usual there, of the size of which they are longest.

    A host most of whose partners are behind other switches is compared with others of which this is true. Where
    there is none, its trips may take twice as long as those below a switch: they cross twice as many links.
    """
    if not told.reach:
        return {}
    trips = dict(zip(hosts, told.reach, strict=True))
    near, apart = _split_by_switches(hosts, told.partners, per_switch)
    usual = _find_usual([trips[host] for host in (near if len(near) >= LEAST_NODES else hosts)])
    across = [ACROSS * each for each in usual] if len(apart) == 1 else usual
    usual_apart = _find_usual([trips[host] for host in apart]) if len(apart) > 1 else across
    found = {}
    for host in hosts:
        own = usual if host in near else usual_apart
        far = max(trip / most for trip, most in zip(trips[host], own, strict=True))
        found[host] = _Value(far, places.index(host))
    return found


def _split_by_switches(
    hosts: list[str], partners: Sequence[Sequence[int]], per_switch: int
) -> tuple[list[str], list[str]]:
    """List the hosts whose median trip, the upper one, ends below their switch, and those where it does not.

    Of the others it depends on whether one of their partners is slow.
    """
    if not per_switch:
        return hosts, []
    order = sorted(hosts, key=natural_sort_key)
    switches = [order.index(host) // per_switch for host in hosts]
    near, apart = [], []
    for host, switch, met in zip(hosts, switches, partners, strict=True):
        below = [each for each in met if switches[each] == switch]
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
    """Find the places far above what is usual; none if they are more than a few."""
    usual = median_low(each.value for each in found.values())
    least = LEAST_RATIOS[kind] * usual
    if kind in (WAITED, LOST):
        least = max(least, usual + share)
    hit = {place: each for place, each in found.items() if each.value >= least}
    if len(hit) > max(1, len(found) // MOST_HIT):
        return {}
    return {
        place: Hit(each.value, usual, each.at if each.at is not None else when, each.rank, cpus[each.rank])
        for place, each in hit.items()
    }


LEVEL = 0.001  #: of naming any place in a night in which all are alike
LOOKS = 4  #: tonight, tonight and before, again and again, and itself before
LEAST_LAUNCHES = 3
STEADY = 0.8  #: of the launches
LEAST_TIMES = 3  #: again and again
LEAST_EARLIER = 10  #: launches of earlier nights, to compare a place with itself
FEW_PLACES = 4  #: fewer than these, two launches count once at least


@dataclass(frozen=True)
class LatePlace:
    """A place that is late, and what tells it from chance."""

    place: str
    kind: str
    hits: int
    launches: int  #: of which these are
    earlier: bool  #: whether some of them are of earlier nights
    value: float  #: median of the hits
    usual: float  #: of the others, likewise
    rank: int  #: in the last hit
    cpus: str
    chance: float  #: that any place would be named so in a night; 0 in simulated time
    itself: bool = False  #: compared with its own earlier nights, not with the others


def find_late_places(tonight: Sequence[Watch], earlier: Sequence[Watch] = ()) -> list[LatePlace]:
    """Find all late places of a night, of each kind; who both waited and lost is named once.

    :param tonight: all launches of one partition, of all kinds
    :param earlier: what is remembered of earlier nights there
    """
    named = []
    for kind in KINDS:
        now = sorted((each for each in tonight if each.kind == kind), key=lambda each: each.when)
        before = sorted((each for each in earlier if each.kind == kind), key=lambda each: each.when)
        hit = sorted({place for each in now for place in each.hits})
        named += [late for place in hit if (late := judge_place(place, kind, now, before)) is not None]
    waited = {late.place for late in named if late.kind == WAITED}
    return [late for late in named if late.kind != LOST or late.place not in waited]


def judge_place(place: str, kind: str, now: Sequence[Watch], before: Sequence[Watch]) -> LatePlace | None:
    """Judge one place by all looks, and return what the most telling one says; None if chance explains all."""
    own, past = ([each for each in watches if _has(each, place)] for watches in (now, before))
    if all(each.exact for each in own):  # nothing there is chance
        return _describe(place, kind, own, False, 0.0) if all(place in each.hits for each in own) else None
    places = max(each.count for each in own) * LOOKS * len(KINDS)
    found = [
        late
        for watches, chance, itself in _look(place, own, past)
        if (corrected := min(1.0, chance * places)) <= LEVEL
        and (late := _describe(place, kind, watches, watches is not own, corrected, itself))
    ]
    return min(found, key=lambda late: late.chance, default=None)


def _has(watch: Watch, place: str) -> bool:
    return not watch.names or place in watch.names


def _look(
    place: str, own: Sequence[Watch], past: Sequence[Watch]
) -> Iterator[tuple[Sequence[Watch], float, bool]]:
    """Yield launches in which a place stands out, the chance of that, and whether it is held against itself."""
    both = [*past, *own]
    steady = _is_steady(place, own)
    if steady:
        yield own, _compute_chance(place, own), False
    if past and steady and _is_steady(place, both):
        yield both, _compute_chance(place, both), False
    times = sum(1 for _ in _begin_times(place, both))
    if times >= LEAST_TIMES:
        chances = [1 / each.count for name in _list_hit(both) for each in _begin_times(name, both)]
        yield both if past else own, compute_tail(chances, times), False
    if steady and len(past) >= LEAST_EARLIER:
        hits, hits_before = (sum(place in each.hits for each in watches) for watches in (own, past))
        once = _count_once(place, both)
        counts = (hits // once, len(own) // once, -(-hits_before // once), len(past) // once)
        yield own, compare_shares(*counts), True


def _is_steady(place: str, watches: Sequence[Watch]) -> bool:
    hits = sum(place in each.hits for each in watches)
    return len(watches) >= LEAST_LAUNCHES and hits >= STEADY * len(watches)


def _compute_chance(place: str, watches: Sequence[Watch]) -> float:
    once = _count_once(place, watches)
    hit = [each for each in watches if each.hits]
    chances = sorted(len(each.hits) / each.count for each in hit)[::-1]
    return compute_tail(chances[: -(-len(hit) // once)], sum(place in each.hits for each in hit) // once)


def _count_once(place: str, watches: Sequence[Watch]) -> int:
    """Count how many launches in turn, of those with a hit, hit another place at most: so many count once."""
    hit = [each for each in watches if each.hits]
    others = (name for name in _list_hit(hit) if name != place)
    runs = [
        sum(1 for _ in group)
        for name in others
        for is_hit, group in groupby(name in each.hits for each in hit)
        if is_hit
    ]
    least = 2 if any(each.count < FEW_PLACES for each in watches) else 1
    return max([*runs, least])


def _list_hit(watches: Sequence[Watch]) -> list[str]:
    return sorted({place for each in watches for place in each.hits})


def _begin_times(place: str, watches: Sequence[Watch]) -> Iterator[Watch]:
    """Yield the first launch of each time that a place was hit, of all in which it took part."""
    taken = (each for each in watches if _has(each, place))
    for hit, group in groupby(taken, key=lambda each: place in each.hits):
        if hit:
            yield next(group)


def _describe(
    place: str, kind: str, watches: Sequence[Watch], earlier: bool, chance: float, itself: bool = False
) -> LatePlace:
    hits: list[Hit] = [each.hits[place] for each in watches if place in each.hits]
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
