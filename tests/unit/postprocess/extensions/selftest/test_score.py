"""How a self-test is scored: what was caught, what may be missed by chance, and who was accused."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtr

from postprocess.extensions.selftest import command
from postprocess.extensions.selftest import data as selftest_rows
from postprocess.extensions.selftest import night as selftest_night
from postprocess.extensions.selftest import page as selftest_page
from postprocess.extensions.selftest.data import CaseNight
from postprocess.extensions.selftest.score import (
    CHANCE,
    SURE,
    FlatBandResult,
    InjectionScore,
    is_too_many_missed,
    predict_verdict,
    score_nights,
)
from postprocess.model.reference import Prior, Reference
from postprocess.report.rendering import render_markdown
from postprocess.session.lifecycle import injections
from postprocess.stats.band import SLOW_ALPHA, compute_band
from postprocess.stats.detection import GROSS
from tests.support.factories.launch import case as a_case
from tests.support.factories.selftest import BEGUN, KEYS, MISSED, QUIET, night, planted, row, score


def test_a_self_test_in_which_all_is_caught_has_no_fault():
    nights = [night(1, row()), night(2, planted(), row(key="beside", plant="slower-50"))]
    result = score(nights)
    (plant,) = result.plants
    assert result.faults == ()
    assert plant == InjectionScore(
        **{"name": "slower-50", "intended": 0.5, "plantings": 1, "environments": ("a-1",), "targets": 1},
        **{"realised": pytest.approx(0.5), "realised_median": pytest.approx(0.5), "delayed": 1, "screened": 1},
        **{"caught": 1, "common": 0, "suspect": 0, "cleared": 0, "missed": 0, "sure": 1, "sure_missed": 0},
        **{"promised": pytest.approx(1, abs=1e-6), "others": 1, "accused": 0},
        drifted=None,  # "beside" was in no unchanged night
        flat=(FlatBandResult(0.1, 1, 0), FlatBandResult(0.05, 1, 0)),
    )


LOST = planted(**MISSED | {"upper": None, "reference": None})


@pytest.mark.parametrize(
    ("nights", "fault"),
    [
        *(
            (
                [[row()], [planted(key=key, **MISSED | {"verdict": word}) for key in "kl"]],
                "slower-50: 2 of 2 cases were missed",
            )
            for word in ("pass", "cleared", "fast", "provisional")
        ),
        *(
            (
                [[row()], [planted(), row(key="x", verdict=word)]],
                f"1 result of a case in a night are none: x: {word}",
            )
            for word in ("incorrect", "crashed", "incomplete", "not-comparable")
        ),
        ([[row()], [LOST]], "nothing is proven"),
        ([[row()]], "nothing is proven"),
        ([], "nothing is proven"),
    ],
)
def test_nights_that_miss_what_is_sure_or_judge_nothing_are_a_fault(nights: list[list[CaseNight]], fault: str):
    """Whatever word a verdict uses. One miss of what bands catch for certain may be chance, two are not."""
    result = score([night(number, *rows) for number, rows in enumerate(nights, start=1)])
    assert fault in " ".join(result.faults)


def test_what_bands_cannot_see_is_no_fault():
    """A slowdown inside the band, and one of a machine whose launches differ by a half."""
    sure = planted()
    small = planted("slower-5", 1.05, **MISSED)
    noisy = planted("slower-20", 1.2, **MISSED | {"spread": 0.5, "upper": 3.0})
    result = score([night(1, row()), night(2, sure, small), night(3, noisy)])
    assert result.faults == ()
    assert [(plant.sure, plant.missed) for plant in result.plants] == [(0, 1), (0, 1), (1, 0)]


def test_a_plant_that_did_not_work_promises_nothing_and_is_a_fault():
    """Whatever the others prove: what slows nothing excuses everything that misses it."""
    idle = [night(n, planted("slower-20", 1.01, **MISSED)) for n in range(2, 5)]
    result = score([night(1, row()), *idle, night(5, planted())])
    plant = result.plants[0]
    assert not plant.worked
    assert (plant.sure, plant.promised) == (0, pytest.approx(0, abs=1e-6))
    assert result.faults == ("slower-20: did not work: +1.0% where +20.0% was intended",)
    assert "intended: what it missed says little" in selftest_page.build_selftest_page(BEGUN, (), result).text


def test_a_plant_that_nothing_is_known_of_is_a_fault():
    nights = [night(1, row()), night(2, planted())]
    assert score_nights(nights, ("slower-50",), 2).faults == ()
    assert score_nights(nights, ("slower-5", "slower-50"), 2).faults == (
        "slower-5: it is unknown whether it worked: no night has it",
    )
    nights = [night(1, row(key="other")), night(2, planted())]
    (fault,) = score(nights).faults
    assert fault.startswith("slower-50: it is unknown whether it worked: no unchanged night")
    assert score_nights(nights, ("slower-5", "slower-50"), 3).faults == ()  # it may come yet
    assert not score_nights(nights, ("slower-5", "slower-50"), 3).passed


@pytest.mark.parametrize("nights", [10, 30])
def test_what_spares_launches_may_spare_a_few_but_not_all(nights: int):
    """A quarter of the launches are delayed: of 10 launches none is in 6% of all self-tests, of 30 in 0.02%."""
    may_escape_by_chance = planted("some-launches", 1.0, **MISSED | {"delayed": False})
    others = [night(n, may_escape_by_chance) for n in range(3, nights + 3)]
    result = score([night(1, row()), night(2, planted()), *others])
    assert bool(result.faults) is (nights == 30)


@pytest.mark.parametrize("done", [0, 1, 2, 4])
def test_a_self_test_that_is_not_at_its_end_has_not_passed(tmp_path: Path, capsys, done: int):
    """It is no fault either: it goes on later. The nights are those of the schedule."""
    begun = replace(BEGUN, times=3, unchanged=2, plants=("slower-50",), keys=KEYS[:1])
    path = tmp_path / selftest_rows.FILE
    selftest_rows.write_selftest_header(path, begun)
    for number in range(1, done + 1):
        selftest_rows.append_selftest_night(path, night(number, planted() if number > 1 else row()))
    assert command.conclude_selftest(tmp_path, QUIET) == 1
    shown = capsys.readouterr().out
    assert f"UNFINISHED: only {done} of 5 nights are done\n" in shown
    assert "FAULT" not in shown
    assert (tmp_path / "selftest.md").read_text().startswith("# Plumbline self-test: ? Unfinished\n")
    selftest_rows.append_selftest_night(path, night(done or 1, row()))  # the same night again is none more
    assert command.conclude_selftest(tmp_path, QUIET) == 1
    for number in range(1, 6):
        selftest_rows.append_selftest_night(path, night(number, planted() if number > 1 else row()))
    assert command.conclude_selftest(tmp_path, QUIET) == 0


def test_a_machine_that_has_become_faster_promises_less():
    """What is slower than today may still be inside the band of yesterday."""
    quiet, lost = row(value=0.7), planted("slower-20", 0.84, **MISSED)
    (plant,) = score([night(1, quiet), night(2, lost)]).plants
    assert (plant.realised, plant.sure) == (pytest.approx(0.2), 0)


def test_what_spares_launches_is_held_against_those_that_it_delayed():
    by = {n: 1.5 if n == 2 else 1.0 for n in range(2, 6)}
    told = {n: MISSED | {"delayed": n == 2} for n in by}
    nights = [night(n, planted("some-launches", by[n], **told[n])) for n in by]
    (plant,) = score([night(1, row()), *nights]).plants
    assert plant.realised == pytest.approx(0.5)
    assert plant.sure == 0  # missing it is right: most of its launches are well
    assert plant.promised < 0.1


def test_a_false_alarm_of_an_unchanged_night_is_counted_against_the_prediction():
    false = {"verdict": "regressed", "first": "regressed", "again": (1.2,) * 5, "value": 1.2}
    quiet = [night(n, row(), row(key="l")) for n in range(1, 41)]
    proof = night(99, planted())
    assert score([*quiet, proof]).faults == ()
    result = score([*quiet[:-1], night(40, row(**false), row(key="l")), proof])
    unchanged = result.unchanged
    assert (unchanged.nights, unchanged.cases, unchanged.regressed) == (40, 80, 1)
    assert unchanged.regressed_predicted < 0.001 and "1 case" in result.faults[0]
    assert unchanged.per_thousand(unchanged.regressed) == pytest.approx(1000 / 80)


def test_screened_and_cleared_of_unchanged_nights_are_no_fault():
    cleared = row(verdict="cleared", first="regressed", value=1.2, again=(1.0, 1.0))
    result = score([night(1, cleared, row(key="l")), night(2, planted())])
    assert result.faults == ()
    assert (result.unchanged.screened, result.unchanged.cleared) == (1, 1)
    wide = row(upper=math.exp(0.02), spread=0.01)
    predicted = score([night(1, wide)]).unchanged
    assert 0.02 < predicted.screened_predicted < 0.05  # two spreads of 20 launches


def test_the_wrongly_accused_are_named_with_what_they_were_called_by_and_kept_apart():
    wrong = row(key="beside", plant="slower-50", verdict="regressed", first="regressed")
    wrong = replace(wrong, value=3.0, again=(2.2, 2.3), reference=2.0, upper=2.1, call=2.15)
    wrong = replace(wrong, cause="cpu: everything 7% slower")
    other = row(key="free", environment="b-2", verdict="regressed", common=True)
    nights = [night(1, row()), night(2, planted(), wrong, other)]
    result = score(nights)
    (plant,) = result.plants
    assert (plant.accused, plant.caught) == (1, 1)
    assert (result.beside.cases, result.beside.regressed, result.beside.common) == (2, 2, 1)
    told, free = result.accused
    assert (free.key, free.beside) == ("free", "")
    assert (told.key, told.beside, told.night, told.slower, told.band) == ("beside", "slower-50", 2, 1.5, 1.05)
    assert (told.call, told.fresh) == (1.075, (1.1, 1.15))
    page = selftest_page.build_selftest_page(BEGUN, nights, result)
    for text in (page.text, render_markdown(page.document)):
        assert "Called, and not slowed" in text
        for word in ("1.500", "1.050", "1.100, 1.150", "1.075", "everything 7% slower"):
            assert word in text
    assert "Called" not in selftest_page.build_selftest_page(BEGUN, (), score([night(1, row())])).text


def test_of_everything_that_is_told_as_slower_no_case_is_missed():
    """Its most precise cases fail for all. Of one routine, or where nothing is told, each stands for itself."""

    def found(name: str, common: bool) -> tuple[int, int, int]:
        one = planted(name, 1.4, common=common)
        lost = [planted(name, 1.4, key=str(n), **MISSED) for n in range(3)]
        (plant,) = score([night(1, row()), night(2, one, *lost)]).plants
        return plant.common, plant.caught, plant.missed

    assert found("everything", True) == (1, 1, 0)
    assert found("everything", False) == (0, 1, 3)
    assert found("slower-50", True) == (1, 1, 3)


def test_flat_bands_and_the_drift_of_the_machine_are_of_the_same_launches():
    values = [1.04, 1.06, 1.11]
    targets = [planted(key=f"t{value}", by=value) for value in values]
    others = [row(key=f"o{value}", value=value, plant="slower-50") for value in values]
    usual = [row(key=target.key) for target in (*targets, *others)]
    quiet = [row(value=value) for value in values]
    result = score([night(1, *usual), night(2, *targets, *others), night(3, *quiet)])
    (plant,) = result.plants
    assert (plant.realised, plant.drifted) == (pytest.approx(0.06), pytest.approx(0.06))
    assert plant.flat == (FlatBandResult(0.10, 1, 1), FlatBandResult(0.05, 2, 2))
    assert [each.false for each in result.unchanged.flat] == [1, 2]
    assert "+6.0%" in selftest_page.build_selftest_page(BEGUN, (), result).text


@given(sure=st.integers(0, 400), missed=st.integers(0, 400))
def test_misses_are_too_many_where_chance_does_not_make_them(sure: int, missed: int):
    if missed > sure:
        return
    assert not is_too_many_missed(0, sure)
    if is_too_many_missed(missed, sure):
        assert missed / sure > 1 - SURE
        assert missed == sure or is_too_many_missed(missed + 1, sure)
        assert is_too_many_missed(missed, sure - 1) or missed == sure
    assert not is_too_many_missed(1, 1)  # one of one: one in a hundred, and CHANCE is less
    assert is_too_many_missed(2, 2)
    assert CHANCE < 1 - SURE


@pytest.mark.parametrize(
    ("spread", "slower", "chance"), [(0.01, 1.5, 1.0), (0.01, 1.0, 0.0), (0.01, 1.1, 0.5), (0.0, 1.2, 1.0)]
)
def test_promises_follow_the_bands(spread: float, slower: float, chance: float):
    assert predict_verdict(row(spread=spread), math.log(slower))[1] == pytest.approx(chance, abs=1e-3)


def test_what_the_call_limit_does_not_reach_is_not_promised():
    """On a busy machine a call limit lies far out: a huge plant is suspect, and that is no fault."""
    wide = {"upper": 2.0, "spread": 0.2, "call": 40.0, "call_deviation": 0.5, "call_degrees": 8.0}
    huge = planted("slower-400", 5.0, **wide, verdict="suspect")
    without = replace(huge, call=None)
    assert predict_verdict(without, math.log(5))[1] > SURE
    assert predict_verdict(huge, math.log(5))[1] < 0.01
    result = score([night(1, row(**wide)), night(2, huge, planted())])
    plant = next(each for each in result.plants if each.name == "slower-400")
    assert (plant.sure, plant.suspect, plant.missed) == (0, 1, 0)
    assert result.faults == ()


def test_the_prediction_of_what_is_called_is_that_of_the_gross_limit():
    reference = Reference(a_case(), 1.0, 0.01, 20, session_prior=Prior(0.03, 5.0))
    limits = selftest_night.tell_limits(reference, 1)
    upper = compute_band(reference).upper
    screened, called = predict_verdict(row(upper=upper, **limits), 0.0)
    assert screened == pytest.approx(SLOW_ALPHA, rel=1e-3)
    assert called == pytest.approx(stdtr(limits["call_degrees"], -GROSS), rel=1e-3)
    assert called < 1e-3
    assert predict_verdict(row(upper=upper, **limits), 2.0)[1] > SURE


def test_the_result_shows_every_plant_and_is_written_for_people_and_programs(tmp_path: Path, capsys):
    kinds = enumerate(injections.INJECTION_KINDS.items(), start=2)
    nights = [night(1, row()), *(night(n, planted(name, 1 + kind.intended)) for n, (name, kind) in kinds)]
    page = selftest_page.build_selftest_page(BEGUN, nights, score(nights))
    assert command.publish_page(tmp_path, page, "", QUIET, None) == 0
    shown = capsys.readouterr().out
    for name, plant in injections.INJECTION_KINDS.items():
        assert all(word in shown for word in (name, plant.words, f"{plant.intended:+.1%}"))
    assert shown.endswith("every plant that must be caught was\n")
    assert "FAULT: " in selftest_page.build_selftest_page(BEGUN, (), score([])).text
    assert "✓ Passed" in (tmp_path / "selftest.md").read_text(encoding="utf-8").splitlines()[0]
    assert "Passed" in (tmp_path / "selftest.html").read_text(encoding="utf-8")
    data = json.loads((tmp_path / "selftest.json").read_text())
    assert data["scores"]["plants"][0]["caught"] == 1
    assert (data["seed"], data["nights"]) == (7, len(nights))
