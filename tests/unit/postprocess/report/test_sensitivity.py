"""What a night would miss, and what it would cost to see it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from postprocess.stats.planning.sample_size import (
    PLANS,
    TARGET,
    Plan,
    choose_cheapest_plan,
    compute_detectable_under,
    count_month_launches,
)

from postprocess.base.units import MEGABYTES, SECONDS
from postprocess.judging.rules import judge_case
from postprocess.model.case import Case, LaunchPlace
from postprocess.model.measurement import Measurement
from postprocess.model.reference import Prior, Reference
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.report import sensitivity as view
from postprocess.report import session_report, terminal
from postprocess.report.sensitivity import (
    CLASSES,
    assess_sensitivity,
    build_offers,
    build_sensitivity_row,
    classify_detectable,
    measure_place_seconds,
    select_with_power,
    summarise_sensitivity,
)
from postprocess.results.summary import SummaryLaunch
from postprocess.results.summary_file import parse_summary
from tests.support.factories import report as samples

CASE = Case("local", "cpu", "mpich-5.0.2", "mpicost", "bcast", 0, "flush", "window", 2, 2, 8)
TODAY = Plan(1, 1)  #: no further launch
COARSE = {"center": 1e-6, "resolution": 1e-7}  #: the band is at least a fifth
SECONDS_OF = {LaunchPlace.of(CASE): 10.0}


def result(
    size: int = 8, unit: str = SECONDS, resolution: float = 0.0, median_of: int = 1, **more
) -> CaseResult:
    case = replace(CASE, bytes=size)
    facts = {"center": 1e-5, "spread": 0.03, "launches": 20, "prior": Prior(0.03, 6.0)} | more
    reference = Reference(case, **facts, unit=unit)
    value = reference.center
    return judge_case(case, Measurement(value, unit, value), reference, resolution, median_of)


@pytest.mark.parametrize("unit", [SECONDS, MEGABYTES])
@pytest.mark.parametrize("more", [{}, {"spread": 0.001}, {"launches": 5}, COARSE])
def test_without_a_further_launch_a_case_sees_what_it_sees(unit, more):
    """From the result alone follows what its reference said, floors and all."""
    known = result(unit=unit, **more)
    assert compute_detectable_under(known, TODAY) == pytest.approx(known.detectable)


def test_ten_launches_take_the_width_of_a_provisional_band():
    few = result(launches=5, spread=0.015, prior=Prior(0.015, 6.0))
    assert few.detectable > 3.0
    assert compute_detectable_under(few, Plan(1, 10)) < TARGET
    assert choose_cheapest_plan(few) == Plan(1, 10)


def test_what_differs_too_much_needs_medians_and_what_is_coarse_nothing_helps():
    assert choose_cheapest_plan(result()).median_of > 1
    coarse = result(**COARSE)
    assert all(compute_detectable_under(coarse, plan) > 0.2 for plan in PLANS)
    assert choose_cheapest_plan(coarse) is None
    assert choose_cheapest_plan(result(launches=1, spread=0.0)) is None


@given(st.floats(0.002, 0.2), st.integers(2, 30))
def test_the_cheapest_plan_is_the_cheapest_that_serves(spread: float, launches: int):
    known = result(spread=spread, launches=launches, prior=Prior(spread, 6.0))
    serving = [plan for plan in PLANS if compute_detectable_under(known, plan) <= TARGET]
    best = choose_cheapest_plan(known)
    assert (best is None) == (not serving)
    if best:
        assert compute_detectable_under(known, best) <= TARGET
        found = count_month_launches(best, known)
        assert found == min(count_month_launches(plan, known) for plan in serving)


@given(st.floats(0.002, 0.2), st.sampled_from(PLANS))
def test_more_launches_never_show_less(spread: float, plan: Plan):
    known = result(spread=spread, prior=Prior(spread, 6.0))
    here = compute_detectable_under(known, plan) * (1 + 1e-9)
    assert compute_detectable_under(known, replace(plan, calibration=2 * plan.calibration)) <= here
    assert compute_detectable_under(known, replace(plan, median_of=plan.median_of + 1)) <= here


@pytest.mark.parametrize("resolution", [0.0, 1e-7])
def test_a_plan_promises_what_its_night_tells(resolution: float):
    known = result(spread=0.05, resolution=resolution)
    night = result(spread=0.05, resolution=resolution, median_of=5)
    there = compute_detectable_under(known, Plan(5, 20))
    assert there == pytest.approx(night.detectable) == compute_detectable_under(night, TODAY)
    assert there < known.detectable


def test_launches_that_are_there_are_not_paid_again():
    assert (Plan(1, 20).once(5), Plan(1, 20).once(30), Plan(1, 20).nightly(1)) == (15, 0, 0)
    assert (Plan(3, 20).nightly(1), Plan(3, 20).nightly(3), Plan(3, 20).nightly(5)) == (2, 0, 0)


@pytest.mark.parametrize(
    ("detectable", "name"),
    [(0.01, "5%"), (0.05, "5%"), (0.051, "10%"), (0.1, "10%"), (1.0, "100%"), (1.1, "more")],
)
def test_a_bound_belongs_to_its_class(detectable: float, name: str):
    assert CLASSES[classify_detectable(detectable)] == name
    assert CLASSES[classify_detectable(None)] == "nothing"


def test_a_row_counts_what_sees_nothing_as_the_worst():
    some = [replace(result(8), detectable=each) for each in (0.04, 0.08, 0.3, None)]
    found = build_sensitivity_row(("mpicost",), some)
    assert (found.cases, found.seen, found.shares) == (4, 2, (1, 1, 0, 1, 0, 0, 1))
    assert (found.median, found.most) == (0.08, None)
    assert build_sensitivity_row((), some[:3]).most == 0.3


def test_only_what_was_held_against_something_is_counted():
    lost = CaseResult(CASE, Verdict.CRASHED, "signal 11")
    blind = result(launches=1, spread=0.0)
    old = replace(result(), detectable=None, spread=None, degrees=None)  # of an earlier Plumbline
    assert select_with_power([lost, blind, old, result(16)]) == [blind, result(16)]
    assert summarise_sensitivity([lost, old]) == ""
    found = summarise_sensitivity([blind, result(16, spread=0.001, prior=None)])
    assert found == "a 10% slowdown would be seen in 1 of 2 cases"


def launch(number: int, seconds: float, start: str = "", directory: str = "stage") -> SummaryLaunch:
    rest = ("osu", start, 3, "mpich", "local:cpu", 2, 2)
    return SummaryLaunch(*rest, number, seconds, "ok", "", directory)


def test_the_time_of_a_job_is_counted_once():
    """Every start of a job tells the seconds of the whole job."""
    place = LaunchPlace("local:cpu", "mpich", "osu", 2, 2)
    starts = [launch(n, 10.0 * n, start) for n in (1, 2) for start in ("a", "b", "c")]
    assert measure_place_seconds(starts) == {place: 15.0}
    two_jobs = [launch(1, 4.0, directory="a"), launch(1, 5.0, directory="b")]
    assert measure_place_seconds([*two_jobs, launch(2, 9.0)]) == {place: 9.0}


def test_a_place_is_paid_once_for_all_its_cases():
    some = [result(8 * n, launches=5, spread=0.01, prior=Prior(0.01, 6.0)) for n in range(4)]
    today, ten = build_offers(some, SECONDS_OF)[:2]
    assert (today.seen, today.once, today.nightly) == (0, 0, 0)
    assert (ten.what, ten.seen, ten.once, ten.nightly) == ("calibrate with 10 launches", 4, 5, 0)
    assert (ten.once_seconds, ten.nightly_seconds) == (50.0, 0.0)


def test_the_report_and_the_terminal_tell():
    night = samples.bad_night(samples.few_cases()[::5])
    summary = parse_summary(night.document())
    found = assess_sensitivity(summary)
    assert sum(each.cases for each in found.programs) == sum(each.cases for each in found.rows)
    assert found.line in terminal.render_terminal(summary, 200, False)
    html, markdown = (
        session_report.render_html(summary, {}),
        session_report.render_markdown(summary),
    )
    for page in (html, markdown):
        assert "Detection limits" in page
        assert found.line[1:] in page
        for offer in found.offers:
            assert offer.what in page
    assert html.count('class="sight-') > len(CLASSES)
    old = replace(summary, results=())
    assert assess_sensitivity(old) is None
    assert "Detection limits" not in session_report.render_markdown(old)


def test_the_worst_come_first_with_what_would_help():
    some = [result(8 * n, spread=0.02 + n / 100, prior=None) for n in range(30)]
    some.append(result(8000, launches=1, spread=0.0))
    first, second, *_ = shown = view.list_least_sensitive(some)
    assert len(shown) == view.MOST_WORST
    assert first.detectable is None
    assert view.describe_remedy(first, {}).startswith("calibrate it: a single launch")
    assert second.detectable == max(each.detectable or 0 for each in some)
    assert math.isfinite(second.detectable)
    assert "1 more a night (10 s)" in view.describe_remedy(result(spread=0.028), SECONDS_OF)
