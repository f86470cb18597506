"""One pass of a calibration: which launches of the ledger it looks at, and what it says went wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch_samples import CASES, case
from ledger_samples import launch

from postprocess import ledger
from postprocess.calibration_pass import taken_alike, unwell
from postprocess.reframe_driver import Selection
from postprocess.verdicts import CaseResult, Verdict


def test_a_case_that_is_skipped_is_no_fault():
    some = [CaseResult(each, Verdict.PASS, "") for each in CASES]
    skipped = CaseResult(case("alltoall", 8), Verdict.SKIPPED, "too large")
    assert unwell([*some, skipped]) == set()
    crashed = CaseResult(case("scatter", 8), Verdict.CRASHED, "ended")
    assert unwell([*some, crashed]) == {("local:cpu", "mpich-5_0_2", "mpicost")}


@pytest.mark.parametrize(
    ("options", "sessions"),
    [
        ({}, ["a"]),
        ({"oversubscribe": True}, ["b"]),
        ({"set_env": {"mpich-5_0_2": {"A": "1"}}}, ["c"]),
        ({"set_env": {"another": {"A": "1"}}}, ["a"]),
        ({"oversubscribe": True, "set_env": {"mpich-5_0_2": {"A": "1"}}}, []),
    ],
    ids=str,
)
def test_launches_with_other_options_are_of_no_account(tmp_path: Path, options, sessions):
    told = {"a": {}, "b": {"oversubscribe": True}, "c": {"set_env": {"A": "1"}}}
    for name, by_hand in told.items():
        ledger.keep(tmp_path, name, [launch(session=name, by_hand=by_hand)])
    found = taken_alike(tmp_path, Selection(Path("site.py"), **options))
    assert [each.session for each in found] == sessions
