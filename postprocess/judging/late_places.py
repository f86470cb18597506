"""Name the places that are late more often than chance allows.

In a launch with h hits among n places, each place is hit with the chance h / n if all are alike. How often a
place was hit is held against that, and against its own earlier nights. Launches of a night are not independent:
what holds a node up for minutes hits several in turn. So a place is named only if it was hit in most of the
launches, or again and again with launches between that were not; then each time counts once. And as many
launches count once as the longest hold-up of any other place lasted, of few places two at least.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from postprocess.judging.lateness import KINDS, LOST, WAITED, Hit, Watch
from postprocess.stats.chance import compare_shares, compute_tail

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
    times = _count_times(place, both)
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


def _count_times(place: str, watches: Sequence[Watch]) -> int:
    return sum(1 for _ in _begin_times(place, watches))


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
