"""How unlikely a value is, and how many alarms among such would be false."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

from postprocess.base.units import MEGABYTES, SECONDS
from postprocess.judging.rules import judge_case
from postprocess.model.case import Case
from postprocess.model.measurement import Measurement
from postprocess.model.reference import Reference
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.stats.false_discovery import add_q_values, compute_slow_probability

CASE = Case("laptop", "cpu", "mpich", "mpicost", "bcast", 0, "flush", "window", 2, 2, 8)


def judged(times: float, size: int = 8, unit: str = SECONDS, **more) -> CaseResult:
    """A case that is so many times as slow as its reference."""
    case = replace(CASE, bytes=size)
    reference = Reference(case, **({"center": 1e-5, "spread": 0.03, "launches": 20} | more), unit=unit)
    value = reference.center * times if unit == SECONDS else reference.center / times
    return judge_case(case, Measurement(value, unit, value), reference)


@pytest.mark.parametrize("unit", [SECONDS, MEGABYTES])
def test_the_probability_is_that_of_the_prediction_limit(unit):
    result = judged(1.08, unit=unit)
    standard = math.log(1.08) / (0.03 * math.sqrt(1 + 1 / 20))
    assert compute_slow_probability(result) == pytest.approx(student.sf(standard, 19))
    assert compute_slow_probability(judged(1.0, unit=unit)) == pytest.approx(0.5)
    assert compute_slow_probability(judged(0.5, unit=unit)) > 0.99


@pytest.mark.parametrize(
    "result",
    [
        CaseResult(CASE, Verdict.SKIPPED, "no Spack"),
        judged(1.5, launches=1, spread=0.0),
        judged(1.5, launches=1, spread=0.0, exact=True),
        judged(1.5, spread=0.0),  # printed numbers that never differed
    ],
)
def test_what_nobody_knows_the_scatter_of_has_none(result):
    assert compute_slow_probability(result) is None
    assert add_q_values([result]) == [result]


def test_q_is_that_of_benjamini_and_hochberg_in_any_order():
    times = [1.0, 1.2, 0.9, 1.05, 1.1]
    results = [judged(each, size) for size, each in zip((8, 16, 24, 32, 40), times, strict=True)]
    results.insert(2, CaseResult(replace(CASE, bytes=48), Verdict.CRASHED, "signal 11"))
    told = add_q_values(results)
    assert [replace(each, q=None) for each in told] == results
    known = sorted(
        (p, each.q) for each in told if (p := compute_slow_probability(each)) is not None and each.q is not None
    )
    assert len(known) == 5
    smallest = math.inf
    for rank, (p, q) in reversed(list(enumerate(known, 1))):
        smallest = min(smallest, p * 5 / rank)
        assert q == pytest.approx(smallest)


def test_one_slow_case_among_many_stands_out_and_chance_does_not():
    random = np.random.default_rng(1)
    healthy = [judged(math.exp(random.normal(0, 0.03)), 8 * n) for n in range(1, 300)]
    *others, slow = add_q_values([*healthy, judged(1.5, 0)])
    assert slow.q < 0.001
    assert min(each.q for each in others) > 0.05


def test_a_case_without_a_probability_is_incorrect_and_spoils_no_other():
    odd = replace(judged(1.2, 16), spread=math.nan)
    told = add_q_values([judged(1.1), odd, replace(judged(1.0, 24), value=-1.0)])
    assert [each.verdict for each in told[1:]] == [Verdict.INCORRECT] * 2
    found = told[1].reason
    assert found == "cannot be judged: ValueError: nan is no probability; its trials are kept"
    assert told[0].q is not None
