"""One value, one reference, one word."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.bands import band
from postprocess.cases import Case
from postprocess.judge import judge
from postprocess.references import Reference
from postprocess.statistics import Summary
from postprocess.verdicts import Verdict

CASE = Case("laptop", "cpu", "mpich", "mpicost", "bcast", 0, "flush", "window", 2, 2, 8)
SUMMARY = Summary(1e-6, 1e-6, 1e-6, 2e-6, 3e-6, 45, 7, 5, True, False)
SETTLED = Reference(CASE, 1e-5, 0.03, 20)
PROVISIONAL = Reference(CASE, 1e-5, 0.03, 5)


def ruling(value, known=SETTLED, resolution=0.0, fastest=None):
    """The verdict on a headline; every trial took as long unless one is said to be the fastest."""
    trial = value if fastest is None and math.isfinite(value) else fastest
    summary = replace(SUMMARY, minimum=SUMMARY.minimum if trial is None else trial)
    result = judge(CASE, value, summary, known, resolution)
    assert result.case == CASE
    assert repr(result.summary) == repr(summary)
    assert result.unit == "s"
    assert "\n" not in result.reason
    assert bool(result.reason) == (result.verdict is not Verdict.PASS)
    return result


def test_inside_the_band_is_pass():
    result = ruling(1.02e-5)
    assert (result.verdict, result.reason) == (Verdict.PASS, "")
    limits = band(SETTLED)
    assert result.band == (limits.lower, limits.upper)
    assert (result.value, result.reference) == (1.02e-5, 1e-5)
    assert (result.launches, result.reference_launches) == (1, 20)


def test_above_the_band_is_regressed():
    result = ruling(1.5e-5)
    assert result.verdict is Verdict.REGRESSED
    limit = band(SETTLED).upper * 1e6
    assert result.reason == (
        f"15 us is 1.5 times its reference 10 us of 20 launches, above the limit {limit:.4g} us"
    )
    assert (result.value, result.reference, result.reference_launches) == (1.5e-5, 1e-5, 20)


def test_far_below_the_band_is_fast():
    result = ruling(0.5e-5)
    assert result.verdict is Verdict.FAST
    assert "5 us is 0.5 times its reference 10 us of 20 launches, below the limit" in result.reason


@pytest.mark.parametrize("known", [SETTLED, PROVISIONAL])
def test_a_limit_is_inside(known):
    limits = band(known)
    inside = Verdict.PROVISIONAL if known is PROVISIONAL else Verdict.PASS
    assert ruling(limits.upper, known).verdict is inside
    assert ruling(limits.lower, known).verdict is inside
    assert ruling(math.nextafter(limits.upper, 1), known).verdict is Verdict.REGRESSED
    assert ruling(math.nextafter(limits.lower, 0), known).verdict is Verdict.FAST


def test_few_launches_can_only_assert_gross_changes():
    result = ruling(1.9e-5, PROVISIONAL)
    assert result.verdict is Verdict.PROVISIONAL
    assert result.reason == "the reference has 5 launches of 10 needed; inside 5 to 20 us"
    assert result.reference_launches == 5
    assert ruling(2.1e-5, PROVISIONAL).verdict is Verdict.REGRESSED
    assert ruling(0.4e-5, PROVISIONAL).verdict is Verdict.FAST


def test_provisional_reference_does_not_condemn_for_a_few_slow_trials():
    limit = band(PROVISIONAL).upper
    result = ruling(1e-3, PROVISIONAL, fastest=limit)
    assert result.verdict is Verdict.PROVISIONAL and result.beyond
    assert "above the limit 20 us; but the fastest trial, 20 us, is not" in result.reason
    slower = ruling(1e-3, PROVISIONAL, fastest=math.nextafter(limit, 1))
    assert slower.verdict is Verdict.REGRESSED and slower.beyond


def test_settled_reference_condemns_for_the_headline_alone():
    assert ruling(1.5e-5, SETTLED, fastest=1e-6).verdict is Verdict.REGRESSED


def test_inside_the_band_is_not_beyond():
    assert not ruling(1.02e-5).beyond
    assert ruling(0.5e-5).beyond
    assert not ruling(1e-5, None).beyond


def test_one_launch_is_a_launch():
    result = ruling(1e-5, Reference(CASE, 1e-5, 0.0, 1))
    assert result.reason.startswith("the reference has 1 launch of 10 needed")


def test_nothing_to_hold_it_against():
    result = ruling(1e-5, None)
    assert result.verdict is Verdict.NO_REFERENCE
    assert "calibrate" in result.reason
    assert (result.value, result.reference, result.band) == (1e-5, None, None)
    assert (result.launches, result.reference_launches) == (1, 0)


@pytest.mark.parametrize("name", [field.name for field in fields(Case)])
def test_the_reference_of_another_case_is_not_comparable(name):
    value = getattr(CASE, name)
    other = replace(CASE, **{name: value + 1 if isinstance(value, int) else value + "x"})
    result = ruling(1e-5, replace(SETTLED, case=other))
    assert result.verdict is Verdict.NOT_COMPARABLE
    assert result.reason.startswith(f"{name} is {value} and the reference is of ")
    assert (result.value, result.reference, result.band) == (1e-5, None, None)
    assert (result.launches, result.reference_launches) == (1, 0)


def test_the_reference_in_another_unit_is_not_comparable():
    result = ruling(1e-5, replace(SETTLED, unit="us"))
    assert result.verdict is Verdict.NOT_COMPARABLE
    assert "'us'" in result.reason


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0, -1e-6])
@pytest.mark.parametrize("known", [SETTLED, PROVISIONAL, None])
def test_what_is_no_time_is_incorrect_whatever_the_reference(value, known):
    result = ruling(value, known)
    assert result.verdict is Verdict.INCORRECT
    assert "is not a time" in result.reason
    assert result.value is None, "nothing that a summary file cannot hold"


def test_two_ticks_of_a_coarse_timer_are_inside():
    assert ruling(1.15e-5).verdict is Verdict.REGRESSED
    assert ruling(1.15e-5, resolution=1e-6).verdict is Verdict.PASS
    assert ruling(1.25e-5, resolution=1e-6).verdict is Verdict.REGRESSED


def test_a_case_without_trials_has_no_summary():
    assert judge(CASE, 1e-5, None, SETTLED, 0.0).summary is None


def test_a_timer_is_as_fine_as_can_be_unless_said_otherwise():
    assert judge(CASE, 1.5e-5, None, SETTLED).verdict is Verdict.REGRESSED


POSITIVE = st.floats(min_value=1e-9, max_value=1.0)


@given(POSITIVE, POSITIVE, POSITIVE, st.floats(0, 1), st.integers(1, 40))
def test_slower_is_never_judged_better(one, other, center, spread, launches):
    known = Reference(CASE, center, spread if launches > 1 else 0.0, launches)
    inside = Verdict.PROVISIONAL if known.provisional else Verdict.PASS
    order = [Verdict.FAST, inside, Verdict.REGRESSED]
    faster, slower = sorted([one, other])
    ranks = [order.index(judge(CASE, value, None, known).verdict) for value in (faster, slower)]
    assert ranks == sorted(ranks)


@given(POSITIVE, st.floats(0, 1), st.integers(2, 40))
def test_the_reference_itself_is_never_regressed(center, spread, launches):
    known = Reference(CASE, center, spread, launches)
    assert judge(CASE, center, None, known).verdict in (Verdict.PASS, Verdict.PROVISIONAL)


@pytest.mark.parametrize("known", [None, SETTLED, PROVISIONAL])
@pytest.mark.parametrize("value", [1e-5, 1e-3, 1e-7, math.nan])
def test_every_ruling_is_an_entry_of_the_summary_file(value, known):
    entry = ruling(value, known).entry()
    assert json.loads(json.dumps(entry, allow_nan=False)) == entry
