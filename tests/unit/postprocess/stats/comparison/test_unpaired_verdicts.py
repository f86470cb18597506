"""What was not taken in turn is called different only beyond what sessions differ by, and never the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

from postprocess.model.case import Case
from postprocess.model.reference import Prior, Reference, SessionEvidence
from postprocess.stats.comparison.paired_verdicts import PairedVerdict, UnpairedCase, judge_unpaired
from postprocess.stats.sessions import Prediction, SessionValue, predict_nights, predict_sessions

MARGIN = math.log(1.05)
CASE = Case("s", "cpu", "mpich-5", "mpicost", "bcast", 0, "evict", "barrier", 2, 2, 8)


def judge(difference: float, deviation: float = 0.02, **more: bool) -> PairedVerdict:
    noise = Prediction(deviation, 8.0)
    (found,) = judge_unpaired([UnpairedCase(difference, noise, noise, MARGIN, **more)])
    return found.verdict


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [
        (0.0, PairedVerdict.UNDECIDED),
        (0.05, PairedVerdict.UNDECIDED),
        (0.2, PairedVerdict.SLOWER),
        (-0.2, PairedVerdict.FASTER),
    ],
)
def test_only_what_lies_beyond_the_noise_of_sessions_is_called(difference, verdict) -> None:
    assert judge(difference) == verdict


def test_nothing_is_called_the_same_however_quiet_the_machine() -> None:
    assert judge(0.0, 1e-6) == judge(0.0, 0.0, exact=True) == PairedVerdict.UNDECIDED
    assert judge(1e-3, 0.0, exact=True) == PairedVerdict.UNDECIDED  # within half the margin
    assert judge(0.1, 0.0, exact=True) == PairedVerdict.SLOWER


def test_a_case_whose_noise_nobody_knows_is_not_judged() -> None:
    (found,) = judge_unpaired([UnpairedCase(1.0, Prediction(0.01, 5.0), None, MARGIN)])
    assert (found.verdict, found.limits, found.unseen) == (PairedVerdict.UNDECIDED, None, None)


def test_of_many_unchanged_cases_few_are_accused() -> None:
    random = np.random.default_rng(18)
    noise = Prediction(0.03, 8.0)
    offs = random.standard_t(8, (50, 200)) * 0.03 * math.sqrt(2)
    rounds = [judge_unpaired([UnpairedCase(d, noise, noise, MARGIN) for d in row]) for row in offs]
    accusing = [any(r.verdict == PairedVerdict.SLOWER for r in some) for some in rounds]
    assert sum(accusing) <= 7  # of 50; 5% are 2.5


def test_sessions_and_launches_are_both_in_the_noise() -> None:
    evidence = SessionEvidence(sessions=5, inverse_launches=0.25, between=0.04**2 + 0.02**2 / 4)
    known = Reference(CASE, 1e-6, 0.02, 20, evidence=evidence, session_prior=Prior(0.04, 5.0))
    one, two = predict_sessions(known, [4]), predict_sessions(known, [1, 1])
    assert one.deviation == pytest.approx(math.hypot(0.04, 0.02 / 2), rel=1e-6)
    assert two.deviation == pytest.approx(math.hypot(0.04, 0.02) / math.sqrt(2), rel=1e-6)
    assert predict_nights(known, [SessionValue(0.0, 4)]).deviation > one.deviation  # the center lies off, too
