"""Spread that cases share: estimated right, and bands that are left as often as they say."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator
from scipy.special import polygamma

from postprocess.model.case import Case
from postprocess.model.reference import Prior, Reference
from postprocess.stats.band import SLOW_ALPHA, compute_band, estimate_references
from postprocess.stats.priors import (
    LEAST_GROUP_SIZE,
    MOST_DEGREES,
    add_priors,
    estimate_prior,
    find_stored_prior,
    invert_trigamma,
)
from tests.support.factories.launch import case

CENTER = 1e-5


def cases(number: int, **facts) -> list[Case]:
    """Cases of one family, each another partner of a ping-pong."""
    return [case("pingpong", 8, peer, processes=4096, **facts) for peer in range(1, number + 1)]


def spreads(random: Generator, number: int, degrees: float, typical: float) -> np.ndarray:
    """True spreads, whose variances are distributed as the method assumes."""
    return typical * np.sqrt(degrees / random.chisquare(degrees, number))


def references(found: dict[Case, float], launches: int = 10) -> dict[Case, Reference]:
    return {each: Reference(each, CENTER, spread, launches) for each, spread in found.items()}


@given(st.floats(min_value=1e-3, max_value=1e3))
def test_inverse_of_trigamma(value: float):
    assert polygamma(1, invert_trigamma(value)) == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize(("launches", "degrees"), [(5, 4.0), (10, 4.0), (20, 12.0)])
def test_what_the_kin_say_is_estimated_right(launches: int, degrees: float):
    random = np.random.default_rng(20261121)
    true = spreads(random, 3_000, degrees, 0.02)
    logs = random.normal(0.0, true[:, None], size=(len(true), launches))
    known = dict(zip(cases(len(true)), map(float, logs.std(axis=1, ddof=1)), strict=True))
    found = estimate_prior(list(references(known, launches).values()))
    assert found.spread == pytest.approx(0.02, rel=0.05)
    assert found.degrees == pytest.approx(degrees, rel=0.2)


def test_cases_that_scatter_alike_share_one_spread():
    known = references({each: 0.02 for each in cases(50)})
    found = estimate_prior(list(known.values()))
    assert found.degrees == MOST_DEGREES
    assert found.spread == pytest.approx(0.02, rel=0.1)


def test_few_kin_say_nothing():
    known = references({each: 0.02 for each in cases(LEAST_GROUP_SIZE - 1)})
    assert estimate_prior(list(known.values())) is None
    assert add_priors(known) == known


def test_a_case_without_spread_says_nothing_and_is_given_that_of_its_kin():
    """Printed with two decimals, a short time may be the same in every launch."""
    *others, rounded = cases(40)
    known = references({each: 0.02 for each in others} | {rounded: 0.0})
    found = add_priors(known)[rounded]
    assert found.prior == estimate_prior([known[each] for each in others])
    assert 0.015 < found.moderated[0] < 0.025


def test_sessions_of_an_unknown_state_of_the_caches_have_the_widest_prior_of_their_sizes():
    table = {("evict", 0): Prior(0.01, 5), ("flush", 0): Prior(0.02, 5), ("flush", 10_000): Prior(0.5, 5)}
    small, large = case("bcast", 8), case("bcast", 10_000)
    assert find_stored_prior(table, replace(small, cache="evict")).spread == 0.01
    assert find_stored_prior(table, replace(small, cache="rotate")).spread == 0.02
    assert find_stored_prior({("evict", 0): Prior(0.01, 5)}, large).spread == 0.01  # of any size
    assert find_stored_prior({}, large) is None


def test_single_launches_say_nothing_of_a_spread():
    known = {each: Reference(each, CENTER, 0.0, 1) for each in cases(40)}
    assert all(reference.prior is None for reference in add_priors(known).values())


def test_kin_are_of_one_program_and_one_class_of_sizes():
    small = cases(20)
    large = [replace(each, bytes=100_000) for each in small]
    other = [replace(each, program="osu") for each in small]
    lonely = replace(small[0], bytes=5_000)
    spread = {each: 0.1 for each in small} | {each: 0.01 for each in large}
    found = add_priors(references(spread | {each: 0.5 for each in other} | {lonely: 0.01}))
    for group, typical in ((small, 0.1), (large, 0.01), (other, 0.5)):
        assert found[group[0]].prior.spread == pytest.approx(typical, rel=0.1)
    program = [each for case_, each in found.items() if case_.program == lonely.program]
    assert found[lonely].prior == estimate_prior(program)  # no kin enough: all of its program speak


@given(st.floats(0.0, 1.0), st.integers(2, 40), st.floats(1e-3, 1.0), st.floats(0.1, 100))
def test_a_moderated_spread_lies_between_its_own_and_that_of_its_kin(own, launches, typical, worth):
    alone = Reference(cases(1)[0], CENTER, own, launches)
    spread, degrees = replace(alone, prior=Prior(typical, worth)).moderated
    assert min(own, typical) * (1 - 1e-9) <= spread <= max(own, typical) * (1 + 1e-9)
    assert degrees == pytest.approx(launches - 1 + worth)
    assert alone.moderated == (own, launches - 1)


def exceeded(launches: int, shared: bool, slower: float = 0.0) -> float:
    """Share of fresh launches above the bands of 4,000 cases, whose true spreads differ."""
    random = np.random.default_rng(launches)
    true = spreads(random, 4_000, 4.0, 0.2)
    logs = random.normal(math.log(CENTER), true[:, None], size=(len(true), launches + 1))
    places = cases(len(true))
    samples = {each: np.exp(row[:-1]).tolist() for each, row in zip(places, logs, strict=True)}
    known = {reference.case: reference for reference in estimate_references(samples)}
    if shared:
        known = add_priors(known)
    fresh = np.exp(logs[:, -1]) * (1 + slower)
    return float(np.mean([compute_band(known[c]).upper < x for c, x in zip(places, fresh, strict=True)]))


@pytest.mark.parametrize("launches", [10, 20])
def test_bands_of_shared_spread_are_left_as_often_as_they_say(launches: int):
    assert exceeded(launches, shared=True) == pytest.approx(SLOW_ALPHA, abs=0.006)


def test_shared_spread_sees_more():
    alone, shared = (exceeded(10, shared, slower=1.0) for shared in (False, True))
    assert shared > alone + 0.03
