"""Who is late is named, chance and what passes are not."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pytest

from postprocess.judging.lateness import FAR, LOST, WAITED, Hit, Watch, _find_far, _find_hits, find_late_places
from postprocess.model.measurement import Lateness
from postprocess.parsers.lateness import list_partners

NIGHTS = 400
LAUNCHES = 20


def watch(when: float, count: int, hits: Iterable[str], exact: bool = False) -> Watch:
    """A launch on places 0, 1, ... of which some were hit."""
    names = tuple(sorted(str(number) for number in range(count)))
    found = {place: Hit(0.1, 0.001, when, 0, "0") for place in hits}
    return Watch(WAITED, when, exact, count, names, found)


def night(count: int, hit: Callable[[int], Iterable[str]], day: int = 0) -> list[Watch]:
    """Launches a minute apart."""
    return [watch(86400.0 * day + 60 * number, count, hit(number)) for number in range(LAUNCHES)]


@pytest.mark.parametrize("count", [4, 16, 512])
def test_a_place_that_is_hit_in_most_launches_is_named(count: int) -> None:
    (late,) = find_late_places(night(count, lambda number: ["1"] if number % 10 else []))
    assert (late.place, late.hits, late.launches) == ("1", 18, 20)
    assert late.chance <= 0.001


def test_of_two_places_one_night_is_no_proof() -> None:
    """What lasts may hit one of two in all launches of a night; that it never did before tells more."""
    tonight = night(2, lambda _: ["1"], 1)
    assert find_late_places(tonight) == []
    (late,) = find_late_places(tonight, night(2, lambda _: []))
    assert late.itself and not late.earlier


def test_what_passes_names_nobody() -> None:
    """Five launches in turn would never be chance among 64 nodes if launches were independent."""
    assert find_late_places(night(64, lambda number: ["7"] if 5 <= number < 10 else [])) == []


def test_what_comes_again_and_again_is_named() -> None:
    """A launch in each of four nights, always of the same node."""
    nights = [night(64, lambda number: ["7"] if number == 3 else [], day) for day in range(4)]
    before = [each for part in nights[:-1] for each in part]
    (late,) = find_late_places(nights[-1], before)
    assert (late.place, late.hits, late.launches, late.earlier) == ("7", 4, 80, True)


def test_a_place_for_which_others_waited_is_not_named_for_lost_time_too() -> None:
    waited = night(16, lambda _: ["1"])
    lost = [replace(each, kind=LOST) for each in waited]
    assert [(late.place, late.kind) for late in find_late_places(lost)] == [("1", LOST)]
    assert [(late.place, late.kind) for late in find_late_places(waited + lost)] == [("1", WAITED)]


def test_simulated_launches_need_no_chance() -> None:
    assert [late.place for late in find_late_places([watch(0, 512, ["300"], exact=True)])] == ["300"]
    mixed = [watch(0, 512, ["300"], exact=True), watch(1, 512, [], exact=True)]
    assert find_late_places(mixed) == []


@pytest.mark.parametrize("count", [2, 4, 64, 512])
@pytest.mark.parametrize("lasts", [1, 6])
def test_healthy_nights_name_nobody(count: int, lasts: int) -> None:
    """Each launch has a hit in three of four, whatever place it is; a place that is hit stays so for a while.

    At most one night in a hundred names somebody; LEVEL promises one in a thousand of independent launches.
    """
    random = np.random.default_rng(count * lasts)
    named = 0
    for _ in range(NIGHTS):
        places = np.repeat(random.integers(count, size=LAUNCHES), lasts)[:LAUNCHES]
        hit = random.random(LAUNCHES) < 0.75
        named += bool(find_late_places(night(count, lambda n, p=places, h=hit: [str(p[n])] if h[n] else [])))
    assert named <= NIGHTS // 100


@pytest.mark.parametrize(("count", "per_switch"), [(4, 3), (5, 4), (17, 16), (24, 12), (48, 24)])
def test_the_place_behind_a_switch_accuses_no_healthy_node(count: int, per_switch: int) -> None:
    """Whoever met whom, a trip between switches takes twice as long as one below a switch."""
    hosts = [f"n{number}" for number in range(count)]
    for seed in range(60):
        partners = list_partners(seed, count)
        trips = [
            sorted(1.0 + (a // per_switch != b // per_switch) for b in met) for a, met in enumerate(partners)
        ]
        reach = tuple((met[len(met) // 2],) * 2 for met in trips)
        lateness = Lateness(watched=1.0, ranks=(), reach=reach, partners=partners)
        values = _find_far(hosts, hosts, lateness, per_switch)
        assert not _find_hits(FAR, values, 0.0, [""] * count, 0.0), (seed, values)
