"""How many trials a launch should have: the formula gives back what the noise was made with."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from postprocess.model.reference import Prior
from postprocess.stats.headline import compute_headlines, compute_steady_times, summarise_trials
from postprocess.stats.planning import trial_allocation
from postprocess.stats.planning.trial_allocation import (
    LEAST,
    MOST,
    KnownCase,
    LaunchCost,
    NoiseVariance,
    allocate_seconds,
    choose_median_trials,
    choose_trials,
    compute_sensitivity,
    count_fitting_launches,
    estimate_noise,
    estimate_trial_variance,
    evaluate_spending,
    find_least_launches,
)
from tests.support.factories.launch import CASES, case

times = some.lists(some.floats(1e-7, 1e-3), min_size=1, max_size=60)


@given(times, some.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_many_headlines_at_once_are_those_of_the_statistic(values, seed):
    samples = np.random.default_rng(seed).choice(values, size=(5, len(values)))
    samples[0, 0] *= 50  # a spike that the filter may take out
    alone = [summarise_trials(each, dropped=0).headline for each in samples]
    assert compute_headlines(samples) == pytest.approx(alone, rel=1e-12)


#: Variance of the mean of the fastest quarter of m normal values, times m: for many of them
#: (s + (1 - a) (q - u)^2) / a with a = 1/4, q its quantile, u and s mean and variance below it
OF_A_QUARTER = 2.035
#: And of five, the mean of two: from the covariances of order statistics (David and Nagaraja, section 3.2)
OF_FIVE = 5 * (0.4475 + 0.3115 + 2 * 0.2243) / 4


@pytest.mark.parametrize(("trials", "many", "share"), [(50, 60, OF_A_QUARTER), (5, 600, OF_FIVE)])
def test_the_variance_of_a_trial_is_that_of_the_mean_of_the_fastest(trials, many, share):
    random = np.random.default_rng(1)
    found = [
        estimate_trial_variance(np.exp(random.normal(0, 0.1, trials)), random) for _ in range(many)
    ]
    assert np.mean(found) == pytest.approx(share * 0.01, rel=0.1)


def test_spikes_bring_less_than_in_a_mean():
    random = np.random.default_rng(2)
    spiked = np.exp(random.normal(0, 0.1, 50))
    spiked[:2] *= 20
    assert estimate_trial_variance(spiked, random) < np.var(spiked / np.mean(spiked)) / 3


def test_one_trial_says_nothing():
    with pytest.raises(ValueError, match="one trial"):
        estimate_trial_variance(np.array([1.0]), np.random.default_rng(1))


def test_what_trials_bring_in_is_not_counted_as_between_launches():
    values = np.exp([0.1, -0.1, 0.1, -0.1])
    total = 4 * 0.01 / 3
    assert estimate_noise(values).between == pytest.approx(total)
    assert estimate_noise(values).trial == 0
    noise = estimate_noise(values, [0.1, 0.3], [50, 50])
    assert noise.trial == pytest.approx(0.2)
    assert noise.between == pytest.approx(total - 0.2 / 50)
    assert noise.spread(51) == pytest.approx(math.sqrt(total))


def test_launches_that_differ_by_no_more_than_their_trials_make_them_have_nothing_between():
    assert estimate_noise([1.0, 1.001, 1.0], [1.0], [50]).between == 0


@pytest.mark.parametrize(
    ("noise", "cost", "trials"),
    [
        # sqrt((8 + 1) / 1 x 100) = 30, and the one that is dropped
        (NoiseVariance(0.01, 1.0), LaunchCost(8.0, 1.0), 31),
        (NoiseVariance(0.01, 1.0), LaunchCost(99.0, 1.0), 101),
        (
            NoiseVariance(1.0, 0.01),
            LaunchCost(8.0, 1.0),
            LEAST,
        ),  # what launches differ by: no trial helps
        (NoiseVariance(0.01, 0.0), LaunchCost(8.0, 1.0), LEAST),  # trials are all alike
        (NoiseVariance(0.0, 1.0), LaunchCost(8.0, 1.0), MOST),  # launches are all alike
        (NoiseVariance(0.01, 1.0), LaunchCost(8.0, 0.0), MOST),  # trials cost nothing
        (NoiseVariance(0.01, 1e6), LaunchCost(8.0, 1.0), MOST),
    ],
)
def test_trials_of_a_launch(noise: NoiseVariance, cost: LaunchCost, trials: int):
    assert choose_trials(noise, cost) == trials


@given(
    some.floats(1e-6, 1.0), some.floats(1e-6, 1.0), some.floats(0.0, 100.0), some.floats(1e-4, 1.0)
)
@settings(max_examples=200)
def test_no_other_number_of_trials_knows_the_mean_better_for_its_seconds(b, v, start, trial):
    noise, cost = NoiseVariance(b, v), LaunchCost(start, trial)

    def variance_times_seconds(trials: int) -> float:
        return noise.spread(trials) ** 2 * cost.seconds(trials)

    best = choose_trials(noise, cost)
    assert LEAST <= best <= MOST
    others = [n for n in (best - 1, best + 1, LEAST, 51, 200, MOST) if LEAST <= n <= MOST]
    least = min(variance_times_seconds(n) for n in others)
    assert variance_times_seconds(best) <= least * (1 + 1e-3)  # whole numbers beside the optimum


def simulated(
    random: np.random.Generator, between: float, trial: float, launches: int = 20
) -> KnownCase:
    """A case whose launches and trials were drawn, as the budget sees it."""
    logs = random.normal(0, between, (launches, 1)) + random.normal(0, trial, (launches, 50))
    times = np.exp(logs)
    within = [estimate_trial_variance(each, random, 100) for each in times]
    return KnownCase(
        case(), estimate_noise(compute_steady_times(times), within, [50] * launches), launches
    )


@pytest.mark.parametrize(
    ("between", "trial", "cost"),
    [
        (0.02, 0.15, LaunchCost(5.0, 0.1)),
        (0.05, 0.15, LaunchCost(30.0, 0.05)),
        (0.03, 0.1, LaunchCost(10.0, 0.02)),
    ],
)
def test_drawn_noise_gives_back_the_best_trials(between: float, trial: float, cost: LaunchCost):
    random = np.random.default_rng(5)
    known = [simulated(random, between, trial) for _ in range(40)]
    expected = choose_trials(NoiseVariance(between**2, OF_A_QUARTER * trial**2), cost)
    assert LEAST < expected < MOST
    assert choose_median_trials(known, {known[0].place: cost}) == pytest.approx(expected, rel=0.12)


def test_as_many_launches_as_fit():
    found = [count_fitting_launches(seconds, 3.0) for seconds in (0, 2.9, 3.0, 60.0, 62.9)]
    assert found == [0, 0, 1, 20, 20]
    assert all(
        count_fitting_launches(20 * once, once) == 20 for once in (0.1, 0.7, 25.33, 1e-3 / 3)
    )


def known(between: float = 0.0004, trial: float = 0.01, **changes) -> KnownCase:
    return KnownCase(case(**changes), NoiseVariance(between, trial), 20)


def test_a_single_launch_sees_nothing_and_more_see_more():
    assert [compute_sensitivity(known(), 51, launches) for launches in (0, 1)] == [None] * 2
    sights = [compute_sensitivity(known(), 51, launches) for launches in (2, 9, 10, 20, 40, 400)]
    assert sights == sorted(sights, reverse=True) and 0.05 < sights[-1] < sights[2] < 0.2


def test_more_trials_see_more_and_kin_do_too():
    assert (
        compute_sensitivity(known(), 101, 20)
        < compute_sensitivity(known(), 51, 20)
        < compute_sensitivity(known(), 11, 20)
    )
    prior_degrees = KnownCase(case(), NoiseVariance(0.0004, 0.01), 20, prior_degrees=50.0)
    assert compute_sensitivity(prior_degrees, 51, 10) < compute_sensitivity(known(), 51, 10)


def test_half_of_the_cases_see_it():
    cases = [known(between) for between in (1e-4, 4e-4, 0.04)]
    costs = {cases[0].place: LaunchCost(1.0)}
    assert evaluate_spending(cases, costs, 51, 20).sees == compute_sensitivity(cases[1], 51, 20)
    assert evaluate_spending(cases, costs, 51, 1).sees is None


def test_a_launch_of_each_place_is_paid():
    cases = [known(), known(size=1_000_000), known(processes=4, per_node=4)]
    costs = {cases[0].place: LaunchCost(1.0, 0.1), cases[2].place: LaunchCost(2.0, 0.3)}
    found = allocate_seconds(cases, costs, 51, 300.0)
    assert found.night_seconds == pytest.approx(1.0 + 5.1 + 2.0 + 15.3)
    assert found.launches == 12 and found.seconds <= 300.0
    assert found.night_launches == (1, 1)
    assert found.sees == evaluate_spending(cases, costs, 51, 12).sees


@pytest.mark.parametrize(("paid", "launches"), [(100, 5), (4.5, 4), (0, 1)])
def test_a_night_takes_as_many_launches_as_its_budget_pays_and_five_at_most(paid, launches):
    cases = [known(0.0015), known(processes=4, per_node=4)]
    budget = LaunchCost(1.0, 0.01, budget=paid * 1.51)
    costs = {cases[0].place: budget, cases[1].place: LaunchCost(2.0)}
    found = evaluate_spending(cases, costs, 51, 400)
    assert found.night_launches == (1, launches)
    assert found.night_seconds == pytest.approx(launches * 1.51 + 2.0)
    alone = evaluate_spending(cases[:1], costs, 51, 400)
    assert alone.seconds == pytest.approx(400 * 1.51)
    assert alone.sees == compute_sensitivity(cases[0], 51, 400, median_of=launches)


def test_the_fewest_launches_that_see_it():
    cases, costs = [known()], {known().place: LaunchCost(1.0, 0.1)}
    target = compute_sensitivity(cases[0], 51, 25)
    found = find_least_launches(cases, costs, 51, target)
    assert (found.launches, found.sees) == (25, target)
    assert find_least_launches(cases, costs, 51, 0.5).launches == trial_allocation.ENOUGH_LAUNCHES
    assert find_least_launches(cases, costs, 51, 0.05) is None


def test_a_program_without_trials_has_launches_only():
    imb = KnownCase(
        case(program="imb", cache="warm", sync="loop"), estimate_noise([1.0, 1.01, 0.99]), 3
    )
    assert imb.noise.trial == 0 and imb.noise.spread(51) == imb.noise.spread(11)
    assert LaunchCost(36.0).seconds(51) == LaunchCost(36.0).seconds(11) == 36.0
    assert CASES[0].program == "mpicost"


def test_more_launches_of_one_session_do_not_take_out_what_sessions_differ_by():
    restless = replace(known(), session=Prior(0.03, 9.0))
    one, many = (compute_sensitivity(restless, 51, launches) for launches in (20, 400))
    days = compute_sensitivity(restless, 51, 20, sessions=5)
    assert one > 2 * compute_sensitivity(known(), 51, 20)
    assert 0.95 * one < many <= one and days < 0.85 * one
    costs = {restless.place: LaunchCost(1.0, 0.1)}
    between = (days + many) / 2
    assert find_least_launches([restless], costs, 51, between) is None
    assert find_least_launches([restless], costs, 51, between, sessions=5).sessions == 5


def test_noise_within_sessions_leaves_out_what_sessions_differ_by():
    values = np.exp([0.1, -0.1, 1.1, 0.9])
    assert estimate_noise(values, sessions=[0, 0, 1, 1]).between == pytest.approx(0.02)
    assert estimate_noise(values).between > 0.3
