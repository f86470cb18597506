"""A second look goes to the checks and comes back as it was meant."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from postprocess.base.progress import Progress
from postprocess.judging import common_cause, confirmation, retest
from postprocess.judging import retest_targets as targets
from postprocess.judging.confirmation import Measure, confirm_slow_cases
from postprocess.model.case import Case
from postprocess.model.groups import group_cases
from postprocess.model.launch import FinishedLaunch, LaunchOutcome
from postprocess.model.options import AGAIN
from postprocess.model.session import Selection
from postprocess.model.verdict import FAILED_LAUNCH, JUDGED, CaseResult, Verdict
from postprocess.references.catalog import ReferenceCatalog
from postprocess.results.store import StoreError
from postprocess.stats.band import compute_band
from postprocess.stats.detection import PASSES, compute_gross_distance
from tests.support.factories.common import Noise, calibrated, cases, judged, night
from tests.support.factories.launch import case, planned


def test_cases_of_a_routine_are_one_look_and_survive_json():
    cases = [case(size=8), case(size=80), case(routine="barrier", size=0)]
    choice = json.loads(json.dumps(targets.build_retest_choice(cases, dict.fromkeys(cases, ("n1", "n2")))))
    found = targets.select_targets(choice)
    assert [look.routine for look in found] == sorted({each.routine for each in cases})
    assert {look.avoided for look in found} == {("n1", "n2")}
    assert found[0] == targets.RetestTarget(
        "mpicost", cases[0].partition, cases[0].environment, "2x2", "barrier", ("n1", "n2")
    )


def test_only_the_looks_of_a_place_are_taken():
    choice = targets.build_retest_choice([case(), case(routine="barrier", size=0)], {})
    place = {"program": "mpicost", "layout": "2x2"}
    assert len(targets.select_targets(choice, **place)) == 2
    assert targets.select_targets(choice, **place, environment="elsewhere") == []
    assert targets.select_targets(choice, program="osu", layout="2x2") == []


@pytest.mark.parametrize(
    ("nodes", "needed", "avoided"), [(4, 2, ["n1", "n2"]), (3, 1, ["n1", "n2"]), (3, 2, []), (2, 1, [])]
)
def test_nodes_are_avoided_by_their_short_names_while_enough_others_are_left(nodes, needed, avoided):
    """A scheduler knows n1 where MPI says n1.cluster, and one name that it does not know refuses the job."""
    slow = [targets.RetestTarget("mpicost", "cpu", "mpich", "2x1", "bcast", ("n2.cluster", "n1.cluster"))]
    slow.append(replace(slow[0], routine="barrier", avoided=("n1",)))
    assert targets.list_avoided_nodes(slow, nodes, needed) == avoided
    assert targets.list_avoided_nodes([replace(slow[0], avoided=())], nodes, needed) == []


def test_nodes_that_are_wanted_come_by_their_short_names():
    cases = [case(), case(routine="barrier", size=0)]
    choice = json.loads(
        json.dumps(targets.build_retest_choice(cases, {}, dict.fromkeys(cases, ("n2.cluster", "n1"))))
    )
    assert targets.list_wanted_nodes(targets.select_targets(choice)) == ["n1", "n2"]
    assert targets.list_wanted_nodes(targets.select_targets(targets.build_retest_choice(cases, {}))) == []


SITE = Selection(Path("site_configs/local.py"))
QUIET = Noise(night=0.003, launch=0.003, own=0.02)


def slower_night(by: float = 0.07) -> tuple[list[CaseResult], ReferenceCatalog]:
    """A night in which everything is slower, with the references it is held against."""
    random = np.random.default_rng(1)
    catalog = calibrated(random, cases(), QUIET)
    return night(random, cases(), catalog, QUIET, lambda _: by), catalog


def fresh(
    results: Sequence[CaseResult], monkeypatch, factor: Callable[[Case], float]
) -> tuple[Measure, list[Selection]]:
    """What measures again, and what it was asked; each case is so many times as slow as its reference."""
    asked: list[Selection] = []
    references = {result.case: result.reference for result in results}

    def measure(selection: Selection) -> list[FinishedLaunch]:
        asked.append(selection)
        done = FinishedLaunch(planned(cases=tuple(references)), LaunchOutcome(None), 1.0, "stage", {})
        return [
            replace(done, launch=replace(done.launch, number=number + 1))
            for number in range(selection.launches)
        ]

    def said(one: Case, _: Sequence[FinishedLaunch], catalog: ReferenceCatalog) -> CaseResult:
        return judged(one, catalog, references[one] * factor(one))

    monkeypatch.setattr(confirmation, "evaluate_case", said)
    monkeypatch.setattr(retest, "evaluate_case", said)
    return measure, asked


def beyond(results: Sequence[CaseResult]) -> set[Case]:
    return {result.case for result in results if result.verdict == Verdict.REGRESSED}


def test_it_is_told_once_and_named_where_a_case_is_slow_by_it(progress: Progress, monkeypatch):
    results, catalog = slower_night()
    measure, _ = fresh(results, monkeypatch, lambda _: 1.4)  # gross: called at once
    confirmed = confirm_slow_cases(results, [], catalog, SITE, measure, progress, lambda _: "since ever")
    (note,) = progress.notes
    said = "cpu: everything 7% slower (median of 126 cases), since ever: the machine"
    assert note.startswith(said)
    assert confirmed.causes == (note,)
    after = confirmed.results
    assert [result.case for result in after] == [result.case for result in results]
    folded = {result.case for result in after if result.cause}
    assert folded <= beyond(after) <= beyond(results)
    assert len(folded) > 0.8 * len(beyond(results))


def test_a_cause_accuses_no_case_whose_own_fresh_launches_are_fine(progress: Progress, monkeypatch):
    """Every second case is as ever when it is measured again, and the cause is still there."""
    results, catalog = slower_night()
    fine = {result.case for result in results[::2]}
    measure, _ = fresh(results, monkeypatch, lambda one: 1.0 if one in fine else 1.4)
    (cause,) = common_cause.find_common_causes(results, catalog, {})
    assume_shown = {case: 1.2 for case in cause.probe_cases}
    monkeypatch.setattr(
        retest, "evaluate_case", lambda one, _, catalog: judged(one, catalog, assume_shown[one])
    )
    confirmed = confirm_slow_cases(results, [], catalog, SITE, measure, progress)
    assert confirmed.causes
    slow = beyond(results)
    assert slow & fine and slow - fine
    cleared = {result.case for result in confirmed.results if result.verdict == Verdict.CLEARED}
    assert cleared == slow & fine
    assert beyond(confirmed.results) == slow - fine


def test_what_sticks_out_is_confirmed_by_itself(progress: Progress, monkeypatch):
    results, catalog = slower_night()
    bad = results[5].case
    results[5] = judged(bad, catalog, 2 * results[5].reference)
    measure, _ = fresh(results, monkeypatch, lambda one: 2.0 if one == bad else 1.07)
    after = {
        result.case: result
        for result in confirm_slow_cases(results, [], catalog, SITE, measure, progress).results
    }
    assert after[bad].verdict == Verdict.REGRESSED
    assert "fresh launches" in after[bad].reason
    assert not after[bad].cause


def test_what_fresh_launches_do_not_show_leaves_each_case_to_itself(progress, monkeypatch):
    results, catalog = slower_night()
    measure, asked = fresh(results, monkeypatch, lambda _: 1.0)
    confirmed = confirm_slow_cases(results, [], catalog, SITE, measure, progress)
    after = confirmed.results
    assert not confirmed.causes
    (note,) = progress.notes
    assert note.endswith("fresh launches do not show it, and each case stands by itself")
    assert {result.case for result in after if result.verdict == Verdict.CLEARED} == beyond(results)
    assert not beyond(after)
    assert len(asked) == 1


def test_a_shift_within_all_bands_is_measured_again_too(progress: Progress, monkeypatch):
    results, catalog = slower_night()
    results = [replace(result, verdict=Verdict.PASS, reason="") for result in results]
    measure, asked = fresh(results, monkeypatch, lambda _: 1.07)
    confirmed = confirm_slow_cases(results, [], catalog, SITE, measure, progress)
    assert asked and [selection.launches for selection in asked] == list(PASSES)[: len(asked)]
    assert max(len(selection.choice[AGAIN]) for selection in asked) <= common_cause.PROBE_CASES
    assert len(confirmed.causes) == 1 and not beyond(confirmed.results)


@pytest.mark.parametrize("verdict", FAILED_LAUNCH)
@pytest.mark.parametrize("within_bands", [True, False])
def test_a_fresh_launch_that_failed_is_no_mere_slowdown(
    progress: Progress, monkeypatch, verdict: Verdict, within_bands: bool
):
    results, catalog = slower_night()
    if within_bands:
        results = [replace(result, verdict=Verdict.PASS, reason="") for result in results]
    (cause,) = common_cause.find_common_causes(results, catalog, {})
    measure, _ = fresh(results, monkeypatch, lambda _: 1.07)

    def one_fails(selection: Selection) -> list[FinishedLaunch]:
        first, *others = measure(selection)
        launch = replace(first.launch, cases=cause.probe_cases)
        return [replace(first, launch=launch, outcome=LaunchOutcome(None, verdict, "why")), *others]

    after = {r.case: r for r in confirm_slow_cases(results, [], catalog, SITE, one_fails, progress).results}
    for probe in cause.probe_cases:
        assert (after[probe].verdict, after[probe].reason) == (verdict, "in a confirmation run: why")


# --- what people see ---


def test_the_cases_of_a_cause_are_one_group():
    results, catalog = slower_night()
    told = retest.name_confirmed_causes(results, common_cause.find_common_causes(results, catalog, {}))
    after = [replace(result, reason="another sentence") for result in told]
    named = [result for result in after if result.verdict == Verdict.REGRESSED]
    shared = [result for result in named if result.cause]
    assert len(shared) > 50
    groups = [group for group in group_cases(named) if group.results[0].cause]
    (together,) = groups
    assert len(together.results) == len(shared)
    assert together.reason.startswith("common cause: cpu: everything 7% slower")
    assert ";" not in together.reason


# --- since when ---


def query_commands(nights: Sequence[tuple[str, float, str]], cause: common_cause.CommonCause, **other: str):
    """A history in which all cases of a cause were so many times as slow as their references."""
    rows = [
        {
            "session": started,
            "started_utc": started if "T" in started else f"{started}T01:00:00Z",
            "mode": "nightly",
            "key": member.case.key,
            "verdict": "pass",
            "value": factor * member.result.reference,
            "unit": "s",
            "hosts": hosts,
        }
        | other
        for started, factor, hosts in nights
        for member in cause.members
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(common_cause.COLUMNS, pl.String) | {"value": pl.Float64})


@pytest.fixture(scope="module")
def cause() -> common_cause.CommonCause:
    results, catalog = slower_night()
    (found,) = common_cause.find_common_causes(results, catalog, dict.fromkeys(cases(), ("n1", "n2")))
    return found


@pytest.mark.parametrize(
    ("nights", "words"),
    [
        ([], ""),
        ([("2026-11-18", 1.0, "n1,n2")], "since this night (not yet 2026-11-18)"),
        ([("2026-11-18", 1.0, "n3,n4")], "since this night (not yet 2026-11-18, on n3, n4)"),
        (
            [("2026-11-18", 1.0, "n3"), ("2026-11-19", 1.07, "n1"), ("2026-11-20", 1.06, "n1")],
            "since 2026-11-19 (not yet 2026-11-18, on n3)",
        ),
        ([("2026-11-19", 1.07, "n1"), ("2026-11-18", 1.08, "n1")], "since 2026-11-18 or before"),
        (
            [("2026-11-17", 1.07, "n1"), ("2026-11-18", 1.0, ""), ("2026-11-19", 1.07, "n1")],
            "since 2026-11-19 (not yet 2026-11-18)",
        ),
        (
            [("2026-11-19T02:18:33Z", 1.0, "n1"), ("2026-11-19T07:44:01Z", 1.07, "n1")],
            "since 2026-11-19 07:44 UTC (not yet 2026-11-19 02:18 UTC, on n1)",
        ),
    ],
)
def test_history_says_since_when(cause: common_cause.CommonCause, nights, words: str):
    assert common_cause.find_onset(cause, query_commands(nights, cause)) == words


@pytest.mark.parametrize(
    "other",
    [
        {"mode": "calibrate"},
        {"mode": "run"},
        {"unit": "MB/s"},
        *({"verdict": str(v)} for v in Verdict if v not in JUDGED),
    ],
)
def test_what_was_no_night_or_not_judged_or_in_another_unit_says_nothing(
    cause: common_cause.CommonCause, other
):
    assert common_cause.find_onset(cause, query_commands([("2026-11-18", 1.0, "n1")], cause)) != ""
    assert common_cause.find_onset(cause, query_commands([("2026-11-18", 1.0, "n1")], cause, **other)) == ""


def test_a_night_with_few_of_the_cases_says_nothing(cause: common_cause.CommonCause):
    history = query_commands([("2026-11-18", 1.0, "n1")], cause)
    assert common_cause.find_onset(cause, history.head(len(cause.members) // 2 - 1)) == ""


def test_a_store_that_is_empty_or_damaged_hides_nothing(cause: common_cause.CommonCause, tmp_path, monkeypatch):
    assert common_cause.find_onset_in_store(tmp_path, cause) == ""

    def damaged(*_, **__):
        raise StoreError("x.parquet: damaged")

    monkeypatch.setattr(common_cause, "read_headlines", damaged)
    assert common_cause.find_onset_in_store(tmp_path, cause) == ""


# --- what other hours may bring ---


def test_slow_again_is_suspect_until_it_is_gross(progress: Progress, monkeypatch):
    random = np.random.default_rng(1)
    catalog = calibrated(random, cases(), QUIET)
    results = [judged(one, catalog, catalog.reference(one).center) for one in cases()]
    one = results[5].case
    reference = catalog.reference(one)
    gross = math.exp(compute_gross_distance(reference, 5))
    between = math.sqrt(compute_band(reference).upper / reference.center * gross)
    for factor, verdict in ((between, Verdict.SUSPECT), (1.01 * gross, Verdict.REGRESSED)):
        results[5] = judged(one, catalog, factor * reference.center)
        measure, _ = fresh(results, monkeypatch, lambda case, by=factor: by if case == one else 1.0)
        after = confirm_slow_cases(results, [], catalog, SITE, measure, progress).results
        assert after[5].verdict == verdict
