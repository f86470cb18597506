"""How steady the median of several launches is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from postprocess.stats.sessions import compute_median_efficiency


@pytest.mark.parametrize("median_of", range(1, 21))
def test_medians_are_as_steady_as_said(median_of: int):
    drawn = np.median(np.random.default_rng(1).normal(size=(40_000, median_of)), axis=1)
    assert compute_median_efficiency(median_of) == pytest.approx(drawn.std(), rel=0.015)


def test_known_medians():
    """Of one value, of the mean of two, and of three: 1 - sqrt(3) / pi (David and Nagaraja, section 3.2)."""
    found = [compute_median_efficiency(median_of) ** 2 for median_of in (1, 2, 3)]
    assert found == pytest.approx([1, 0.5, 1 - math.sqrt(3) / math.pi], rel=1e-6)
