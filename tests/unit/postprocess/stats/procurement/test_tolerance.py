"""Tolerance limits as the tables print them."""

from __future__ import annotations

import numpy as np
import pytest

from postprocess.stats.procurement.acceptance import (
    EXACT,
    NORMAL,
    ORDERED,
    compute_tolerance_factor,
    compute_tolerance_limit,
    find_order_statistic,
)


@pytest.mark.parametrize(  # Hahn and Meeker (1991), table A.12d, 95% confidence
    ("launches", "coverage", "factor"),
    [(5, 0.99, 5.741), (10, 0.99, 3.981), (20, 0.99, 3.295), (10, 0.90, 2.355), (50, 0.95, 2.065)],
)
def test_the_factor_is_that_of_the_table(launches: int, coverage: float, factor: float) -> None:
    assert compute_tolerance_factor(launches, 0.95, coverage) == pytest.approx(factor, abs=6e-4)


@pytest.mark.parametrize(("launches", "rank"), [(298, 0), (299, 1), (472, 1), (473, 2)])
def test_from_299_values_on_the_largest_is_a_limit(launches: int, rank: int) -> None:
    assert find_order_statistic(launches, 0.95, 0.99) == rank


def test_the_method_follows_from_the_launches() -> None:
    values = np.linspace(0, 0.1, 10)
    found = compute_tolerance_limit(values, 0.95, 0.99)
    assert found.method == NORMAL
    assert found.limit == pytest.approx(0.05 + 3.981 * values.std(ddof=1), abs=1e-4)
    many = compute_tolerance_limit(np.linspace(0, 1, 299), 0.95, 0.99)
    assert (many.method, many.limit) == (ORDERED, 1.0)
    assert compute_tolerance_limit([0.5], 0.95, 0.99, exact=True).method == EXACT
    with pytest.raises(ValueError, match="2 launches give no tolerance limit"):
        compute_tolerance_limit([0.1, 0.2], 0.95, 0.99)


def test_the_limit_holds_as_often_as_it_says() -> None:
    random = np.random.default_rng(7)
    logs = random.normal(0.0, 0.1, (4000, 8))
    factor = compute_tolerance_factor(8, 0.95, 0.99)
    limits = logs.mean(axis=1) + factor * logs.std(axis=1, ddof=1)
    kept = np.mean(limits >= 0.1 * 2.3263)  # the true 99th percentile
    assert 0.94 < kept < 0.96
