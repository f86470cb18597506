"""Two units, each with the direction that is better."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.base.units import MEGABYTES, SECONDS, compute_slowdown, find_better_direction

POSITIVE = st.floats(min_value=1e-9, max_value=1e9)


@pytest.mark.parametrize("unit", ["", "us", "MB", "MiB/s", "S"])
def test_no_other_unit_has_a_direction(unit: str):
    """None is taken for seconds by accident: a rate would be judged upside down."""
    for ask in (find_better_direction, lambda name: compute_slowdown(1.0, 1.0, name)):
        with pytest.raises(ValueError, match=f"unit '{unit}' is none of s, MB/s"):
            ask(unit)


@given(POSITIVE, POSITIVE)
def test_a_rate_is_as_slow_as_the_time_that_it_is_the_inverse_of(value, reference):
    slow = compute_slowdown(value, reference, SECONDS)
    assert compute_slowdown(1 / value, 1 / reference, MEGABYTES) == pytest.approx(slow, rel=1e-9)
    assert (slow > 1) == (value / reference > 1)
    assert compute_slowdown(value, value, MEGABYTES) == 1.0
