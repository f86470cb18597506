"""From launches to references, and from there to a file that says the same."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.judging.rules import judge_case
from postprocess.model.measurement import Measurement
from postprocess.model.reference import Reference
from postprocess.model.verdict import Verdict
from postprocess.references import reference_file
from postprocess.stats.band import compute_band, convert_to_reframe
from postprocess.stats.estimate import estimate_exact_references, estimate_references
from tests.support.factories.launch import PLACE, case, origin_of

TIMES = st.floats(min_value=1e-9, max_value=1e3)


@given(st.lists(TIMES, min_size=2, max_size=40))
def test_center_and_spread_are_those_of_the_logarithm(times):
    (reference,) = estimate_references({case(): times})
    logs = [math.log(time) for time in times]
    assert reference.center == pytest.approx(statistics.geometric_mean(times), rel=1e-9)
    assert reference.spread == pytest.approx(statistics.stdev(logs), rel=1e-9, abs=1e-12)
    assert (reference.launches, reference.unit) == (len(times), "s")


def test_one_launch_has_no_spread_and_is_provisional():
    (reference,) = estimate_references({case(): [2e-6]})
    assert (reference.center, reference.spread) == (pytest.approx(2e-6), 0.0)
    assert reference.launches == 1 and reference.few_launches


@pytest.mark.parametrize(("launches", "few"), [(9, True), (10, False)])
def test_ten_launches_are_enough(launches, few):
    (reference,) = estimate_references({case(): [1e-6] * launches})
    assert reference.few_launches is few


def test_cases_come_sorted():
    made = estimate_references({case(size=size): np.array([1e-6]) for size in (1_000_000, 8, 10_000)})
    assert [reference.case.bytes for reference in made] == [8, 10_000, 1_000_000]
    assert estimate_references({}) == []


@pytest.mark.parametrize("times", [[], [0.0], [1e-6, -1e-6], [math.nan], [1e-6, math.inf]])
def test_what_is_no_time_is_refused_by_case(times):
    with pytest.raises(ValueError, match=f"^{case().key}: "):
        estimate_references({case(): times})


# Simulated time, which repeats.


def test_simulated_launches_give_an_exact_reference(tmp_path):
    (reference,) = estimate_exact_references({case(): [3.5e-6, 3.5e-6]})
    assert reference == Reference(case(), 3.5e-6, 0.0, 2, exact=True)
    assert not reference.few_launches
    path = reference_file.locate_references(tmp_path, *PLACE)
    reference_file.write_references(path, [reference], origin_of())
    assert path.read_text().splitlines()[1].split("\t")[-3:] == ["3.5e-06", "exact", "2"]
    assert reference_file.load_references(path, *PLACE) == {case(): reference}


def test_time_that_does_not_repeat_is_not_exact():
    with pytest.raises(ValueError, match="simulated time does not repeat"):
        estimate_exact_references({case(): [3.5e-6, 3.6e-6]})


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (1e-3, Verdict.PASS),
        (1.000001e-3, Verdict.PASS),  # one nanosecond of a clock
        (1.00001e-3, Verdict.REGRESSED),
        (0.99999e-3, Verdict.FAST),
    ],
)
def test_any_difference_from_an_exact_reference_is_seen(value, verdict):
    (reference,) = estimate_exact_references({case(): [1e-3]})
    assert judge_case(case(), Measurement(value), reference, resolution=1e-6).verdict == verdict
    limits = compute_band(reference)
    _, _, upper, _ = convert_to_reframe(reference, limits)
    assert (value <= reference.center * (1 + upper)) == (verdict != Verdict.REGRESSED)
