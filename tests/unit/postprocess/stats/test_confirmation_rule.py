"""Five of at most six fresh launches condemn, and two clear, in whatever order they come."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from postprocess.stats.confirmation_rule import (
    FINE_TO_CLEAR,
    PASSES,
    SLOW_TO_CONFIRM,
    compute_confirmation_probability,
    is_cleared,
    is_decided,
)

MOST = sum(PASSES)
COURSES = list(product([True, False], repeat=MOST))  #: whether each fresh launch is slow


def counts(course: tuple[bool, ...]) -> tuple[int, int]:
    """Slow and other launches, when nothing is measured any more."""
    slow = fine = 0
    for number in PASSES:
        if not is_decided(slow, fine):
            some = course[slow + fine : slow + fine + number]
            slow, fine = slow + sum(some), fine + len(some) - sum(some)
    return slow, fine


def test_six_launches_decide_whatever_they_say():
    assert (SLOW_TO_CONFIRM, FINE_TO_CLEAR, PASSES) == (5, 2, (2, 3, 1))
    for course in COURSES:
        slow, fine = counts(course)
        assert is_decided(slow, fine)
        assert is_cleared(fine) != (slow >= SLOW_TO_CONFIRM)


def test_passes_that_end_early_say_what_all_launches_would():
    for course in COURSES:
        assert is_cleared(counts(course)[1]) == (sum(course) < SLOW_TO_CONFIRM)


def test_no_launch_is_made_in_vain():
    """Two that are fine end it, and nothing condemns before five are slow."""
    assert counts((False,) * MOST) == (0, 2)
    assert counts((True,) * MOST) == (5, 0)
    assert not is_decided(SLOW_TO_CONFIRM - 1, FINE_TO_CLEAR - 1)


@pytest.mark.parametrize("chance", [0.0, 0.03, 0.5, 0.9, 1.0])
def test_the_probability_is_that_of_all_courses_that_condemn(chance: float):
    each = np.array([1 - chance, chance])
    condemning = (course for course in COURSES if not is_cleared(counts(course)[1]))
    wanted = sum(np.prod([each[int(slow)] for slow in course]) for course in condemning)
    assert compute_confirmation_probability(chance) == pytest.approx(wanted, abs=1e-12)


def test_arrays_are_decided_one_by_one():
    assert is_decided(np.array([5, 4, 0]), np.array([0, 1, 2])).tolist() == [True, False, True]
    assert is_cleared(np.array([1, 2])).tolist() == [False, True]
