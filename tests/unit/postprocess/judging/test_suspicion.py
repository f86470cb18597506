"""What is slow again, but not beyond what other hours may bring."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from postprocess.base.units import MEGABYTES
from postprocess.judging import night_history
from postprocess.judging.suspicion import SuspectNight, decide_suspicion, find_suspect_nights
from postprocess.model.reference import Prior, Reference, SessionEvidence
from postprocess.model.verdict import CaseResult, Verdict, compute_exit_status
from postprocess.results.store import StoreError
from postprocess.stats.band import compute_band, compute_call_limit
from tests.support.factories.launch import case

ONE = case("bcast", 1000)
REFERENCE = Reference(ONE, 1e-5, 0.02, 20, prior=Prior(0.02, 20.0), session_prior=Prior(0.03, 5.0))
BETWEEN = math.sqrt(compute_band(REFERENCE).upper * compute_call_limit(REFERENCE, values=[5]))


def slow(value: float, verdict: Verdict = Verdict.REGRESSED) -> CaseResult:
    return CaseResult(ONE, verdict, "slow", value=value, reference=1e-5, launches=1)


def test_what_other_hours_may_bring_is_suspect_and_fails_a_strict_session_alone():
    result = decide_suspicion(slow(BETWEEN), 5 * [BETWEEN], REFERENCE)
    assert result.verdict == Verdict.SUSPECT
    assert "so the next night decides" in result.reason
    assert compute_exit_status([result], strict=False) == 0
    assert compute_exit_status([result], strict=True) == 1


def test_what_is_beyond_the_call_limit_is_called_at_once():
    far = 1.01 * compute_call_limit(REFERENCE, values=[5])
    assert decide_suspicion(slow(far), 5 * [far], REFERENCE) == slow(far)


def test_several_nights_call_what_one_could_not():
    """The center is of several sessions: of one, it may itself be as far off, whatever nights say."""
    evidence = SessionEvidence(8, 0.2, between=0.001)
    known = replace(REFERENCE, launches=40, evidence=evidence)
    between = math.sqrt(compute_band(known).upper * compute_call_limit(known, values=[5]))
    log = math.log(between / 1e-5)
    for nights in range(1, 40):
        result = decide_suspicion(
            slow(between), 5 * [between], known, nights * [SuspectNight(log, 1)]
        )
        if result.verdict == Verdict.REGRESSED:
            break
        assert result.verdict == Verdict.SUSPECT
    assert nights < 40 and "before, " in result.reason


@pytest.mark.parametrize("fresh", [(), (BETWEEN,)])
def test_what_could_not_be_measured_again_or_repeats_exactly_stays_regressed(fresh):
    assert decide_suspicion(slow(BETWEEN), (), REFERENCE).verdict == Verdict.REGRESSED
    exact = replace(REFERENCE, spread=0.0, exact=True, prior=None, session_prior=None)
    assert decide_suspicion(slow(BETWEEN), fresh, exact).verdict == Verdict.REGRESSED
    crashed = slow(BETWEEN, Verdict.CRASHED)
    assert decide_suspicion(crashed, 5 * [BETWEEN], REFERENCE) == crashed


def test_a_rate_is_slow_where_it_is_low():
    rate = replace(REFERENCE, center=1000.0, unit=MEGABYTES)
    limit = compute_call_limit(rate, values=[5])
    result = replace(slow(limit), unit=MEGABYTES, reference=1000.0)
    for factor, verdict in ((0.99, Verdict.REGRESSED), (1.01, Verdict.SUSPECT)):
        assert decide_suspicion(result, 5 * [factor * limit], rate).verdict == verdict


# --- the nights before ---


def nights(*rows: tuple[str, str, float, float]) -> pl.DataFrame:
    """Night, verdict, value and reference of each launch."""
    return pl.DataFrame(
        [
            {
                "session": night,
                "started_utc": night,
                "mode": "nightly",
                "key": ONE.key,
                "verdict": verdict,
                "value": value,
                "unit": "s",
                "reference": center,
            }
            for night, verdict, value, center in rows
        ]
    )


SUSPECT = ("suspect", 1.1e-5, 1e-5)


@pytest.mark.parametrize(
    ("history", "launches"),
    [
        ([("n2", *SUSPECT), ("n2", *SUSPECT), ("n1", *SUSPECT)], [2, 1]),
        ([("n3", *SUSPECT), ("n2", "pass", 1e-5, 1e-5), ("n1", *SUSPECT)], [1]),
        ([("n3", "cleared", 1e-5, 1e-5), ("n2", *SUSPECT)], []),
        ([("n3", *SUSPECT), ("n2", "suspect", 1.1e-5, 1.01e-5)], [1]),
        ([("n1", "skipped", 1e-5, 1e-5), ("n2", *SUSPECT)], [1]),
    ],
)
def test_the_nights_before_count_until_one_in_which_it_was_not_suspect(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, history, launches: list[int]
):
    monkeypatch.setattr(night_history, "read_headlines", lambda *_, **__: nights(*history))
    found = find_suspect_nights(tmp_path, [slow(1.1e-5)]).get(ONE, [])
    assert [each.launches for each in found] == launches
    assert all(each.log == pytest.approx(math.log(1.1)) for each in found)


def test_an_empty_or_damaged_store_tells_of_no_night(monkeypatch, tmp_path):
    assert find_suspect_nights(tmp_path, [slow(1.1e-5)]) == {}

    def damaged(*_, **__):
        raise StoreError("x.parquet: damaged")

    monkeypatch.setattr(night_history, "read_headlines", damaged)
    assert find_suspect_nights(tmp_path, [slow(1.1e-5)]) == {}
