"""The nightly verdict keeps what it promises, on simulated nights with known noise."""

from __future__ import annotations

import pytest
from simulated_nights import NOISES, mean


@pytest.mark.parametrize("noise", NOISES)
def test_second_looks_leave_less_than_a_false_alarm_in_ten_nights(noise: str):
    found = mean(100, NOISES[noise], launches=20)
    assert 0.005 < found.screened < 0.035
    assert found.regressed < 0.0001
    assert found.regressed < found.flat_10 / 20


@pytest.mark.parametrize("noise", NOISES)
def test_a_fifth_slower_is_seen(noise: str):
    assert mean(5, NOISES[noise], launches=20, slower=0.2).regressed > 0.9


def test_a_tenth_slower_is_seen_better_than_by_a_flat_band():
    found = mean(10, NOISES["normal"], launches=20, slower=0.1)
    assert found.regressed > 0.7 > found.flat_10 + 0.1
    assert found.typical > 0.93
