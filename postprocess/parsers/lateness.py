"""Read the lateness of a launch's ranks from the end record of mpicost (``lateness.c``)."""

from itertools import pairwise

from postprocess.base.strict_json import JsonObject, format_external
from postprocess.model.measurement import Interruption, Lateness, RankLateness

KEY = "lateness"
MOST_KEPT = 12  #: interruptions in a list (``DETOURS_KEPT`` in ``noise.h``)
SIZES = 2  #: number of message sizes (``reach.h``)
REACH_ROUNDS = 9  #: largest number of rounds (``reach.h``)
WORD = 2**64 - 1
SLACK = 1e-6  #: relative, for sums of rounded numbers


def parse_lateness(end: JsonObject, run: JsonObject) -> Lateness | None:
    """Parse the lateness in an end record; None if it was not recorded.

    :raises ValueError: ``lateness.key: what is wrong with it``
    """
    if KEY not in end.fields:
        return None
    entry = end.object(KEY)
    ranks = tuple(_parse_rank(rank) for rank in entry.objects("ranks")) if "ranks" in entry.fields else ()
    if ranks and len(ranks) != run.integer("processes"):
        raise ValueError(f"{KEY}.ranks: {len(ranks)} of {run.integer('processes')} are there")
    reach = _parse_reach(entry, len(run.objects("hosts"))) if "reach" in entry.fields else ()
    partners = list_partners(run.get("seed", int), len(reach)) if reach else ()
    return Lateness(entry.number("watched"), ranks, reach, partners)


def list_partners(seed: int, hosts: int) -> tuple[tuple[int, ...], ...]:
    """List the hosts that each host played with, as ``reach.c`` draws them by the launch's seed."""
    rounds = hosts - 1 + hosts % 2
    first = _draw(seed, hosts) % rounds
    partners: list[list[int]] = [[] for _ in range(hosts)]
    for number in range(REACH_ROUNDS):
        for a, b in list_games(hosts, 1 + (first + number * rounds // REACH_ROUNDS) % rounds):
            partners[a].append(b)
            partners[b].append(a)
    return tuple(map(tuple, partners))


def list_games(processes: int, number: int) -> set[tuple[int, int]]:
    """List the pairs of a round, lower rank first, by the circle method of the suite (``tournament.c``)."""
    circle, alone = processes - 1 + processes % 2, number - 1
    last = [(alone, processes - 1)] if processes % 2 == 0 else []
    ranks = (rank for rank in range(circle) if rank != alone)
    met = [(rank, (2 * alone - rank) % circle) for rank in ranks]
    return {(a, b) for a, b in [*met, *last] if a < b}


def _draw(seed: int, number: int) -> int:
    """Draw a number of the sequence that a seed starts (``splitmix.h``)."""
    mixed = seed + 0x9E3779B97F4A7C15 * (number + 1) & WORD
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & WORD
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & WORD
    return mixed ^ mixed >> 31


def _parse_rank(entry: JsonObject) -> RankLateness:
    rank = RankLateness(
        voluntary=entry.integer("voluntary"),
        involuntary=entry.integer("involuntary"),
        faults=entry.integer("faults"),
        quantum=entry.number("quantum"),
        span=entry.number("span"),
        lost=entry.number("lost"),
        longest=entry.number("longest"),
        waited=entry.number("waited") if "waited" in entry.fields else None,
        interrupts=entry.integer("interrupts") if "interrupts" in entry.fields else None,
        detours=_parse_interruptions(entry, "detours"),
        holds=_parse_interruptions(entry, "holds"),
    )
    if not 0 < rank.quantum <= rank.span or not rank.longest <= rank.lost <= rank.span * (1 + SLACK):
        raise ValueError(
            f"{entry.within}lost: {rank.lost!r} s of {rank.span!r} s, the longest {rank.longest!r} s"
        )
    return rank


def _parse_interruptions(entry: JsonObject, key: str) -> tuple[Interruption, ...]:
    """Parse pairs of numbers in order of time."""
    if key not in entry.fields:
        return ()
    pairs = entry.get(key, list)
    if not 0 < len(pairs) <= MOST_KEPT or not all(_is_pair(pair) for pair in pairs):
        raise ValueError(f"{entry.within}{key}: is not a list of at most {MOST_KEPT} pairs of numbers above 0")
    if any(earlier[0] > later[0] for earlier, later in pairwise(pairs)):
        raise ValueError(f"{entry.within}{key}: are not in order of time")
    return tuple((float(when), float(took)) for when, took in pairs)


def _parse_reach(entry: JsonObject, hosts: int) -> tuple[tuple[float, float], ...]:
    trips = entry.get("reach", list)
    if len(trips) != hosts or not all(_is_pair(trip) for trip in trips):
        raise ValueError(
            f"{entry.within}reach: {format_external(trips)} is not a pair of times for each of {hosts} hosts"
        )
    return tuple((float(small), float(large)) for small, large in trips)


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == SIZES
        and all(type(n) in (int, float) and n > 0 for n in value)
    )
