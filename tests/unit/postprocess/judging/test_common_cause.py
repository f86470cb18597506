"""One cause of many slow cases: found, narrowed down, told once; and not found where there is none."""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from types import SimpleNamespace

import numpy as np
import pytest

from postprocess.base.formats import MEGABYTES, SECONDS
from postprocess.judging import common_cause, retest
from postprocess.judging.retest import (
    CommonCauseRetest,
    describe_cause,
    describe_controls,
    name_confirmed_causes,
)
from postprocess.model.case import Case, LaunchPlace
from postprocess.model.launch import FinishedLaunch, LaunchOutcome
from postprocess.model.reference import Prior, Reference, SessionEvidence
from postprocess.model.routines.mpicost import CONTROLS, is_control
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.stats.sessions import DAY_SHARE, estimate_session_spread
from tests.support.factories.common import MPIS, Noise, calibrated, cases, causes, night
from tests.support.factories.launch import case, catalog_of, planned

QUIET = Noise(night=0.003, launch=0.003, own=0.02)


def all_slower(_) -> float:
    return 0.07


def no_control(one) -> float:
    return 0.0 if is_control(one) else 0.07


def only(slower, *seeds: int, **how) -> common_cause.CommonCause:
    """The one cause that is found in a night."""
    found, _ = causes(seeds[0] if seeds else 1, slower, QUIET, **how)
    (cause,) = found
    return cause


def test_everything_slower_is_one_finding():
    cause = only(all_slower)
    assert cause.clear
    assert cause.shift == pytest.approx(0.07, abs=0.015)
    assert (cause.environments, cause.programs, cause.sizes, cause.nodes) == ((), (), (), ())
    assert len(cause.cases) == 3 * 42
    assert not any(is_control(each) for each in cause.cases)
    said = describe_cause(cause)
    assert said.startswith(f"cpu: everything {cause.shift:.0%} slower (median of 126 cases)")
    assert "the machine, not MPI: control_compute is " in describe_cause(cause)


def test_what_half_of_the_cases_are_is_not_said_of_everything():
    """The median case is slower if just more than a half are; the rest is as ever."""
    cause = only(all_slower)
    half = math.log1p(cause.shift) / 2
    some = len(cause.members) * 4 // 5 + 1

    def words(slower: int) -> str:
        logs = [half + 0.001] * slower + [0.0] * (len(cause.members) - slower)
        members = (replace(each, log=log) for each, log in zip(cause.members, logs, strict=True))
        return describe_cause(replace(cause, members=tuple(members)))

    assert words(some).startswith("cpu: everything ")
    assert words(some - 1).startswith(f"cpu: most cases {cause.shift:.0%} slower (median of 126")


@pytest.mark.parametrize("seed", range(4))
def test_one_mpi_is_told_from_the_whole(seed: int):
    cause = only(lambda one: 0.1 * (one.environment == "mpich" and not is_control(one)), seed)
    assert cause.environments == ("mpich",)
    assert {each.environment for each in cause.cases} == {"mpich"}
    assert "everything with mpich " in describe_cause(cause)
    same = ", ".join(sorted(CONTROLS))
    said = describe_cause(cause)
    assert said.endswith(f"MPI or the network, not the processors: {same} are unchanged")


