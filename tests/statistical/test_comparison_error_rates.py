"""A comparison of two MPIs keeps what it promises, on simulated launches, and others do not."""

import pytest

from tests.statistical.simulated_upgrades import average_claims, check_promises


@pytest.mark.parametrize("noise", ["normal", "measured"])
def test_unchanged_cases_are_not_accused_and_most_are_proven_the_same(noise: str):
    found = average_claims(1, 0.05, 0.0, noise)
    assert found["plumbline"].slower == 0
    assert (found["plumbline"].fine or 0) > 0.5
    assert found["unpaired U test"].slower > 0.005
    assert found["flat 5%"].slower > 0.02
    assert found["until significant"].slower > 0.1


def test_a_tenth_slower_is_seen_and_the_margin_is_not_called_fine():
    assert average_claims(1, 0.02, 0.10)["plumbline"].slower > 0.98
    # The machine wanders for all cases alike, so one comparison says little.
    at_margin = average_claims(3, 0.05, 0.05)["plumbline"]
    assert (at_margin.fine or 0) < 0.05


@pytest.mark.parametrize("memory", [0.0, 0.5])
def test_few_cases_of_correlated_launches_keep_the_promise_too(memory: float):
    """Over all looks; 5% are promised, with room for 100 comparisons of 40 cases."""
    found = check_promises(100, 40, memory)
    assert found.accused <= 0.1
    assert found.false <= 0.03
    assert found.waved <= 0.05
    assert found.missed <= 0.03
