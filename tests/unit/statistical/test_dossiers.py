"""The self-test of compare without a machine: what is planted where, and how what comes is scored."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.features.compare.measure.bench import TooFewSecondsError
from postprocess.model.case import Case
from postprocess.session.lifecycle.injections import INJECTION_KINDS
from tests.statistical.dossiers import measure, page, schedule
from tests.statistical.dossiers.schedule import (
    USUAL_PLANTS,
    DossierCase,
    DossiersHeader,
    FinishedDossier,
    PlannedDossier,
    list_dossiers,
    resume_or_begin_dossiers,
    schedule_dossiers,
)
from tests.statistical.dossiers.score import score_dossiers
from tests.support.faults import Declared, plants

MPIS = ("a-1", "b-2", "c-3")
ROUTINES = ("bcast", "alltoall", "pingpong")
LOOKS = (6, 10, 16)


def cases(*sizes: int) -> list[Case]:
    return [
        Case("s", "cpu", mpi, "mpicost", routine, 0, "warm", "barrier", 2, 2, size)
        for mpi in MPIS
        for routine in ROUTINES
        for size in sizes or (8, 1_000_000)
    ]


HEADER = DossiersHeader("s", 7, 3, 4, USUAL_PLANTS, 60, tuple(case.key for case in cases()))


def test_each_plant_comes_as_often_as_asked_over_mpis_and_routines_in_turn() -> None:
    planned = list_dossiers(HEADER)
    plants = Counter(each.plant for each in planned)
    assert plants == {**dict.fromkeys(USUAL_PLANTS, 3), "": 4}
    for name in USUAL_PLANTS:
        own = [each for each in planned if each.plant == name]
        assert {each.environment for each in own} == set(MPIS)
        assert {each.routine for each in own} == set(ROUTINES)
    assert [each.number for each in planned] == list(range(1, 23))
    assert planned == list_dossiers(HEADER) != list_dossiers(replace(HEADER, seed=8))
    assert planned[0].plant or planned[1].plant or planned[2].plant  # in a drawn order


def test_a_plant_that_slows_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="large: slows no case of a-1"):
        schedule_dossiers(cases(8), [INJECTION_KINDS["large"]], 1, 0, 1)


def test_what_is_planted_slows_its_routine_from_its_size_on_and_nothing_slows_nothing() -> None:
    planned = PlannedDossier(1, "a-1", "large", "bcast")
    slowed = {(case.environment, case.routine, case.bytes) for case in cases() if planned.slows(case)}
    assert slowed == {("a-1", "bcast", 1_000_000)}
    assert planned.order == "large:bcast"
    quiet = PlannedDossier(2, "a-1")
    assert not any(map(quiet.slows, cases())) and quiet.order == "idle"


@plants("use", "a folder that was begun with another budget", "dossiers of comparisons", "", 2,
        "was begun with other seconds")  # fmt: skip
def test_the_same_demand_goes_on_and_another_is_refused(tmp_path: Path, declared: Declared) -> None:
    resume_or_begin_dossiers(tmp_path, HEADER)
    assert resume_or_begin_dossiers(tmp_path, replace(HEADER, seed=9)) == HEADER
    with declared.raises(UsageError):
        resume_or_begin_dossiers(tmp_path, replace(HEADER, seconds=61))
    (tmp_path / schedule.FILE).write_text("{")
    with pytest.raises(UsageError, match="is damaged"):
        resume_or_begin_dossiers(tmp_path, HEADER)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, progress: Progress):
    """Run all dossiers, of which one has no time; the numbers of those that were measured."""

    def run(busy: int) -> list[int]:
        done: list[int] = []

        def measure_dossier(_context: Any, _begun: Any, _directory: Any, planned: PlannedDossier) -> None:
            if planned.number == busy:
                raise TooFewSecondsError("--seconds 60: a pair takes 20 s; give 140 s")
            done.append(planned.number)

        monkeypatch.setattr(measure, "measure_dossier", measure_dossier)
        monkeypatch.setattr(measure, "read_dossier", lambda *_: None)
        monkeypatch.setattr(measure, "describe_dossier", lambda *_: "")
        context: Any = SimpleNamespace(progress=progress, quiet=None)
        measure.run_dossiers(context, HEADER, Path("nowhere"))
        return done

    return run


def test_a_dossier_that_met_a_busy_moment_is_left_for_the_next_call(measured, progress: Progress) -> None:
    assert measured(busy=3) == [1, 2, *range(4, 23)]
    (note,) = progress.notes
    assert note.startswith("dossier 3 is left for the next call: --seconds 60")


def test_too_little_time_for_the_first_dossier_is_wrong_use(measured) -> None:
    with pytest.raises(TooFewSecondsError):
        measured(busy=1)


def dossier(
    number: int, plant: str, verdict: str, ratio: float, accused: int = 0, void: bool = False
) -> FinishedDossier:
    """Two targets, if anything is planted, and eight other cases, some of which are called slower."""
    planned = PlannedDossier(number, "a-1", plant, "bcast" if plant else "")
    targets = [DossierCase(f"t{n}", "bcast", True, verdict, ratio, 0.02, 0.05) for n in range(2 * bool(plant))]
    others = [
        DossierCase(f"o{n}", "scan", False, "slower" if n < accused else "same", 1.0, 0.02, 0.05)
        for n in range(8)
    ]
    return FinishedDossier(planned, 60.0, LOOKS, void, (*targets, *others), {"same": 10})


def test_what_is_caught_is_held_against_what_the_scatter_promises() -> None:
    found = score_dossiers([dossier(n, "slower-10", "slower", 1.1) for n in range(3)], 3)
    (plant,) = found.plants
    assert (plant.caught, plant.missed, plant.targets, plant.beyond) == (6, 0, 6, 6)
    assert plant.promised == pytest.approx(6, abs=0.1) and plant.realised == pytest.approx(0.1)
    assert found.passed and found.unchanged[2].cases == 30
    assert "all that is promised was kept" in page.build_dossier_page(HEADER, (), found).text


@pytest.mark.parametrize(
    ("done", "fault"),
    [
        ([dossier(n, "slower-10", "undecided", 1.1) for n in range(6)], "0 of 12 cases were caught"),
        ([dossier(n, "slower-10", "same", 1.1) for n in range(6)], "12 of 12 cases slower by more"),
        ([dossier(n, "slower-20", "same", 1.01) for n in range(3)], r"did not work: \+1.0%"),
        ([dossier(n, "", "", 1.0, accused=n < 5) for n in range(10)], "nothing planted: 5 of 10 dossiers"),
        ([dossier(1, "slower-10", "broken", 1.1)], "2 cases of a dossier have no speed: t0: broken"),
    ],
)  # fmt: skip
def test_what_breaks_a_promise_fails_the_selftest(done: list[FinishedDossier], fault: str) -> None:
    found = score_dossiers(done, len(done))
    assert not found.passed and re.search(fault, " ".join(found.faults))


def test_what_comes_and_goes_promises_nothing_and_what_is_void_counts_for_nothing() -> None:
    some = [dossier(n, "some-launches", "same", 1.0) for n in range(6)]
    void = [dossier(n, "", "", 1.0, accused=8, void=True) for n in range(6)]
    found = score_dossiers([*some, *void], 13)
    assert found.plants[0].promised is None and not found.faults and found.void == 6
    assert "no dossier counts" in score_dossiers(void, 6).faults[0]
    assert found.unfinished == "only 12 of 13 dossiers are done"
