"""Runs of sessions accuse hardly any healthy case, and call what became slower within a few nights."""

import pytest

from tests.statistical.simulated_sessions import STATES, simulate


@pytest.mark.parametrize("days", [False, True], ids=["one day", "days"])
@pytest.mark.parametrize("noise", STATES)
def test_a_healthy_case_is_hardly_ever_called(noise: str, days: bool):
    """By case and night. One more machine is 20,000 of them; a single false call is 5e-5."""
    for sessions in (1, 5):
        assert simulate(1, "small", noise, sessions, 0.0, days).called < 2e-4


@pytest.mark.parametrize(("level", "least"), [("small", 0.85), ("large", 0.95)])
@pytest.mark.parametrize("noise", STATES)
def test_a_fifth_slower_is_called_within_three_sessions(noise: str, level: str, least: float):
    assert simulate(1, level, noise, 5, 0.2, days=False).in_three >= least


@pytest.mark.parametrize("noise", STATES)
def test_twice_as_slow_is_called_tonight(noise: str):
    assert simulate(1, "small", noise, 5, 1.0, days=False).tonight >= 0.99
