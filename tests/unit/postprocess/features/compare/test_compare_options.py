"""Options of ``compare`` that only it has."""

import argparse

import pytest

from postprocess.features.compare.command import parse_plant


@pytest.mark.parametrize("text", ["slower-10:bcast", "slower-10:alltoall"])
def test_a_plant_of_a_routine_is_taken(text: str):
    assert parse_plant(text) == text


@pytest.mark.parametrize(
    "text", ["slower-10", "slow:bcast", "slower-10:bcast,alltoall", "slower-10:control_timer"]
)
def test_a_plant_that_would_delay_nothing_is_refused(text: str):
    with pytest.raises(argparse.ArgumentTypeError):
        parse_plant(text)
