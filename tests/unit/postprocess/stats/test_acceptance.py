"""Rows of an acceptance: met, missed, undecided, with looks that are fixed beforehand."""

import numpy as np
import pytest

from postprocess.stats.acceptance import (
    EXACT,
    NORMAL,
    ORDERED,
    Open,
    RowVerdict,
    choose_acceptance_looks,
    compute_tolerance_factor,
    compute_tolerance_limit,
    find_order_statistic,
    judge_acceptance,
    simulate_characteristic,
)

LOOKS = (5, 10, 20)
WAVE = [0.01 * value for value in (-1, 1, -0.5, 0.5, 0.0)]


def judge(shift: float, count: int = 5, **how: bool):
    values = [shift + WAVE[number % 5] for number in range(count)]
    return judge_acceptance(values, LOOKS, 0.05, 0.05, **how)


@pytest.mark.parametrize(("least", "most", "looks"), [(5, 20, LOOKS), (10, 25, (10, 20, 25)), (7, 7, (7,))])
def test_looks_double_up_to_the_most(least: int, most: int, looks: tuple[int, ...]) -> None:
    assert choose_acceptance_looks(least, most) == looks


@pytest.mark.parametrize(
    ("shift", "verdict"), [(-0.05, RowVerdict.MET), (0.05, RowVerdict.MISSED), (-0.005, RowVerdict.UNDECIDED)]
)
def test_a_row_is_decided_by_its_confidence_limit(shift: float, verdict: RowVerdict) -> None:
    found = judge(shift)
    assert found.verdict == verdict
    assert found.lower < found.mean < found.upper


def test_an_undecided_row_says_how_many_launches_more() -> None:
    """To the look that would decide; where no look would, how many launches in all."""
    found = judge(-0.0075)
    assert (found.why, found.launches_more, found.needed) == (Open.LOOK, 15, 12)
    assert judge(-0.0075, 20).verdict == RowVerdict.MET
    beyond = judge(-0.005)
    assert (beyond.why, beyond.launches_more, beyond.needed) == (Open.MOST, None, 26)
    never = judge(0.0)
    assert (never.why, never.launches_more, never.needed) == (Open.MOST, None, None)
    early = judge(-0.05, 3)  # before the first look
    assert (early.verdict, early.why, early.launches_more) == (RowVerdict.UNDECIDED, Open.LOOK, 2)


def test_what_was_decided_at_a_look_stays_so_and_between_looks_nobody_looks() -> None:
    values = [-0.05 + each for each in WAVE] + [0.5] * 5
    assert judge_acceptance(values, LOOKS, 0.05, 0.05).verdict == RowVerdict.MET
    late = [-0.005 + each for each in WAVE] + [-0.3] * 4  # nine launches: the look at five counts
    assert judge_acceptance(late, LOOKS, 0.05, 0.05).verdict == RowVerdict.UNDECIDED


def test_simulated_time_decides_at_once() -> None:
    assert judge_acceptance([0.0], LOOKS, 0.05, 0.05, exact=True).verdict == RowVerdict.MET
    assert judge_acceptance([1e-6], LOOKS, 0.05, 0.05, exact=True).verdict == RowVerdict.MISSED


def test_the_worst_launch_decides_where_rules_ask_for_it() -> None:
    assert judge(-0.02, worst=True).verdict == RowVerdict.MET
    assert judge(-0.02, 4, worst=True).launches_more == 1
    assert judge(-0.009, worst=True).verdict == RowVerdict.MISSED


def test_the_characteristic_falls_from_one_to_nothing() -> None:
    drawn = simulate_characteristic(0.03, 0.05, LOOKS, 0.05, 0.05, (-0.1, 0.0, 0.05, 0.2))
    assert drawn.met[0] == 1.0 and drawn.met[3] == 0.0 and drawn.missed[3] == 1.0
    assert drawn.met[2] <= 0.05 and drawn.missed[2] <= 0.05  # just at the limit
    assert list(drawn.met) == sorted(drawn.met, reverse=True)
    assert drawn.launches[1] < 20


def test_many_rows_at_once_are_judged_as_one() -> None:
    from postprocess.stats.acceptance import _judge_many

    d = np.random.default_rng(5).normal(-0.01, 0.03, (60, 20))
    verdicts, taken = _judge_many(d, LOOKS, 0.05, 0.05)
    names = {-1: RowVerdict.MET, 0: RowVerdict.UNDECIDED, 1: RowVerdict.MISSED}
    for row, verdict, launches in zip(d, verdicts, taken, strict=True):
        assert judge_acceptance(row[:launches], LOOKS, 0.05, 0.05).verdict == names[int(verdict)]


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
