"""The median of several launches: how steady it is, and where its limit lies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from postprocess.stats.detection import (
    compute_detection_probability,
    compute_limit_factor,
    compute_median_efficiency,
    compute_standard_error,
)
from scipy.stats import t as student

from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.stats.band import SLOW_ALPHA, compute_band

CASE = Case("laptop", "cpu", "mpich", "mpicost", "bcast", 0, "flush", "window", 2, 2, 8)


@pytest.mark.parametrize("median_of", range(1, 21))
def test_medians_are_as_steady_as_said(median_of: int):
    drawn = np.median(np.random.default_rng(1).normal(size=(40_000, median_of)), axis=1)
    assert compute_median_efficiency(median_of) == pytest.approx(drawn.std(), rel=0.015)


def test_known_medians():
    """Of one value, of the mean of two, and of three: 1 - sqrt(3) / pi (David and Nagaraja, section 3.2)."""
    found = [compute_median_efficiency(median_of) ** 2 for median_of in (1, 2, 3)]
    assert found == pytest.approx([1, 0.5, 1 - math.sqrt(3) / math.pi], rel=1e-6)


def test_the_limit_of_one_launch_is_the_prediction_limit():
    expected = student.ppf(0.97, 19) * math.sqrt(1 + 1 / 20)
    assert compute_limit_factor(20, 19.0, 0.03) == pytest.approx(expected, rel=1e-12)


@given(st.integers(2, 60), st.floats(0, 40), st.integers(2, 20))
def test_medians_accuse_the_healthy_no_more_often_than_launches(launches, kin, median_of):
    degrees = launches - 1 + kin
    single, limit = (
        compute_limit_factor(launches, degrees, SLOW_ALPHA, each) for each in (1, median_of)
    )
    error = compute_standard_error(launches, median_of)
    assert student.ppf(1 - SLOW_ALPHA, degrees) * error <= limit * (1 + 1e-9)  # screened
    assert limit <= single
    by_launches, by_medians = (
        compute_detection_probability(-factor, launches, degrees, each)
        for factor, each in ((single, 1), (limit, median_of))
    )
    assert by_medians <= by_launches * (1 + 1e-4) or limit == single


def test_the_band_of_a_median_lies_within_that_of_a_launch():
    reference = Reference(CASE, 1e-5, 0.1, 20)
    one, three, nine = (compute_band(reference, median_of=each) for each in (1, 3, 9))
    assert one.upper > three.upper > nine.upper > reference.center
    assert one.lower < three.lower < nine.lower < reference.center
