"""Verdicts of pairs: what they claim is proven, what they decide stays, and no claim without a look."""

from __future__ import annotations

import math

import numpy as np
import pytest

from postprocess.stats.comparison.paired_verdicts import (
    ERROR,
    LADDERS,
    PairedCase,
    PairedVerdict,
    choose_looks,
    count_pairs_more,
    judge_pairs,
    moderate_spreads,
)

MARGIN = math.log(1.05)
LOOKS = (6, 10, 16)


def cases(shift: float, spread: float, number: int = 40, pairs: int = 16, seed: int = 1):
    d = np.random.default_rng(seed).normal(shift, spread, (number, pairs))
    return [PairedCase(tuple(row), MARGIN) for row in d]


def verdicts(some, looks=LOOKS):
    return [each.verdict for each in judge_pairs(some, looks)]


@pytest.mark.parametrize(
    ("shift", "verdict"), [(0.0, PairedVerdict.SAME), (0.2, PairedVerdict.SLOWER), (-0.2, PairedVerdict.FASTER)]
)
def test_what_is_plain_is_said(shift: float, verdict: PairedVerdict) -> None:
    assert set(verdicts(cases(shift, 0.01))) == {verdict}


def test_what_scatters_stays_undecided_and_says_how_many_pairs_more() -> None:
    found = judge_pairs(cases(0.0, 0.3), LOOKS)
    undecided = [each for each in found if each.verdict == PairedVerdict.UNDECIDED]
    assert len(undecided) > 30
    assert all(each.pairs_more for each in undecided)
    assert np.median([each.pairs_more for each in undecided]) > 16


def test_swapping_the_sides_swaps_the_verdicts() -> None:
    some = [*cases(0.08, 0.02), *cases(-0.08, 0.02, seed=2), *cases(0, 0.01, seed=3)]
    swapped = [PairedCase(tuple(-d for d in each.differences), MARGIN) for each in some]
    mirror = {PairedVerdict.SLOWER: PairedVerdict.FASTER, PairedVerdict.FASTER: PairedVerdict.SLOWER}
    for there, back in zip(verdicts(some), verdicts(swapped), strict=True):
        if there in mirror:
            assert back == mirror[there]
        if there == PairedVerdict.SAME:
            assert back == there


def test_what_a_look_decides_stays() -> None:
    some = cases(0.0, 0.02)
    early = judge_pairs([PairedCase(each.differences[:6], MARGIN) for each in some], LOOKS)
    late = judge_pairs(some, LOOKS)
    decided = [n for n, each in enumerate(early) if each.verdict == PairedVerdict.SAME]
    assert decided
    assert all(late[n].estimate == early[n].estimate for n in decided)


def test_pairs_between_looks_say_nothing() -> None:
    some = cases(0.3, 0.01, pairs=9)
    fewer = [PairedCase(each.differences[:6], MARGIN) for each in some]
    assert verdicts(some) == verdicts(fewer)
    assert all(each.estimate is None for each in judge_pairs(cases(0.3, 0.01, pairs=5), LOOKS))


def test_nearly_no_unchanged_case_is_called_slower() -> None:
    """Without the correction it would be about one in forty cases that scatter much."""
    accused = [PairedVerdict.SLOWER in verdicts(cases(0.0, 0.08, number=200, seed=seed)) for seed in range(20)]
    assert np.mean(accused) <= 2 * ERROR


def test_a_slowdown_at_the_margin_is_seldom_called_not_worse() -> None:
    found = verdicts(cases(MARGIN, 0.03, number=1000))
    assert np.mean([each in ("same", "faster", "not slower") for each in found]) <= ERROR + 0.015


def test_a_slowdown_within_the_margin_is_the_same() -> None:
    assert set(verdicts(cases(0.01, 0.002))) == {PairedVerdict.SAME}


def test_simulated_time_needs_one_pair() -> None:
    exact = [PairedCase((d,), MARGIN, exact=True) for d in (0.0, 1e-12, 0.3, -0.3)]
    assert verdicts(exact) == ["same", "same", "slower", "faster"]


def test_pairs_that_are_all_alike_are_judged() -> None:
    level = [PairedCase((value,) * 16, MARGIN) for value in (0.0, 0.2, -0.2)]
    assert verdicts(level) == ["same", "slower", "faster"]


def test_looks_are_what_the_pairs_allow() -> None:
    assert choose_looks(5) == () and choose_looks(6) == (6,)
    assert choose_looks(16) == LOOKS and choose_looks(39) == (8, 16, 26)
    assert all(pairs % 2 == 0 for ladder in LADDERS for pairs in ladder)


def test_a_center_at_the_margin_is_decided_against_no_change() -> None:
    some = PairedCase(tuple(MARGIN + d for d in (-0.1, 0.1) * 3), MARGIN)
    (found,) = judge_pairs([some], LOOKS)
    assert found.verdict == PairedVerdict.UNDECIDED
    assert found.pairs_more == count_pairs_more(some, found, ERROR / 3, 6)
    assert found.pairs_more is not None and 10 < found.pairs_more < 200


def test_spreads_are_drawn_together_within_groups() -> None:
    spreads = np.array([0.01] * 10 + [0.011] * 10 + [0.1] * 20)
    drawn, degrees = moderate_spreads(spreads, np.full(40, 5), ["small"] * 20 + ["large"] * 20)
    assert np.ptp(drawn[:20]) < np.ptp(spreads[:20]) and drawn[20:].min() > 0.09
    assert np.all(degrees > 5)


def test_pairs_that_do_not_count_keep_no_case_from_the_last_look() -> None:
    """Of 13 pairs that were planned 7 to 13 count; what is three times as slow is slower, and little else."""
    random = np.random.default_rng(5)
    counts = random.integers(7, 14, 600)
    some = [PairedCase(tuple(random.normal(0, 0.1, n)), MARGIN) for n in counts]
    slow = [PairedCase(tuple(random.normal(1.1, 0.1, n)), MARGIN) for n in counts[:40] if n < 13]
    assert set(verdicts(slow, (13,))) == {PairedVerdict.UNDECIDED}
    found = [each.verdict for each in judge_pairs([*some, *slow], (13,), least=6)]
    assert set(found[600:]) == {PairedVerdict.SLOWER}
    assert found[:600].count(PairedVerdict.SLOWER) <= 0.05 * (600 + len(slow)) / 2
    few = PairedCase(tuple(random.normal(1.1, 0.1, 5)), MARGIN)
    assert judge_pairs([few], (13,), least=6)[0].verdict == PairedVerdict.UNDECIDED
