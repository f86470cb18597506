"""What a reader wants to know first."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.base.formats import SECONDS, plural
from postprocess.judging.evaluate import judge_case
from postprocess.model.case import Case
from postprocess.model.groups import group_cases
from postprocess.model.measurement import Measurement
from postprocess.model.reference import Prior, Reference
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.report import first_screen, overview
from postprocess.report import overview as view
from postprocess.results.summary import parse_summary
from tests.support.factories import report as samples
from tests.support.factories import size as sizes


@pytest.fixture(scope="module")
def night():
    return parse_summary(samples.bad_night().document())


def test_half_the_bandwidth_is_as_bad_as_twice_the_time():
    slower, slow, halved = (
        CaseResult(case, Verdict.REGRESSED, value=value, reference=1e-6, unit=unit)
        for case, value, unit in (
            (sizes.cases(sizes=(8,))[0], 3e-6, "s"),
            (sizes.cases(sizes=(16,))[0], 1.9e-6, "s"),
            (sizes.cases(sizes=(32,))[0], 0.5e-6, "MB/s"),
        )
    )
    assert overview.sort_by_severity([slow, halved, slower]) == [slower, halved, slow]


def test_cases_on_other_cores_are_one_group_with_the_range_of_how_far():
    planned = sizes.cases(sizes=(8, 16, 32))[:3]
    moved = [
        CaseResult(case, Verdict.PROVISIONAL, "ranks lay elsewhere", value=1e-6, latency_ratio=ratio)
        for case, ratio in zip(planned, (0.33, 0.1, 0.2), strict=True)
    ]
    ((what, told, number),) = overview.count_not_judged(moved)
    assert (what, number) == ("not judged", 3)
    assert (
        told
        == "ranks lay elsewhere; from rank to rank a word takes 0.1 to 0.33 times as long as in the reference"
    )
    assert "word takes 0.2 times as long" in overview.explain(moved[2])


@pytest.mark.parametrize("by_mean", [False, True])
def test_q_stands_only_beside_a_case_called_by_the_value_that_it_is_of(by_mean):
    slow = CaseResult(CASE, Verdict.REGRESSED, "slow", value=2e-6, reference=1e-6, q=0.99, by_headline=by_mean)
    assert ("q = " in overview.explain(slow)) is not by_mean


def test_many_cases_that_did_not_fail_are_one_group_and_few_have_their_own_reasons(night):
    slow = [
        CaseResult(
            case, Verdict.CLEARED, f"slow for reason {n % 6}", value=2e-6, reference=1e-6, band=(0.0, 1.1e-6)
        )
        for n, case in enumerate(sizes.cases()[:7])
    ]
    crashed = [replace(each, verdict=Verdict.CRASHED) for each in slow[:6]]
    few, many = (overview.list_groups(replace(night, results=(*crashed, *slow[:n]))) for n in (5, 7))
    assert [len(group.results) for group in few] == 11 * [1]
    assert [group.reason for group in few][6:] == [each.reason for each in slow[:5]]
    assert [len(group.results) for group in many] == [*6 * [1], 7]
    assert many[-1].reason == "slow at first, and not in fresh launches"
    caused = [replace(each, cause=f"common cause {n}") for n, each in enumerate(slow[:6])]
    apart = overview.list_groups(replace(night, results=tuple(caused)))
    assert [len(group.results) for group in apart] == 6 * [1]


def test_many_cases_of_one_kind_do_not_hide_the_others():
    planned = sizes.cases()
    crashed = [sizes.lost(case) for case in planned if case.program == "imb"]
    slow = [sizes.measured(case, 3.0) for case in planned if case.program == "osu"]
    chosen = overview.sample_each_verdict([*crashed, *slow], 20)
    assert [str(r.verdict) for r in chosen] == 10 * ["crashed"] + 10 * ["regressed"]
    alone = overview.sample_each_verdict([*crashed, slow[0]], 20)
    assert [str(r.verdict) for r in alone] == 19 * ["crashed"] + ["regressed"]
    other = [sizes.lost(case) for case in planned if case.program == "osu"][-1]
    assert other in overview.sample_each_verdict([*crashed, other], 2)


@given(
    st.deferred(lambda: st.lists(st.sampled_from(sizes.three_programs().results), unique_by=id)),
    st.integers(0, 40),
)
def test_of_each_kind_some_are_chosen_the_worst_first(results, most):
    chosen = overview.sample_each_verdict(results, most)
    assert len(chosen) == min(most, len(results))
    assert chosen == [r for r in overview.sort_by_severity(results) if r in chosen]
    kinds = {(r.verdict, r.case.program) for r in results}
    assert len({(r.verdict, r.case.program) for r in chosen}) == min(most, len(kinds))


def test_cases_of_a_lost_launch_are_one_trouble_and_measured_ones_each_their_own(night):
    failure_groups = group_cases(overview.sort_by_severity(night.failed))
    sizes = [(str(trouble.verdict), len(trouble.results)) for trouble in failure_groups]
    assert sizes == [*(("incorrect", 1), ("timeout", 6), ("regressed", 1), ("regressed", 1), ("regressed", 1))]
    assert sum(len(trouble.results) for trouble in failure_groups) == len(night.failed)


@pytest.mark.parametrize(
    ("reasons", "told"),
    [
        ({"no Spack; ./plumbline doctor says why": 1204}, "1,204 skipped: no Spack"),
        ({"": 2}, "2 skipped: no reason given"),
        ({"no Spack": 3, "2 processes only": 1}, "4 skipped: 3 no Spack; 1 2 processes only"),
        ({"a": 5, "b": 4, "c": 3, "d": 2, "e": 1}, "15 skipped: 5 a; 4 b; 3 c; 3 for 2 other reasons"),
        ({"x" * 100: 1}, f"1 skipped: {'x' * 57}..."),
    ],
)
def test_the_reasons_for_skipping_are_in_the_line_that_counts(reasons, told, night):
    planned = iter(sizes.cases(routines=40))
    results = [
        CaseResult(next(planned), Verdict.SKIPPED, reason)
        for reason, number in reasons.items()
        for _ in range(number)
    ]
    assert overview.format_totals(results) == f"{plural(len(results), 'case')}: {told}"
    line = overview.format_last_line(replace(night, results=tuple(results), exit_status=1))
    assert line.endswith(f" {told} (exit status 1)")


def test_fresh_launches_leave_the_decision_to_their_session(night):
    slow = CaseResult(CASE, Verdict.SUSPECT, "slow", value=2e-6, reference=1e-6)
    fresh = replace(night, mode="nightly-fresh", results=(slow,), exit_status=0, strict=False, causes=())
    told = "1 of 1 case suspect: the session that these fresh launches were taken for decides"
    assert first_screen.conclude_session(fresh, ()) == ("fair", told)
    assert not [proposal for proposal in first_screen.propose_next(fresh) if "confirm" in proposal.command]


def test_a_common_cause_alone_is_told_as_what_failed(night):
    fine = [r for r in night.results if r.verdict == Verdict.PASS]
    summary = replace(night, results=tuple(fine), causes=("cpu: slower",), exit_status=1)
    assert overview.format_headline(summary) == "No case failed by itself, but many are slower together"


@pytest.mark.parametrize(
    ("verdicts", "detectable", "tone"),
    [
        ([Verdict.PASS, Verdict.CLEARED], 0.2, "good"),
        ([Verdict.PASS, Verdict.SUSPECT], 0.2, "fair"),
        ([Verdict.PROVISIONAL, Verdict.SKIPPED], 0.2, "fair"),
        ([Verdict.PASS, Verdict.PASS], 1.5, "fair"),
        ([Verdict.PASS, Verdict.PASS], None, "fair"),
        ([Verdict.PASS, Verdict.REGRESSED], 0.2, "bad"),
        ([], 0.2, "bad"),
    ],
)
def test_green_is_only_what_was_asserted_and_could_have_failed(verdicts, detectable, tone, night):
    cases = sizes.cases(sizes=(8, 16))
    results = [
        CaseResult(case, verdict, reference=1e-6, detectable=detectable, spread=0.1)
        for case, verdict in zip(cases, verdicts, strict=False)
    ]
    summary = replace(night, results=tuple(results), exit_status=0, strict=False)
    assert overview.find_tone(summary) == tone


CASE = Case("local", "cpu", "mpich-5.0.2", "mpicost", "bcast", 0, "flush", "window", 2, 2, 8)


def result(size: int = 8, median_of: int = 1, **more) -> CaseResult:
    case = replace(CASE, bytes=size)
    facts = {"center": 1e-5, "spread": 0.03, "launches": 20, "prior": Prior(0.03, 6.0)} | more
    reference = Reference(case, **facts)
    value = reference.center
    return judge_case(case, Measurement(value, SECONDS, value), reference, 0.0, median_of)


@pytest.mark.parametrize(
    ("detectable", "name"),
    [(0.01, "5%"), (0.05, "5%"), (0.051, "10%"), (0.1, "10%"), (1.0, "100%"), (1.1, "more")],
)
def test_a_bound_belongs_to_its_class(detectable: float, name: str):
    assert overview.CLASSES[overview.classify_detectable(detectable)] == name
    assert overview.CLASSES[overview.classify_detectable(None)] == "nothing"


def test_a_row_counts_what_sees_nothing_as_the_worst():
    limits = (0.04, 0.03), (0.08, 0.06), (0.3, 0.1), (None, None)
    some = [replace(result(8), detectable=a, detectable_soon=b) for a, b in limits]
    found = overview.build_sensitivity_row(("mpicost",), some)
    assert (found.cases, found.seen, found.shares) == (4, 3, (1, 1, 0, 1, 0, 0, 1))
    assert (found.median, found.most) == (0.08, None)
    assert overview.build_sensitivity_row((), some[:3]).most == 0.3


def test_only_what_was_held_against_something_is_counted():
    lost = CaseResult(CASE, Verdict.CRASHED, "signal 11")
    blind = result(launches=1, spread=0.0, prior=None)
    old = replace(result(), detectable=None, spread=None, degrees=None)  # of an earlier Plumbline
    assert overview.select_with_power([lost, blind, old, result(16)]) == [blind, result(16)]
    assert overview.summarise_sensitivity([lost, old]) == ""


def test_one_line_tells_what_is_called_tonight_and_soon():
    limits = (0.1, 0.05, 0.05), (0.3, 0.1, 0.1), (1.5, 0.5, 0.1), (None, None, None)
    names = ("detectable", "detectable_soon", "detectable_learned")
    some = [replace(result(8), **dict(zip(names, limit, strict=True))) for limit in limits]
    tonight = "called from tonight on, of 4 cases: 2 times slower in 2, 50% in 2, 20% in 1, 10% in 1"
    assert overview.summarise_sensitivity(some) == (
        f"{tonight}; if it lasts three nights: 50% in 3, 20% in 2, 10% in 2; "
        "within 10 nights, by references of 10: 50% in 3, 20% in 3, 10% in 3"
    )
    assert overview.summarise_sensitivity(some[2:]).startswith(
        "called from tonight on, of 2 cases: 2 times slower in none, 2.5 times as slow at best; if"
    )
    assert "2 times slower in all" in overview.summarise_sensitivity(some[:2])


def test_the_worst_come_first():
    some = [result(8 * n, spread=0.02 + n / 100, prior=None) for n in range(30)]
    some.append(result(8000, launches=1, spread=0.0, prior=None))
    first, second, *_ = shown = view.list_least_sensitive(some)
    assert len(shown) == view.MOST_WORST
    assert first.detectable is None
    assert second.detectable == max(each.detectable or 0 for each in some)
