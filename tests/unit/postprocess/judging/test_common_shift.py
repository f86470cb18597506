"""Tests of a common shift held against what launches and sessions have in common."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from postprocess.judging.common_cause import ALPHA
from postprocess.judging.common_shift import JudgedSlowdown, estimate_shift
from postprocess.model.verdict import CaseResult, Verdict
from tests.support.factories.launch import case


def cases(shift: float) -> list[JudgedSlowdown]:
    """Cases of one burst of 20 launches that scatter by 2%, all slower by as much."""
    random = np.random.default_rng(1)
    found = []
    for number in range(40):
        result = CaseResult(
            case(size=8 + number), Verdict.PASS, value=1.0, reference=1.0, reference_launches=20
        )
        moves = 0.02 * random.normal(size=20)
        told = tuple((moves - moves.mean()).tolist())
        found.append(JudgedSlowdown(result, (), shift, 0.02 * 1.05**0.5, told))
    return found


def test_a_slow_hour_is_no_common_cause():
    """Launches of one burst do not show how far all cases move together from hour to hour."""
    assert estimate_shift(cases(0.06)).is_clear(ALPHA)
    wider = [replace(each, error=0.06, session=0.88) for each in cases(0.06)]
    assert not estimate_shift(wider).is_clear(ALPHA)
    assert estimate_shift([replace(each, log=0.5) for each in wider]).is_clear(ALPHA)
