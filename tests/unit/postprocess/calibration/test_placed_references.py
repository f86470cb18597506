"""Launches whose ranks lay elsewhere have a reference of their own, and are judged by no other."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from postprocess.calibration.ledger import CalibrationHeader, collect_launches
from postprocess.calibration.samples import describe_places, list_short_places
from postprocess.calibration.update import update_references
from postprocess.judging.confirmation import RetestCandidate
from postprocess.judging.evaluate import evaluate_case, judge_case, judge_elsewhere
from postprocess.judging.suspicion import NO_HISTORY
from postprocess.model.launch import FinishedLaunch
from postprocess.model.measurement import CoreLatency, Measurement
from postprocess.model.reference import Reference
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog, ReferenceSet, estimate_elsewhere, load_catalog
from postprocess.references.comparability import PlacedLaunches, is_shifting
from postprocess.references.lint import lint_reference
from reframe_checks.common.known_bands import ELSEWHERE, KnownBands, find_bands
from tests.support.factories.launch import CASES, PLACE, case, finished, planned, steady
from tests.support.factories.ledger import launch
from tests.support.faults import plants

Latencies = tuple[float | None, float | None]
NEAR, FAR, OTHER, MOVED = (5e-8, 5.2e-8), (2.6e-7, 2.5e-7), (9e-7, 9e-7), (5e-8, 2.5e-7)
ASIDE: Latencies = (None, None)  # the other rank did not run
PLACES = [(":".join(PLACE[:2]), PLACE[2])]
CASE = CASES[0]


def launched(root: Path, core_latency: Latencies, scale: float) -> FinishedLaunch:
    """One launch; what ReFrame says of it is not asked."""
    root.mkdir(parents=True)
    return finished(root, scale, core_latency=core_latency, asserted=False)


def calibrated(
    root: Path, some: Sequence[tuple[Latencies, float]]
) -> tuple[ReferenceCatalog, list[FinishedLaunch]]:
    """References of launches, each with its time from core to core and its slowness; and these launches."""
    done = [launched(root / str(number), *each) for number, each in enumerate(some)]
    new = collect_launches(CalibrationHeader("20261121T090000Z-1"), root, done)
    (path,) = update_references(root / "references", new)
    assert lint_reference(path) == []
    return load_catalog([root / "references"], PLACES), done


@pytest.fixture(scope="module")
def two_places(tmp_path_factory: pytest.TempPathFactory) -> ReferenceCatalog:
    """Eighteen launches near each other, and twelve far apart, twice as slow; one was moved."""
    scatter = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0]
    some = [(NEAR, value) for value in scatter * 3] + [(FAR, 2 * value) for value in scatter * 2]
    return calibrated(tmp_path_factory.mktemp("two"), [*some, (MOVED, 1.5)])[0]


def judge(catalog: ReferenceCatalog, *done: FinishedLaunch) -> CaseResult:
    return evaluate_case(CASE, done, catalog)


def test_each_place_has_its_own_reference(two_places: ReferenceCatalog, tmp_path: Path):
    usual = steady(launched(tmp_path / "one", NEAR, 1.0), CASE)
    row, far = (two_places.reference(CASE, value) for value in (None, FAR[0]))
    assert row and row.launches == 18 and row.center == pytest.approx(usual, rel=0.02)
    assert far and far.launches == 12 and far.center == pytest.approx(2 * usual, rel=0.02)
    assert two_places.reference(CASE, NEAR[1]) is row
    assert two_places.reference(CASE, OTHER[0]) is None


def test_ranks_on_other_cores_are_held_against_their_like(two_places: ReferenceCatalog, tmp_path):
    """Twice as slow as near ones, and as fast as far ones ever are: no regression, and none is hidden."""
    assert judge(two_places, launched(tmp_path / "far", FAR, 2.0)).verdict == Verdict.PASS
    slow = judge(two_places, launched(tmp_path / "slow", FAR, 6.0))
    assert slow.verdict == Verdict.REGRESSED
    assert judge(two_places, launched(tmp_path / "near", NEAR, 3.0)).verdict == Verdict.REGRESSED
    nears, _ = calibrated(tmp_path / "nears", [(NEAR, 1 + each / 100) for each in range(12)])
    elsewhere = judge(nears, launched(tmp_path / "again", FAR, 2.0))
    assert elsewhere.elsewhere and elsewhere.reference is None
    assert elsewhere.verdict == Verdict.PROVISIONAL
    assert elsewhere.reason.startswith("ranks lay on other cores than those of the reference")
    assert elsewhere.latency_ratio == pytest.approx(5, rel=0.1)


@plants("environment", "ranks on cores where no launch of the reference lay, a hundred times as slow",
        "judging one case", "not-comparable", 1,
        "ranks lay on other cores than those of the reference; …; slower than other cores make it")  # fmt: skip
def test_a_gross_change_elsewhere_is_not_provisional(two_places, tmp_path, declared):
    gross = judge(two_places, launched(tmp_path / "gross", OTHER, 100.0))
    assert not gross.elsewhere
    assert judge(two_places, launched(tmp_path / "far", OTHER, 30.0)).elsewhere  # as such cores make it
    declared.check_case(gross.verdict, gross.reason)


def test_elsewhere_the_best_trial_decides(two_places: ReferenceCatalog):
    """Four times as slow, other cores make it; a trial or two were disturbed beside it."""
    row = two_places.reference(CASE)
    assert row
    value, best = 50 * row.center, 4 * row.center
    measured = Measurement(value, best=best, core_latency=CoreLatency(7e-8, 7e-8))
    unjudged = CaseResult(CASE, Verdict.NOT_COMPARABLE, "", value=value)
    assert judge_elsewhere(unjudged, measured, row).elsewhere
    assert not judge_elsewhere(unjudged, replace(measured, best=6 * row.center), row).elsewhere


def test_a_reference_of_one_launch_fails_nothing_elsewhere(tmp_path: Path):
    """Nor does it in its own place."""
    one, _ = calibrated(tmp_path / "one", [(NEAR, 1.0)])
    assert judge(one, launched(tmp_path / "far", OTHER, 100.0)).verdict == Verdict.PROVISIONAL
    assert judge(one, launched(tmp_path / "near", NEAR, 100.0)).verdict == Verdict.PROVISIONAL


def test_a_case_that_was_moved_is_provisional_whatever_is_known(two_places, tmp_path):
    """It proves nothing, and is no failure: of 2,340 cases on a virtual machine four were moved."""
    known = two_places.find_set(CASE)
    row = replace(known.references[CASE], session_prior=None)  # type: ignore[union-attr]
    assert not row.few_sessions
    known = replace(known, references={CASE: row}, shifting=False)  # type: ignore[type-var]
    settled = ReferenceCatalog({PLACES[0]: known})
    moved = judge(settled, launched(tmp_path / "moved", MOVED, 1.0))
    assert moved.verdict == Verdict.PROVISIONAL and moved.provisional
    assert moved.reason.startswith("its ranks were moved")
    found = judge(settled, launched(tmp_path / "gross", MOVED, 30.0)).verdict
    assert found == Verdict.NOT_COMPARABLE


def test_other_cores_are_another_binding_where_none_were_before(two_places, tmp_path):
    """A machine that moves ranks brings new places; on any other the binding has changed."""
    known = two_places.find_set(CASE)
    assert known and known.shifting
    nears, _ = calibrated(tmp_path / "nears", [(NEAR, 1 + each / 100) for each in range(12)])
    assert not nears.find_set(CASE).shifting  # type: ignore[union-attr]
    row = replace(known.references[CASE], session_prior=None)
    known = replace(known, references={CASE: row})
    there = launched(tmp_path / "there", OTHER, 1.0)
    for shifting, verdict in ((True, Verdict.PROVISIONAL), (False, Verdict.NOT_COMPARABLE)):
        settled = ReferenceCatalog({PLACES[0]: replace(known, shifting=shifting)})
        assert judge(settled, there).verdict == verdict


def test_of_launches_in_two_places_those_of_one_are_judged(two_places: ReferenceCatalog, tmp_path):
    done = [(NEAR, 1.0), (FAR, 2.0), (NEAR, 1.02)]
    some = [launched(tmp_path / str(number), *each) for number, each in enumerate(done)]
    result = judge(two_places, *some)
    assert result.launches == 2 and result.core_latency == pytest.approx(5.1e-8, rel=0.01)


def test_one_launch_makes_a_reference_of_its_place_with_the_spread_of_similar_cases():
    """With that of few cases it is blind, and fails nothing."""
    cases = [case(size=8 * number) for number in range(1, 13)]
    rows = {
        each: Reference(each, 1e-6, spread, 20)
        for each, spread in zip(cases, np.geomspace(0.018, 0.022, len(cases)), strict=True)
    }
    home = PlacedLaunches(5e-8, [1e-6] * 20, [0] * 20, [1] * 20, [])
    far = PlacedLaunches(2.5e-7, [2e-6], [0], [1], [])
    launches = {each: [home, far] for each in cases}
    for (found,) in estimate_elsewhere(rows, launches).values():
        assert (found.center, found.launches) == (pytest.approx(2e-6), 1)
        assert found.moderated[0] == pytest.approx(0.02, rel=0.1)
    few = {each: rows[each] for each in cases[:5]}
    for (found,) in estimate_elsewhere(few, {each: launches[each] for each in few}).values():
        slow = judge_case(found.case, Measurement(9e-6), found)
        assert slow.verdict == Verdict.PROVISIONAL and slow.detectable is None


def test_where_a_program_has_one_launch_the_means_of_another_one_stand_in():
    """The next night finds a case that takes three times as long; a mean elsewhere accuses nothing."""
    timed = [case(size=8 * number) for number in range(1, 13)]
    nothing = PlacedLaunches(5e-8, [], [], [], [])
    scatter = np.exp(np.random.default_rng(1).normal(0.0, 0.04, (12, 20)))
    rows = {each: Reference(each, 1e-6, 0.02, 20) for each in timed}
    launches = {
        each: [nothing, PlacedLaunches(2e-7, [*values], [0] * 20, [1] * 20, [*values])]
        for each, values in zip(timed, 1e-6 * scatter, strict=True)
    }
    only = case(size=8, program="imb")
    rows[only] = Reference(only, 1e-6, 0.0, 1)
    launches[only] = [nothing, PlacedLaunches(2e-7, [1e-6], [0], [1], [])]
    (found,) = estimate_elsewhere(rows, launches)[only]
    assert found.prior and found.prior.spread == pytest.approx(0.04, rel=0.2) and found.prior.degrees == 5
    assert judge_case(only, Measurement(3e-6), found).verdict == Verdict.REGRESSED
    assert judge_case(only, Measurement(1.1e-6), found).verdict in (Verdict.PASS, Verdict.PROVISIONAL)
    unjudged = CaseResult(only, Verdict.NOT_COMPARABLE, "", value=1e-3)
    measured = Measurement(1e-3, core_latency=CoreLatency(9e-7, 9e-7))
    assert judge_elsewhere(unjudged, measured, found).elsewhere
    alone = estimate_elsewhere({only: rows[only]}, {only: launches[only]})[only][0]
    assert judge_case(only, Measurement(9e-6), alone).detectable is None


def test_launches_that_tell_nothing_count_for_the_row(tmp_path: Path):
    """Beside other work the ranks of a launch may not run at the same time."""
    some: list[tuple[Latencies, float]] = [(NEAR, 1 + each / 100) for each in range(12)]
    mixed, _ = calibrated(tmp_path / "mixed", [*some, *((ASIDE, 3 + each / 100) for each in range(6))])
    assert mixed.reference(CASE, FAR[0]) is None
    aside = judge(mixed, launched(tmp_path / "aside", ASIDE, 1.0))
    assert aside.core_latency == pytest.approx(5.1e-8, rel=0.01) and not aside.elsewhere
    half = judge(mixed, launched(tmp_path / "half", (None, NEAR[0]), 1.0))
    assert not half.elsewhere


def test_a_fresh_launch_elsewhere_clears_nothing(two_places: ReferenceCatalog, tmp_path: Path):
    slow = judge(two_places, launched(tmp_path / "slow", NEAR, 3.0))
    candidate = RetestCandidate(slow)
    for number in range(2):
        there = launched(tmp_path / str(number), OTHER, 1.0)
        candidate.count_launch(judge(two_places, there))
    assert not candidate.cleared and len(candidate.displaced) == 2
    said = candidate.decide(two_places, NO_HISTORY, interrupted=False)
    assert said.verdict == Verdict.SUSPECT  # it was slow once, and nothing fails it for where ranks lay later
    assert "2 fresh launches could not say: ranks lay on other cores" in said.reason


def test_a_fresh_value_of_another_place_counts_by_its_own_reference(two_places, tmp_path):
    slow = judge(two_places, launched(tmp_path / "slow", NEAR, 3.0))
    candidate = RetestCandidate(slow)
    candidate.count_launch(judge(two_places, launched(tmp_path / "again", FAR, 6.0)))
    assert candidate.values == [pytest.approx(slow.value, rel=0.02)]
    (told,) = candidate.slow
    assert re.fullmatch(r"[\d.]+ us \([\d.]+ times as slow as the reference there\)", told)


def test_reframe_has_the_band_of_the_same_place(two_places: ReferenceCatalog, tmp_path: Path):
    roots = [two_places.find_set(CASE).path.parents[2]]  # type: ignore[union-attr]

    def bands(place: Latencies, name: str) -> KnownBands:
        done = launched(tmp_path / name, place, 1.0)
        return find_bands(PLACES[0], roots, [(planned(), done.outcome)])

    near, far, other = (bands(*each) for each in ((NEAR, "near"), (FAR, "far"), (OTHER, "other")))
    found = far.tuples[CASE.variable][0]
    assert found == pytest.approx(2 * near.tuples[CASE.variable][0], rel=0.03)
    assert other.differences[CASE.variable] == ELSEWHERE


@pytest.mark.parametrize(("elsewhere", "shifting"), [(0, False), (1, False), (2, True), (20, True)])
def test_one_launch_of_twenty_elsewhere_makes_no_machine_that_moves_ranks(elsewhere, shifting):
    near = PlacedLaunches(5e-8, [1.0] * 20, [], [], [])
    far = [PlacedLaunches(2e-7, [1.0] * elsewhere, [], [], [])] if elsewhere else []
    assert is_shifting([[], [near], [near, *far]]) is shifting
    unknown = PlacedLaunches(None, [1.0] * 20, [], [], [])
    assert not is_shifting([[unknown, near]])  # of launches before the time from core to core was measured


@pytest.mark.parametrize(("routine", "compared"), [("control_compute", True), ("bcast", False)])
def test_what_touches_no_other_core_has_a_reference_everywhere(tmp_path, routine: str, compared: bool):
    one = case(routine)
    known = ReferenceSet(tmp_path / "a.tsv", {one: Reference(one, 1e-6, 0.01, 20, core_latency=NEAR[0])}, {})
    assert (known.find_placed(one, FAR[0]) is not None) is compared
    assert known.find_placed(one, NEAR[0]) is not None


def launches(near: int, far: int):
    """Launches of one environment by how far apart the ranks' cores were."""
    one, places = launch(), [NEAR[0]] * near + [FAR[0]] * far
    return [replace(one, core_latencies=dict.fromkeys(one.values, place)) for place in places]


@pytest.mark.parametrize(
    ("near", "far", "short"), [(20, 0, False), (14, 6, True), (10, 10, False), (19, 1, False)]
)
def test_a_place_with_some_launches_and_fewer_than_ten_is_short(near: int, far: int, short: bool):
    """One launch of twenty may not come again, and is not waited for."""
    assert bool(list_short_places(launches(near, far))) is short


def test_a_calibration_says_in_how_many_places_the_ranks_lay():
    """By layout: of more processes, ranks lie farther apart anyway."""
    assert describe_places(launches(20, 0)) == []
    (told,) = describe_places(launches(9, 11))
    assert told.endswith(f"launches in each: {launch().place.environment} 2x2 11 + 9")
    other = [replace(each, core_latencies={case("bcast", processes=4).key: FAR[0]}) for each in launches(5, 0)]
    assert describe_places([*launches(20, 0), *other]) == []
