"""What a calibration leaves: a case of which nothing counts, or too little to judge by, is no success."""

from __future__ import annotations

from dataclasses import replace

import pytest

from postprocess.calibration.schedule import CalibrationProgress, plan_part_of
from postprocess.model.reference import Reference
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.session.nightly import calibration_result
from postprocess.session.nightly.calibration_result import refuse_useless
from tests.support.factories.launch import CASES, catalog_of

RESULT = CaseResult(CASES[0], Verdict.PROVISIONAL, "measured for its reference")


def test_a_case_of_which_no_launch_counts_is_incomplete() -> None:
    found = refuse_useless(RESULT, CalibrationProgress(uncounted={CASES[0]}), catalog_of([]))
    assert (found.verdict, found.reason) == (Verdict.INCOMPLETE, "none of its launches counts")
    crashed = replace(RESULT, verdict=Verdict.CRASHED)
    assert refuse_useless(crashed, CalibrationProgress(uncounted={CASES[0]}), catalog_of([])) == crashed


@pytest.mark.parametrize(("blind", "verdict"), [(True, Verdict.INCOMPLETE), (False, Verdict.PROVISIONAL)])
def test_fewer_launches_than_were_wanted_suffice_if_they_judge(
    monkeypatch: pytest.MonkeyPatch, blind: bool, verdict: Verdict
) -> None:
    monkeypatch.setattr(calibration_result, "is_blind", lambda _: blind)
    catalog = catalog_of([Reference(CASES[0], 1e-6, 0.02, 17)])
    short = CalibrationProgress(lacking={plan_part_of(CASES[0])})
    assert refuse_useless(RESULT, short, catalog).verdict is verdict
    assert refuse_useless(RESULT, CalibrationProgress(), catalog) == RESULT
