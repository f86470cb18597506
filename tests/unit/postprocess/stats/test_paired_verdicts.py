"""Verdicts of pairs: what they claim is proven, what they decide stays, and no claim without a look."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from postprocess.model.case import Case
from postprocess.model.reference import Prior, Reference, SessionEvidence
from postprocess.stats.paired_verdicts import (
    ERROR,
    LADDERS,
    PairedCase,
    PairedVerdict,
    UnpairedCase,
    choose_looks,
    compute_signed_rank_distribution,
    compute_walsh_averages,
    count_deciding_pairs,
    count_outside,
    count_pairs_more,
    estimate_paired_ratio,
    judge_pairs,
    judge_unpaired,
    moderate_spreads,
)
from postprocess.stats.sessions import Prediction, SessionValue, predict_nights, predict_sessions

MARGIN = math.log(1.05)
LOOKS = (6, 10, 16)


def cases(shift: float, spread: float, number: int = 40, pairs: int = 16, seed: int = 1):
    d = np.random.default_rng(seed).normal(shift, spread, (number, pairs))
    return [PairedCase(tuple(row), MARGIN) for row in d]


def verdicts(some, looks=LOOKS):
    return [pair.verdict for pair in judge_pairs(some, looks)]


@pytest.mark.parametrize(
    ("shift", "spread", "verdict"),
    [(0.0, 0.01, "same"), (0.01, 0.002, "same"), (0.2, 0.01, "slower"), (-0.2, 0.01, "faster")],
)
def test_what_is_plain_is_said(shift: float, spread: float, verdict: str) -> None:
    assert set(verdicts(cases(shift, spread))) == {verdict}


def test_what_scatters_stays_undecided_and_says_how_many_pairs_more() -> None:
    found = judge_pairs(cases(0.0, 0.3), LOOKS)
    undecided = [result for result in found if result.verdict == PairedVerdict.UNDECIDED]
    assert len(undecided) > 30
    assert all(result.pairs_more for result in undecided)
    assert np.median([result.pairs_more for result in undecided]) > 16


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
    assert all(pair.estimate is None for pair in judge_pairs(cases(0.3, 0.01, pairs=5), LOOKS))


def test_nearly_no_unchanged_case_is_called_slower() -> None:
    """Without the correction it would be about one in forty cases that scatter much."""
    accused = [PairedVerdict.SLOWER in verdicts(cases(0.0, 0.08, number=200, seed=seed)) for seed in range(20)]
    assert np.mean(accused) <= 2 * ERROR


def test_a_slowdown_at_the_margin_is_seldom_called_not_worse() -> None:
    found = verdicts(cases(MARGIN, 0.03, number=1000))
    assert np.mean([each in ("same", "faster", "not slower") for each in found]) <= ERROR + 0.015


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
    found = [pair.verdict for pair in judge_pairs([*some, *slow], (13,), least=6)]
    assert set(found[600:]) == {PairedVerdict.SLOWER}
    assert found[:600].count(PairedVerdict.SLOWER) <= 0.05 * (600 + len(slow)) / 2
    few = PairedCase(tuple(random.normal(1.1, 0.1, 5)), MARGIN)
    assert judge_pairs([few], (13,), least=6)[0].verdict == PairedVerdict.UNDECIDED


#: Depression before and after therapy: Hollander, Wolfe and Chicken, table 3.1; examples 3.1 to 3.4.
BEFORE = (1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30)
AFTER = (0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29)
HAMILTON = tuple(after - before for before, after in zip(BEFORE, AFTER, strict=True))


def test_the_textbook() -> None:
    found = estimate_paired_ratio(HAMILTON, 0.0196)
    assert found.center == pytest.approx(-0.46, abs=1e-9)
    assert (found.lower, found.upper) == pytest.approx((-0.786, -0.010), abs=5e-4)


@pytest.mark.parametrize("pairs", [1, 2, 5, 8])
def test_the_distribution_is_that_of_all_signs(pairs: int) -> None:
    signs = itertools.product((0, 1), repeat=pairs)
    sums = [sum(rank for rank, sign in enumerate(each, 1) if sign) for each in signs]
    counted = np.bincount(sums) / 2**pairs
    assert np.allclose(compute_signed_rank_distribution(pairs), counted, atol=0)


def test_the_interval_excludes_zero_just_where_the_test_rejects() -> None:
    generator = np.random.default_rng(1)
    for pairs, alpha in itertools.product((6, 10, 16), (0.05, 0.05 / 3)):
        for _ in range(40):
            d = generator.normal(0.5, 1, pairs)
            p = stats.wilcoxon(d, alternative="greater", method="exact").pvalue
            assert (estimate_paired_ratio(d, alpha).lower > 0) == (p <= alpha)


def test_swapping_the_sides_mirrors_everything() -> None:
    generator = np.random.default_rng(2)
    for pairs in (1, 2, 6, 11):
        d = generator.normal(0, 1, pairs)
        there, back = estimate_paired_ratio(d, 0.05), estimate_paired_ratio(-d, 0.05)
        found = (back.center, back.lower, back.upper)
        assert found == pytest.approx((-there.center, -there.upper, -there.lower))
        moved = estimate_paired_ratio(d + 3, 0.05)
        assert moved.center == pytest.approx(there.center + 3)


def test_too_few_pairs_have_no_limits() -> None:
    found = estimate_paired_ratio([0.1, 0.2, 0.3, 0.4], 0.05)
    assert (found.lower, found.upper) == (-math.inf, math.inf)
    assert found.limits[0] == 0 and found.ratio == pytest.approx(math.exp(0.25))


def test_one_wild_pair_does_not_move_the_estimate() -> None:
    calm = estimate_paired_ratio([0.01 * n for n in range(-5, 6)], 0.05)
    wild = estimate_paired_ratio([*(0.01 * n for n in range(-5, 5)), 50.0], 0.05)
    assert wild.center == pytest.approx(calm.center, abs=0.02)


def test_six_pairs_decide_at_a_third_of_the_error_with_their_extremes() -> None:
    assert count_outside(6, 0.05 / 3) == 1 and count_outside(5, 0.05 / 3) == 0
    assert len(compute_walsh_averages(range(6))) == 21


def test_pairs_that_are_said_to_decide_do() -> None:
    needed = count_deciding_pairs(spread=0.05, distance=0.03, alpha=0.05)
    generator = np.random.default_rng(3)
    widths = [estimate_paired_ratio(generator.normal(0, 0.05, needed), 0.05) for _ in range(200)]
    found = np.median([(width.upper - width.lower) / 2 for width in widths])
    assert found == pytest.approx(0.03, rel=0.15)


CASE = Case("s", "cpu", "mpich-5", "mpicost", "bcast", 0, "evict", "barrier", 2, 2, 8)


def judge(difference: float, deviation: float = 0.02, **more: bool) -> PairedVerdict:
    noise = Prediction(deviation, 8.0)
    (found,) = judge_unpaired([UnpairedCase(difference, noise, noise, MARGIN, **more)])
    return found.verdict


@pytest.mark.parametrize(
    ("difference", "verdict"), [(0.0, "undecided"), (0.05, "undecided"), (0.2, "slower"), (-0.2, "faster")]
)
def test_only_what_lies_beyond_the_noise_of_sessions_is_called(difference, verdict) -> None:
    assert judge(difference) == verdict


def test_nothing_is_called_the_same_however_quiet_the_machine() -> None:
    assert judge(0.0, 1e-6) == judge(0.0, 0.0, exact=True) == PairedVerdict.UNDECIDED
    assert judge(1e-3, 0.0, exact=True) == PairedVerdict.UNDECIDED  # within half the margin
    assert judge(0.1, 0.0, exact=True) == PairedVerdict.SLOWER


def test_a_case_whose_noise_nobody_knows_is_not_judged() -> None:
    (found,) = judge_unpaired([UnpairedCase(1.0, Prediction(0.01, 5.0), None, MARGIN)])
    assert (found.verdict, found.limits, found.unseen) == (PairedVerdict.UNDECIDED, None, None)


def test_of_many_unchanged_cases_few_are_accused() -> None:
    random = np.random.default_rng(18)
    noise = Prediction(0.03, 8.0)
    offs = random.standard_t(8, (50, 200)) * 0.03 * math.sqrt(2)
    rounds = [judge_unpaired([UnpairedCase(d, noise, noise, MARGIN) for d in row]) for row in offs]
    accusing = [any(r.verdict == PairedVerdict.SLOWER for r in some) for some in rounds]
    assert sum(accusing) <= 7  # of 50; 5% are 2.5


def test_sessions_and_launches_are_both_in_the_noise() -> None:
    evidence = SessionEvidence(sessions=5, inverse_launches=0.25, between=0.04**2 + 0.02**2 / 4)
    known = Reference(CASE, 1e-6, 0.02, 20, evidence=evidence, session_prior=Prior(0.04, 5.0))
    one, two = predict_sessions(known, [4]), predict_sessions(known, [1, 1])
    assert one.deviation == pytest.approx(math.hypot(0.04, 0.02 / 2), rel=1e-6)
    assert two.deviation == pytest.approx(math.hypot(0.04, 0.02) / math.sqrt(2), rel=1e-6)
    assert predict_nights(known, [SessionValue(0.0, 4)]).deviation > one.deviation  # the center lies off, too
