"""The fingerprint tells what was put into the times, and the sentence claims no more than it covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from postprocess.features.compare.cases import ComparedCase, ComparisonVerdict
from postprocess.features.compare.data import NEW, OLD, SharedCase
from postprocess.features.compare.facts import VARIABLE, FactDifference
from postprocess.features.compare.fingerprint import (
    SIZES,
    FingerprintLaunch,
    FingerprintPair,
    build_fingerprints,
    describe_fingerprint,
    tell_fingerprint,
)
from postprocess.features.compare.next_steps import explain_slower

KIB = 1024


def launches(
    side: str, limit: int, empty: float = 1e-6, rate: float = 1e10, layout: str = "2x2"
) -> list[FingerprintLaunch]:
    """Three launches of a library that needs a handshake of 4 us beyond a limit."""
    random = np.random.default_rng(limit)
    found = []
    for number in range(3):
        times = [
            (empty + n / rate + (4e-6 if n > limit else 0)) * float(np.exp(random.normal(0, 0.01)))
            for n in SIZES
        ]
        found.append(FingerprintLaunch(side, number, "cpu", layout, "s", 1.0, SIZES, tuple(times)))
    return found


def fingerprint(old: Sequence[FingerprintLaunch], new: Sequence[FingerprintLaunch]) -> list[FingerprintPair]:
    return build_fingerprints([*old, *new])


def case(size: int, verdict: ComparisonVerdict, routine: str = "bcast", layout: str = "4x4") -> ComparedCase:
    shared = SharedCase("cpu", "mpicost", routine, "evict-barrier", layout, size)
    ratio = 1.5 if verdict == ComparisonVerdict.SLOWER else 1.0
    return ComparedCase(
        shared, verdict, "", "s", 1e-6, ratio * 1e-6, None, 6, ratio, None, None, None, 0.05, {}, {}
    )


MOVED = fingerprint(launches(OLD, 64 * KIB), launches(NEW, 8 * KIB))
SLOW = [case(n, ComparisonVerdict.SLOWER) for n in (16 * KIB, 20_000, 32 * KIB)]


def test_empty_message_bandwidth_and_switch_are_those_put_in() -> None:
    (pair,) = MOVED
    assert pair.old.empty == pytest.approx(1e-6, rel=0.05)
    assert pair.new.bandwidth == pytest.approx(1e10, rel=0.1)
    assert [each.below for each in pair.old.switches] == [64 * KIB]
    assert [each.below for each in pair.new.switches] == [8 * KIB]
    told = tell_fingerprint(pair)
    assert told[2][0] == "switches after, inside a node (cpu)"
    assert told[2][1].startswith("64 KiB (1.") and told[2][2].startswith("8 KiB (")
    assert describe_fingerprint(MOVED)["cpu/2x2"]["new"]["launches"] == 3


def placed(
    some: Sequence[FingerprintLaunch], cores: Sequence[float | None], moved: bool = False
) -> list[FingerprintLaunch]:
    both = zip(some, cores, strict=True)
    return [replace(each, core_latency=where, moved=moved) for each, where in both]


def test_launches_on_like_cores_are_held_against_each_other() -> None:
    """A message takes 1 us on near cores and 3 on far ones, whichever side it is of."""
    near, far = launches(OLD, KIB), launches(OLD, KIB, empty=3e-6)
    old = placed([*near[:2], far[0]], (5e-8, 5.2e-8, 2.4e-7))
    near, far = launches(NEW, KIB), launches(NEW, KIB, empty=3e-6)
    new = placed([near[0], *far[:2]], (5.1e-8, 2.5e-7, 2.5e-7))
    (pair,) = fingerprint(old, new)
    assert pair.old.empty == pytest.approx(pair.new.empty, rel=0.05)
    assert not fingerprint(old[:2], new[1:])
    moved = placed(launches(OLD, KIB), [None] * 3, moved=True)
    assert not fingerprint(moved, launches(NEW, KIB))


def test_the_place_counts_in_which_both_sides_have_the_most_launches() -> None:
    old = [*launches(OLD, KIB), *placed(launches(OLD, KIB)[:2], (2.5e-7,) * 2)]
    old[:3] = placed(old[:3], (5e-8,) * 3)
    new = placed(launches(NEW, KIB), (5e-8, 2.5e-7, 2.5e-7))
    (pair,) = fingerprint([*old, *placed(launches(OLD, KIB), (5e-8,) * 3)], new)
    assert (pair.old.launches, pair.new.launches) == (2, 2)


def test_a_side_alone_is_no_fingerprint() -> None:
    assert not fingerprint(launches(OLD, 1024), [])


def test_a_moved_switch_covers_the_slower_cases_in_between() -> None:
    others = [case(n, ComparisonVerdict.SAME) for n in (8, KIB, 10**6)]
    said = explain_slower([*SLOW, *others], MOVED)
    assert said == (
        "A switch of ping-pong inside a node (cpu) that went from 64 KiB to 8 KiB covers 3 of 3 slower cases"
    )
    inside = [*SLOW, case(24 * KIB, ComparisonVerdict.SAME), *others]
    assert explain_slower(inside, MOVED).endswith("3 of 3 slower cases, and 1 that is not")


def test_only_a_control_variable_names_the_switch() -> None:
    fact = FactDifference(VARIABLE, "EAGER_LIMIT", "65536", "8192")
    assert explain_slower(SLOW, MOVED, [fact]).startswith("EAGER_LIMIT that went from 64 KiB to 8")
    for other in (replace(fact, new="16384"), replace(fact, old="8192"), replace(fact, old="no")):
        assert explain_slower(SLOW, MOVED, [other]).startswith("A switch of ping-pong")


BACKWARDS = fingerprint(launches(OLD, 8 * KIB), launches(NEW, 64 * KIB))
SAME, SLOWER = ComparisonVerdict.SAME, ComparisonVerdict.SLOWER


@pytest.mark.parametrize(
    ("cases", "pairs"),
    [
        ([case(n, SLOWER) for n in (8, KIB, 2 * KIB)], MOVED),  # elsewhere
        ([*SLOW[:2], *(case(n, SLOWER) for n in (8, 16, 32, 64))], MOVED),  # less than half
        ([*SLOW, *(case(n, SAME) for n in range(9000, 9005))], MOVED),  # most of it is not slower
        ([case(n, SLOWER, layout="4x2") for n in (16 * KIB, 20_000)], MOVED),  # between nodes
        (SLOW, BACKWARDS),  # messages became faster
    ],
)
def test_nothing_is_claimed_beyond_the_data(cases: list[ComparedCase], pairs: list[FingerprintPair]) -> None:
    slower = sum(each.verdict == SLOWER for each in cases)
    found = explain_slower(cases, pairs)
    assert found == f"Nothing in the fingerprint covers half of the {slower} slower cases"


def test_one_slower_case_is_explained_by_nothing() -> None:
    said = explain_slower([*SLOW[:1], case(8, SAME)], MOVED)
    assert said == "One slower case alone is not explained by the fingerprint"
    assert explain_slower([case(8, SAME)], MOVED) == explain_slower(SLOW, []) == ""


def test_start_up_and_bandwidth_cover_their_own_sizes() -> None:
    late = fingerprint(launches(OLD, 64 * KIB), launches(NEW, 64 * KIB, empty=2.5e-6))
    small = [case(n, ComparisonVerdict.SLOWER) for n in (8, 64, KIB)]
    assert explain_slower(small, late).startswith("An empty message that takes 2.5")
    narrow = fingerprint(launches(OLD, 64 * KIB), launches(NEW, 64 * KIB, rate=5e9))
    large = [case(n, ComparisonVerdict.SLOWER) for n in (10**6, 2 * 10**6)]
    assert explain_slower(large, narrow).startswith("A bandwidth of 4985 MB/s in place of 9969")
