"""Seconds become launches, by what such launches took before."""

from __future__ import annotations

import pytest
from budget_samples import ELAPSED, PLACE, SECONDS, entry, write_session_directory
from launch_samples import CASES, planned

from postprocess.affordable import affordable, known_costs, once_through
from postprocess.command_line import build_parser
from postprocess.errors import UsageError
from postprocess.progress import Progress
from postprocess.rounds import Demand
from postprocess.trial_budget import Cost
from postprocess.workdir import WorkDirectory


@pytest.fixture
def work(tmp_path) -> WorkDirectory:
    """Where one launch of everything was measured."""
    made = WorkDirectory(tmp_path / "home", tmp_path)
    write_session_directory(made.sessions / "20261101T010000Z-1", [entry()])
    return made


def test_launches_that_fit_with_the_trials_of_the_plan(work, capsys):
    once = SECONDS
    found = affordable(work, [planned(trials=51)], Demand(seconds=300), Progress())
    assert found == Demand(launches=int(300 // once))
    assert "takes about 31 s: 9 launches in 5 min 00 s" in capsys.readouterr().out
    fewer = SECONDS - ELAPSED + 11 * ELAPSED / 51
    found = affordable(work, [planned(trials=11)], Demand(seconds=300, at_most=4), Progress())
    assert found == Demand(launches=int(300 // fewer), at_most=4)


def test_what_was_told_in_launches_stays(work):
    for demand in (Demand(), Demand(7), Demand(None, 3, True)):
        assert affordable(work, [planned()], demand, Progress()) is demand


def test_less_than_one_launch_is_refused(work):
    with pytest.raises(UsageError, match=r"--seconds 20: one launch .* about 31 s; give more"):
        affordable(work, [planned(trials=51)], Demand(seconds=20), Progress())


def test_all_of_a_plan_is_paid(work):
    known = {(PLACE, len(CASES)): Cost(1.0, 0.5), ((*PLACE[:2], "osu", 2, 2), 2): Cost(40.0)}
    mpicost = planned(trials=11)
    starts = [planned(program="osu", start=f"s{n}", cases=CASES[n : n + 1]) for n in range(2)]
    assert once_through([mpicost], known) == (6.5, True)
    assert once_through([mpicost, *starts], known) == (46.5, True)
    assert once_through([mpicost, *starts, planned(cases=())], known) == (46.5, True)
    seconds, sure = once_through([mpicost, *starts[:1]], known)
    assert seconds > 6.5 and not sure


def test_another_choice_of_cases_is_only_estimated(work, capsys):
    few = planned(trials=51, cases=CASES[:2])
    assert (PLACE, 4) in known_costs(work) and (PLACE, 2) not in known_costs(work)
    affordable(work, [few], Demand(seconds=600), Progress())
    assert "(roughly: not all of it was measured here yet)" in capsys.readouterr().out


def test_seconds_are_told_in_the_place_of_launches():
    assert build_parser().parse_args(["calibrate", "--seconds", "60"]).seconds == 60
    assert build_parser().parse_args(["calibrate"]).seconds is None
    with pytest.raises(UsageError, match="not allowed with"):
        build_parser().parse_args(["calibrate", "--seconds", "60", "--launches", "5"])
