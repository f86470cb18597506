"""The q-values: the same as SciPy's, and computed without what is slow to load."""

import subprocess
import sys

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from postprocess.stats.q_values import compute_q_values
from tests.support.paths import ROOT


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_they_are_those_of_scipy(probabilities: list[float]):
    expected = scipy.stats.false_discovery_control(probabilities)
    np.testing.assert_allclose(compute_q_values(probabilities), expected, rtol=1e-12)


def test_of_none_there_are_none():
    assert compute_q_values([]).size == 0


@pytest.mark.parametrize("odd", [-0.1, 1.1, float("nan")])
def test_what_is_no_probability_is_refused(odd: float):
    with pytest.raises(ValueError, match="not all are probabilities"):
        compute_q_values([0.5, odd])


def test_cases_are_judged_without_what_is_slow_to_load():
    code = """
import sys
from postprocess.base.formats import SECONDS
from postprocess.judging.evaluate import judge_case
from postprocess.model.measurement import Measurement
from postprocess.model.reference import Reference
from postprocess.stats.detection import add_q_values
from tests.support.factories.launch import case
reference = Reference(case(), 1e-5, 0.03, 20)
(result,) = add_q_values([judge_case(case(), Measurement(1.1e-5, SECONDS, 1.1e-5), reference)])
assert result.q > 0
sys.exit("scipy.stats" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
