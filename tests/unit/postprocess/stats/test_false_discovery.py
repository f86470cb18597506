import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from postprocess.stats.false_discovery import compute_q_values


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_q_values_are_those_of_scipy(chances):
    assert compute_q_values(chances) == pytest.approx(false_discovery_control(chances), rel=1e-12, abs=0)


def test_the_least_likely_of_many_is_told_by_its_number():
    assert compute_q_values([0.5, 0.01, 0.5, 0.5]).tolist() == [0.5, 0.04, 0.5, 0.5]
    assert compute_q_values(np.zeros(0)).size == 0


@pytest.mark.parametrize("odd", [float("nan"), -0.1, 1.5, float("inf")])
def test_what_is_not_a_probability_does_not_hide_all_others(odd: float):
    with pytest.raises(ValueError, match="between 0 and 1"):
        compute_q_values([0.001, odd])
