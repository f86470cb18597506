"""Reference benchmarks measure their MPIs in turn, unless there is a reason to measure one tonight."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from postprocess.model.options import PROGRAM
from postprocess.model.plan import PlannedLaunch
from postprocess.model.reference import Reference
from postprocess.model.session import Request, Selection
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog
from postprocess.session.nightly import turns
from tests.support.factories.launch import case, catalog_of, planned

ONCE = [case(program="imb", routine=name, cache="warm") for name in ("bcast", "barrier")]
OWN, IMB = planned(), planned(test="imb", program="imb", cases=tuple(ONCE))
MPIS = ("mpich", "openmpi", "intel")
NIGHTS = [f"2026-11-{day:02d}T01:00:00Z" for day in range(1, 30)]


def with_mpi(launch: PlannedLaunch, name: str) -> PlannedLaunch:
    cases = tuple(replace(each, environment=name) for each in launch.cases)
    return replace(launch, environment=name, cases=cases)


PLAN = [with_mpi(launch, name) for launch in (OWN, IMB) for name in MPIS]


def references_of(cases, launches: int) -> ReferenceCatalog:
    return catalog_of([Reference(each, 1e-6, 0.1, launches) for each in cases])


def references_of_plan(plan) -> ReferenceCatalog:
    sets = {launch.environment: references_of(launch.cases, 5).sets for launch in plan}
    return ReferenceCatalog(
        {("local:cpu", name): only for name, known in sets.items() for only in known.values()}
    )


KNOWN = references_of_plan(PLAN)


def request(**changes) -> Request:
    values = {"mode": "nightly", "command": (), "site": "local", "selection": Selection(Path("site.py"))}
    return Request(**values | changes)


def measure(
    root: Path, night: int, plan=PLAN, catalog=KNOWN, verdict=Verdict.PASS, library="", **asked
) -> list[str]:
    """Measure a night; the MPIs that IMB measured."""
    resting = turns.choose_resting(root, request(**asked), plan, catalog)
    tonight = turns.skip_resting(plan, resting)
    results = [CaseResult(each, verdict) for launch in tonight for each in launch.cases]
    told = SimpleNamespace(circumstances={"mpi_library": library})
    finished = [
        SimpleNamespace(launch=launch, conditions=told) for launch in tonight if launch.program == "mpicost"
    ]
    turns.remember_turns(root, NIGHTS[night], plan, resting, finished, results)
    assert all(launch.cases for launch in tonight if launch.program == "mpicost")
    assert [launch.all_cases for launch in tonight] == [launch.all_cases for launch in plan]
    return [launch.environment for launch in tonight if launch.program == "imb" and launch.cases]


def test_the_mpi_that_waited_longest_has_its_turn(tmp_path: Path):
    assert measure(tmp_path, 0) == [*MPIS]  # nothing is known yet
    taken = [measure(tmp_path, night) for night in range(1, 7)]
    assert all(len(each) == 1 for each in taken)
    assert ({name for (name,) in taken[:3]}, taken[:3]) == ({*MPIS}, taken[3:])


def test_each_of_many_mpis_has_its_turn_within_a_week(tmp_path: Path):
    names = [f"mpi{number}" for number in range(9)]
    plan = [with_mpi(IMB, name) for name in names]
    known = references_of_plan(plan)
    measure(tmp_path, 0, plan, known)
    taken = [measure(tmp_path, night, plan, known) for night in range(1, 1 + turns.MOST_NIGHTS)]
    assert {name for each in taken for name in each} == {*names}
    assert max(map(len, taken)) == 2


CHANGED = [replace(launch, library="another") if launch.environment == "mpich" else launch for launch in PLAN]
FORGOTTEN = references_of_plan([launch for launch in PLAN if launch.environment != "mpich"])


@pytest.mark.parametrize(
    ("tonight", "expected"),
    [
        ({}, ["openmpi"]),
        ({"plan": CHANGED}, ["mpich", "openmpi"]),
        ({"catalog": FORGOTTEN}, ["mpich", "openmpi"]),
        ({"selection": Selection(Path("site.py"), choice={PROGRAM.variable: ["imb"]})}, [*MPIS]),
        ({"selection": Selection(Path("site.py"), environments=MPIS)}, [*MPIS]),
        ({"families": ["mpich"]}, [*MPIS]),
        ({"launches": 3}, [*MPIS]),
        ({"strict": True}, [*MPIS]),  # which fails by what is skipped
        ({"mode": "run"}, [*MPIS]),
    ],
)
def test_what_was_chosen_or_has_changed_does_not_wait_for_its_turn(tmp_path: Path, tonight, expected):
    measure(tmp_path, 0)
    assert measure(tmp_path, 1) == ["intel"]
    assert measure(tmp_path, 2) == ["mpich"]
    assert measure(tmp_path, 3, **tonight) == expected


@pytest.mark.parametrize("verdict", [Verdict.SUSPECT, Verdict.REGRESSED, Verdict.CRASHED])
def test_what_was_slow_or_failed_is_measured_every_night_until_it_is_settled(tmp_path: Path, verdict):
    measure(tmp_path, 0)
    assert measure(tmp_path, 1, verdict=verdict) == ["intel"]
    assert measure(tmp_path, 2) == ["mpich", "intel"]
    assert measure(tmp_path, 3) == ["openmpi"]


def test_an_mpi_that_changed_while_it_rested_is_measured_the_next_night(tmp_path: Path):
    measure(tmp_path, 0, library="old")
    assert measure(tmp_path, 1, library="new") == ["intel"]
    assert measure(tmp_path, 2, library="new") == [*MPIS]
    assert len(measure(tmp_path, 3, library="new")) == 1


def test_a_library_that_nobody_told_has_not_changed(tmp_path: Path):
    measure(tmp_path, 0)
    assert measure(tmp_path, 1, library="told now") == ["intel"]
    assert measure(tmp_path, 2, library="told now") == ["mpich"]


def test_simulated_time_takes_no_turns(tmp_path: Path):
    plan = [replace(launch, exact=True) for launch in PLAN]
    assert measure(tmp_path, 0, plan) == measure(tmp_path, 1, plan) == [*MPIS]


ELSEWHERE = with_mpi(IMB, "other")


@pytest.mark.parametrize(
    ("planned", "before", "after", "deferred"),
    [
        ([OWN, IMB], [], references_of(ONCE, 1), ["imb"]),
        ([IMB], [], references_of(ONCE, 1), []),  # the night would measure nothing
        ([OWN, IMB], [], references_of(ONCE, 5), []),
        ([OWN, IMB], [], references_of(ONCE[:1], 1), []),  # a launch of the calibration failed
        ([OWN, IMB], ONCE, references_of(ONCE, 1), []),  # it is of another night
        ([OWN, replace(IMB, exact=True)], [], references_of(ONCE, 1), []),
        ([OWN, IMB, ELSEWHERE], [], references_of(ONCE, 1), []),  # which has a reference of other nights
    ],
)
def test_what_a_night_calibrated_in_one_launch_is_judged_by_later_nights(planned, before, after, deferred):
    request = SimpleNamespace(launches=None)
    found = turns.defer_measured_once(request, planned, references_of(before, 1), after)
    assert [launch.program for launch in found if not launch.cases] == deferred
    assert [launch.all_cases for launch in found] == [launch.all_cases for launch in planned]
    reasons = {skip.reason for launch in found for skip in launch.skips}
    assert reasons == ({turns.DEFERRED} if deferred else set())
