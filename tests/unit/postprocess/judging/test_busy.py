"""Other work makes some trials of everything slow; a routine of which some are slow stays slow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from postprocess.judging.busy import LEAST_CASES, Disturbance, assess_disturbance, excuse_headlines
from postprocess.model.routines.mpicost import CONTROLS
from postprocess.model.verdict import CaseResult, Verdict
from tests.support.factories.launch import case

CONTROL = next(iter(CONTROLS))


def results(slow: int, judged: int = 60, controls: int = 0, **more) -> list[CaseResult]:
    """So many cases, of which so many are slow by their headline; and controls that are."""
    told = {"value": 1e-6, "reference": 1e-6, "band": (0.9e-6, 1.1e-6), "headline_limit": 1.2e-6}
    cases = [case(CONTROL, 8 * n) for n in range(controls)]
    cases += [case(size=8 * (n + 1)) for n in range(judged - controls)]
    words = (slow + controls) * [True] + (judged - controls - slow) * [False]
    return [
        CaseResult(
            each,
            Verdict.REGRESSED if late else Verdict.PASS,
            "slow" if late else "",
            headline=1.5e-6 if late else 1e-6,
            by_headline=late,
            **told | more,
        )
        for each, late in zip(cases, words, strict=True)
    ]


@pytest.mark.parametrize(
    ("slow", "judged", "controls", "busy"),
    [
        (5, 60, 0, False),  # few: of a routine
        (6, 60, 0, True),  # a tenth
        (LEAST_CASES - 1, 10, 0, False),
        (LEAST_CASES, 10, 0, True),
        (1, 60, 1, True),  # a control calls no MPI
        (0, 60, 1, True),
    ],
)
def test_headlines_say_nothing_where_controls_or_many_cases_are_slow(slow, judged, controls, busy):
    before = results(slow, judged, controls)
    after, note = excuse_headlines(before)
    left = [each for each in after if each.by_headline]
    assert len(left) == (0 if busy else slow)
    words = {each.verdict for each in after}
    assert words == ({Verdict.PASS} if busy else {Verdict.PASS, Verdict.REGRESSED})
    assert note.startswith("other work disturbs the machine" if busy else "") and bool(note) is busy
    for was, now in zip(before, after, strict=True):
        assert now == was or (busy and was.by_headline)


def test_what_is_judged_by_its_value_stays_what_it_is():
    """Slow by its value, it is no sign of other work either; below its band it is fast."""
    slow = results(30, value=1.3e-6)
    assert not assess_disturbance(slow).busy and excuse_headlines(slow) == (slow, "")
    several = [replace(each, by_headline=False) for each in results(30)]
    assert assess_disturbance(several).busy and excuse_headlines(several) == (several, "")
    for nothing in ({"headline_limit": None}, {"headline": None}):  # no headline was judged
        blind = [replace(each, **nothing) for each in results(0, 90)]
        assert assess_disturbance([*results(6), *blind]) == Disturbance(6, 60, 0)
    (first, *_), _ = excuse_headlines(results(30, value=0.8e-6))
    assert first.verdict == Verdict.FAST
    (first, *_), _ = excuse_headlines(results(30, provisional=True))
    assert first.verdict == Verdict.PROVISIONAL and "some of its trials are slow" in first.reason
