"""The paired ratio: against textbook and brute force, and what must hold of any pairs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from postprocess.stats.comparison.paired_verdicts import (
    compute_signed_rank_distribution,
    compute_walsh_averages,
    count_deciding_pairs,
    count_outside,
    estimate_paired_ratio,
)

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
    found = np.median([(each.upper - each.lower) / 2 for each in widths])
    assert found == pytest.approx(0.03, rel=0.15)
