"""Delays of the self-test pass for nothing else: not in a night, not in a calibration."""

from __future__ import annotations

import pytest

from postprocess.judging.outcome import assess_launch
from postprocess.model.interposed import TOLD, describe_unplanned_injection, is_delayed
from postprocess.model.verdict import Verdict
from tests.support.factories import record
from tests.support.factories.launch import leave, planned


@pytest.mark.parametrize(
    ("environment", "planted", "well"),
    [
        ({}, False, True),
        ({"LD_PRELOAD": "/x/lib/libwitness.so"}, False, True),
        ({"LD_PRELOAD": "/a.so:/x/lib/libdelay.so"}, False, False),
        ({TOLD: "1"}, False, False),
        ({TOLD: "0"}, False, False),
        ({"PLUMBLINE_DELAY_FRACTION": "0.1"}, False, False),
        ({}, True, False),
        ({"LD_PRELOAD": "/x/lib/libdelay.so"}, True, False),  # it was named, and not loaded
        ({TOLD: "1"}, True, True),
        ({TOLD: "0"}, True, True),
    ],
)
def test_a_launch_is_delayed_if_and_only_if_that_was_planned(tmp_path, environment, planted, well):
    assert (describe_unplanned_injection({"environment": environment}, planted) == "") == well
    launch = planned(planted=planted)
    leave(tmp_path, launch, record.launch(environment=environment))
    found = assess_launch(launch, tmp_path)
    assert found.verdict == (None if well else Verdict.INCORRECT), found.reason
    assert well or "selftest" in found.reason or "self-test" in found.reason


def test_a_share_of_launches_is_spared():
    assert is_delayed({"environment": {TOLD: "1"}})
    assert not is_delayed({"environment": {TOLD: "0"}})
    assert not is_delayed({})