def test_a_part_explains_nothing_if_the_rest_is_as_slow():
    members = only(all_slower).members
    group, rest = members[:60], members[60:]
    assert not common_cause.is_unshifted(rest, group, common_cause.ALPHA)
    fine = [replace(e, log=0.0, result=replace(e.result, verdict=Verdict.PASS)) for e in rest]
    assert common_cause.is_unshifted(fine, group, common_cause.ALPHA)
    shift = common_cause.estimate_shift(group).log
    assert not common_cause.is_unshifted(
        [replace(slowdown, log=0.75 * shift) for slowdown in fine], group, common_cause.ALPHA
    )
    many = [*rest[: len(rest) // 3], *fine[len(rest) // 3 :]]  # beyond their bands, and not the median
    assert common_cause.estimate_shift(many).log < shift / 2
    assert not common_cause.is_unshifted(many, group, common_cause.ALPHA)


def test_one_class_of_sizes_is_told_from_the_whole():
    cause = only(lambda one: 0.1 * (one.bytes > 10_000))
    assert cause.sizes == (2,)
    assert "everything from 10 kB on 1" in describe_cause(cause)


def test_one_node_set_is_told_from_the_whole():
    hosts = {one: (f"n{sum(map(ord, one.routine)) % 2}",) for one in cases()}
    cause = only(lambda one: 0.1 * (hosts[one] == ("n1",)), hosts=hosts)
    assert cause.nodes == (("n1",),)
    assert cause.hosts == ("n1",)
    assert ", only on n1" in describe_cause(cause)


def test_what_is_slower_than_all_by_itself_sticks_out():
    bad = case("routine_4", 1_000, environment="mpich")
    cause = only(lambda one: 0.5 if one == bad else 0.07)
    beyond = {*cause.slow} - {*cause.explained}
    assert bad in beyond
    assert len(beyond) < 0.1 * len(cause.cases)
    assert {*cause.explained} <= {*cause.slow}


def test_two_causes_are_both_told():
    found, _ = causes(
        1, lambda one: 0.1 * (one.environment == "mpich") + 0.5 * (one.environment == "intel"), QUIET
    )
    members = {each.environment for cause in found for each in cause.cases}
    assert members == {"mpich", "intel"}


@pytest.mark.parametrize("noise", [Noise(), Noise(night=0.03), Noise(launch=0.03), Noise(own=0.1, tails=4)])
@pytest.mark.parametrize("told_values", [True, False])
def test_a_healthy_night_has_no_finding_though_its_cases_move_together(noise, told_values):
    assert not any(causes(seed, noise=noise, told=told_values)[0] for seed in range(10))


@pytest.mark.parametrize(("shift", "noise"), [(0.02, Noise(0.0001, 0.0001, 0.02)), (-0.2, QUIET)])
def test_a_shift_too_small_to_matter_or_to_faster_is_none(shift: float, noise: Noise):
    assert causes(1, lambda _: shift, noise)[0] == []
    assert math.expm1(common_cause.FLOOR) == pytest.approx(0.03)


def test_few_cases_have_causes_of_their_own():
    bad = {each for each in cases() if each.routine in ("routine_1", "routine_2", "routine_3")}
    assert len(bad) < common_cause.COMMON_CASES
    assert causes(1, lambda one: 0.5 * (one in bad), QUIET)[0] == []


def test_references_of_few_launches_tell_no_small_shift_but_many_far_beyond_their_bands():
    assert causes(1, lambda _: 0.01, QUIET, launches=5)[0] == []
    found, _ = causes(1, lambda _: 9.0, QUIET, launches=5)
    assert len(found) == 1
    assert "126 of 126 cases beyond their bands" in describe_cause(found[0])
    ((half,), _) = causes(1, lambda one: 9.0 * (one.routine[-1] in "02468"), QUIET, launches=5)
    assert not half.clear and len(half.cases) == 126
    assert {*half.probe_cases} <= {*half.explained}  # as ever are the others


def test_simulated_time_and_what_was_not_judged_are_left_out():
    random = np.random.default_rng(1)
    catalog = calibrated(random, cases(), QUIET)
    results = night(random, cases(), catalog, QUIET, all_slower)
    assert len(common_cause.collect_slowdowns(results, catalog, {})) == len(results)
    for other in ({"verdict": Verdict.CRASHED}, {"reference": None}, {"value": None}):
        assert common_cause.collect_slowdowns([replace(results[0], **other)], catalog, {}) == []
    for reference_set in catalog.sets.values():
        for each, reference in reference_set.references.items():
            reference_set.references[each] = replace(reference, exact=True)
    assert common_cause.collect_slowdowns(results, catalog, {}) == []
    crashed = [CaseResult(each, Verdict.CRASHED, "signal 11") for each in cases()]
    assert common_cause.find_common_causes(crashed, catalog, {}) == []


# --- the controls ---


def test_without_controls_nobody_knows():
    said = describe_cause(only(all_slower, controls=False))
    assert said.endswith("no control was judged, so it may be the machine or MPI")


def test_one_slower_control_is_enough_for_the_machine_to_be_named():
    cause = only(lambda one: 0.0 if one.routine == "control_timer" else no_control(one) or 0.07)
    words = describe_controls(cause)
    assert words.startswith("the machine, not MPI: control_compute is ")
    assert "control_timer" not in words


def test_a_control_that_scatters_too_much_says_nothing():
    cause = only(no_control)
    noisy = tuple(replace(control, error=0.5) for control in cause.controls)
    said = describe_controls(replace(cause, controls=noisy))
    assert "is too large to decide" in said
    one = tuple(
        replace(control, error=0.5 if control.case.routine == "control_memory" else 0.01, log=0.0)
        for control in cause.controls
    )
    assert describe_controls(replace(cause, controls=one)) == (
        "MPI or the network, not the processors: control_compute, control_timer are unchanged; "
        "undecided: control_memory"
    )


def test_only_controls_of_the_same_launches_speak():
    cause = only(lambda one: 0.1 * (one.environment == "mpich"))
    assert {control.case.environment for control in cause.controls} == {"mpich"}
    assert len(cause.controls) == len(CONTROLS)


# --- fresh launches, and what follows for the cases ---


def test_probe_cases_are_drawn_and_the_slowest_are_none_of_them():
    """What is slow by itself must not speak for all."""
    cause = only(all_slower)
    by_slowness = sorted(cause.members, key=lambda each: each.log)
    slowest = {slowdown.case for slowdown in by_slowness[-(len(by_slowness) // common_cause.LEFT_OUT) :]}
    assert len(cause.probe_cases) == common_cause.PROBE_CASES and not slowest & {*cause.probe_cases}
    assert replace(cause).probe_cases == cause.probe_cases
    half = math.log1p(cause.shift) / 2
    logs = [member.log for member in cause.members if member.case in cause.probe_cases]
    assert min(logs) < half < max(logs)  # not those that show it best


def test_fresh_launches_refute_a_cause_or_not():
    cause = only(all_slower)
    for factor, refuted in ((1.0, True), (1.02, True), (1.06, False)):
        doubt = CommonCauseRetest(cause)
        while not doubt.decided:
            doubt.count_value([factor] * common_cause.PROBE_CASES)
        assert doubt.refuted == refuted


def test_what_did_not_arrive_refutes_nothing():
    doubt = CommonCauseRetest(only(all_slower))
    while not doubt.decided:
        doubt.count_value([1.0] * (common_cause.PROBE_CASES // 2))
    assert not doubt.refuted
    again = CommonCauseRetest(doubt.cause)
    again.record_values(5, [], None, {})
    assert again.decided and not again.refuted


def test_fresh_values_of_a_cause_are_medians(monkeypatch: pytest.MonkeyPatch):
    """Two fine launches of six are one fine median of three; a value that lacks a launch is no fine one."""
    again = CommonCauseRetest(only(all_slower))
    probe = again.cause.probe_cases
    counts = {LaunchPlace.of(case): 3 for case in probe}
    done = [
        FinishedLaunch(planned(cases=probe, number=number), LaunchOutcome(None), 1.0, "stage", {})
        for number in range(1, 7)
    ]
    slow = again.cause.shift + 1

    def said(_: Case, some: Sequence[FinishedLaunch], __: None) -> SimpleNamespace:
        factors = [1.0 if launch.launch.number <= 2 else slow for launch in some]
        return SimpleNamespace(slowdown=median(factors))

    monkeypatch.setattr(retest, "evaluate_case", said)
    again.record_values(2, done, None, counts)
    assert (again.fine, again.slow, again.refuted) == (1, 1, False)
    again.record_values(2, done[1:], None, counts)  # its second value lacks a launch
    assert (again.fine, again.slow) == (1, 3)


def test_a_cause_is_named_where_a_case_is_regressed_by_it_and_accuses_no_other():
    found, results = causes(1, all_slower, QUIET)
    after = {result.case: result for result in name_confirmed_causes(results, found)}
    expected = {result.case: result.verdict for result in results}
    assert {case: each.verdict for case, each in after.items()} == expected
    slow = [result for result in results if result.verdict == Verdict.REGRESSED]
    named = [result.case for result in slow if after[result.case].cause]
    assert {*named} == {case for cause in found for case in cause.explained}
    assert all(result.reason in after[result.case].reason for result in slow)
    assert name_confirmed_causes(results, []) == results
    waiting = [replace(result, verdict=Verdict.SUSPECT) if result in slow else result for result in results]
    assert sum(bool(result.cause) for result in name_confirmed_causes(waiting, found)) == len(named)


# --- small things ---


def test_a_rate_that_falls_is_slower():
    deviations = common_cause.compute_log_deviations
    assert deviations([100.0, 50.0], [None] * 2, MEGABYTES)[1] > 0
    assert deviations([2.0, 1.0], [None] * 2, SECONDS)[1] < 0
    assert deviations([1.0], [None], SECONDS) == deviations([1.0, 0.0], [None] * 2, SECONDS) == ()


def test_what_is_in_common_of_nothing_is_nothing():
    shift = common_cause.estimate_shift([])
    assert not shift.is_clear(1.0)
    assert not shift.is_many(1.0)


def test_a_case_without_a_band_is_not_explained():
    one = cases()[0]
    blind = common_cause.JudgedSlowdown(
        CaseResult(one, Verdict.REGRESSED, value=2.0, reference=1.0), (), 0.7, 0.0
    )
    assert not only(all_slower).explains(blind)


def test_a_slowdown_is_as_uncertain_as_a_launch_and_as_sessions_are():
    known = Reference(
        case(), 1e-5, 0.02, 20, evidence=SessionEvidence(2, 0.1, 0.03**2), session_prior=Prior(0.03, 9)
    )
    result = CaseResult(case(), Verdict.PASS, value=1.1e-5, reference=1e-5)
    own = 0.02 * math.sqrt(1 + 1 / 20)
    between = estimate_session_spread(known) * math.sqrt((1 + DAY_SHARE) * (1 + 1 / 2))
    for reference, apart in ((known, between), (replace(known, session_prior=None), 0.0)):
        (found,) = common_cause.collect_slowdowns([result], catalog_of([reference]), {})
        assert (found.log, found.error) == pytest.approx((math.log(1.1), math.hypot(own, apart)))
        assert found.session == pytest.approx((apart / found.error) ** 2)
    (single,) = common_cause.collect_slowdowns(
        [result], catalog_of([replace(known, launches=1, spread=0.0)]), {}
    )
    assert (single.error, single.session) == (0.0, 0.0)


def test_every_look_is_paid_for(monkeypatch):
    """More ways of looking must not mean more alarms."""
    asked: list[float] = []
    monkeypatch.setattr(
        common_cause, "find_partition_causes", lambda some, alpha: asked.append(alpha) or iter(())
    )
    causes(1, environments=("mpich",), controls=False)
    causes(1, environments=MPIS, controls=False)
    assert asked[0] > asked[1]
    assert asked[0] < common_cause.ALPHA


# --- what launches of one burst have in common ---


def shifted(shift: float) -> list[common_cause.JudgedSlowdown]:
    """Cases of one burst of 20 launches that scatter by 2%, all slower by as much."""
    random = np.random.default_rng(1)
    found = []
    for number in range(40):
        result = CaseResult(
            case(size=8 + number), Verdict.PASS, value=1.0, reference=1.0, reference_launches=20
        )
        moves = 0.02 * random.normal(size=20)
        told = tuple((moves - moves.mean()).tolist())
        found.append(common_cause.JudgedSlowdown(result, (), shift, 0.02 * 1.05**0.5, told))
    return found


def test_a_slow_hour_is_no_common_cause():
    """Launches of one burst do not show how far all cases move together from hour to hour."""
    assert common_cause.estimate_shift(shifted(0.06)).is_clear(common_cause.ALPHA)
    wider = [replace(slowdown, error=0.06, session=0.88) for slowdown in shifted(0.06)]
    assert not common_cause.estimate_shift(wider).is_clear(common_cause.ALPHA)
    assert common_cause.estimate_shift([replace(slowdown, log=0.5) for slowdown in wider]).is_clear(
        common_cause.ALPHA
    )
