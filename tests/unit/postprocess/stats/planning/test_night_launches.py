"""How many launches of a night: enough for a tenth, no more than are paid, and one where more show nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from postprocess.stats.planning.night_launches import (
    MOST_LAUNCHES,
    compute_detectable,
    count_needed_launches,
    count_showing,
)
from postprocess.stats.planning.sample_size import TARGET

from postprocess.model.case import Case
from postprocess.model.reference import Reference

CASE = Case("laptop", "cpu", "mpich", "mpicost", "bcast", 0, "warm", "window", 2, 2, 8)


def case(spread: float, launches: int = 20) -> Reference:
    return Reference(CASE, 1e-5, spread, launches)


@pytest.mark.parametrize("spread", [0.01, 0.03, 0.035, 0.04])
def test_no_more_than_are_needed_and_enough(spread: float):
    needed = count_needed_launches([case(spread)], MOST_LAUNCHES)
    assert compute_detectable(case(spread), needed) <= TARGET
    assert needed == 1 or compute_detectable(case(spread), needed - 1) > TARGET
    assert (needed == 1) == (spread == 0.01)


def test_no_more_than_are_paid_and_never_none():
    many = [case(spread) for spread in (0.03, 0.035, 0.04)]
    assert count_needed_launches(many, MOST_LAUNCHES) > 3
    assert count_needed_launches(many, 3) <= 3
    assert count_needed_launches(many, 0) == 1
    assert count_needed_launches(many, 1000) <= MOST_LAUNCHES


def test_what_nothing_shows_costs_nothing():
    wild, steady = case(0.5), case(0.01)
    assert count_needed_launches([wild], MOST_LAUNCHES) == 1
    assert count_needed_launches([wild, steady], MOST_LAUNCHES) == 1
    assert count_showing([wild, steady], MOST_LAUNCHES) == 1


@pytest.mark.parametrize(
    "reference",
    [case(0.03, launches=9), case(0.0, launches=1), replace(case(0.0), exact=True)],
    ids=["provisional", "one launch", "simulated"],
)
def test_references_that_say_too_little_or_all_need_one(reference: Reference):
    assert count_needed_launches([reference], MOST_LAUNCHES) == 1
    assert count_needed_launches([], MOST_LAUNCHES) == 1
