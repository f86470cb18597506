"""A comparison is judged whole: nothing that fails is left out, and no pair counts that ran otherwise."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.features.compare import data, page
from postprocess.features.compare.data import (
    NEW,
    OLD,
    CaseValue,
    ComparedSide,
    ComparisonPass,
    LaunchValues,
    ReferenceEffects,
    StoredComparison,
)
from postprocess.features.compare.judge import ComparisonVerdict, Decision, judge_comparison
from postprocess.features.compare.pairs import draw_block
from postprocess.features.compare.text import format_comparison_text
from tests.support.factories.comparison import HEADER

BCAST, PINGPONG = (f"cpu/mpicost/{each}/evict-barrier/2x2/8" for each in ("bcast", "pingpong@1"))
CONTROL = "cpu/mpicost/control_timer/evict-barrier/2x2/8"


def value(seconds: float) -> CaseValue:
    return CaseValue(seconds, "s", rerun="./plumbline run")


def compared(old: dict[str, CaseValue], new: dict[str, CaseValue], binding: str = "core") -> StoredComparison:
    """16 pairs, each value off by a little in a fixed way."""
    passes = []
    for block in range(9):
        for position, side in enumerate(draw_block(7, block) if block else (OLD, NEW)):
            off = 1 + 0.002 * ((3 * block + 2 * position) % 5)
            cases = {
                key: replace(each, value=each.value * off) if each.value else each
                for key, each in (old if side == OLD else new).items()
            }
            place = {"nodes": "n1", "binding": "core" if side == OLD else binding}
            launch = LaunchValues("l", place, cases)
            passes.append(ComparisonPass(block, position, side, "s", 1.0, (launch,)))
    return StoredComparison(HEADER, (6, 10, 16), tuple(passes))


def verdicts(stored: StoredComparison) -> dict[str, str]:
    return {each.case.key: each.verdict for each in judge_comparison(stored).cases}


def test_texts_of_a_comparison_do_nothing_to_a_terminal() -> None:
    """Its folder may be another's."""
    judged = judge_comparison(compared({BCAST: value(1e-6)}, {BCAST: value(1e-6)}))
    header = replace(HEADER, old=ComparedSide("\x1b[2J", "mpich-4_3_2"))
    effects = ReferenceEffects("\x1b[31m", {"key": "\u202ewhy"})
    said = format_comparison_text(replace(judged, header=header, effects=effects))
    assert r"\x1b[2J" in said and said.replace("\n", "").isprintable()


def test_what_is_proven_for_every_case_is_safe() -> None:
    both = {BCAST: value(1e-6), PINGPONG: value(2e-6), CONTROL: value(1e-6)}
    judged = judge_comparison(compared(both, both))
    assert judged.decision == Decision.SAFE and judged.decision.status == 0
    assert "controls without MPI: 1 of 1 unmoved" in format_comparison_text(judged)
    assert judged.counts == {"same": 2} and judged.pairs == 16
    assert judged.unchanged.cases == 2 and judged.unchanged.accused == 0


@pytest.mark.parametrize(
    ("old", "new", "verdict", "status"),
    [
        (value(1e-6), value(1.2e-6), ComparisonVerdict.SLOWER, 1),
        (value(1e-6), value(0.8e-6), ComparisonVerdict.FASTER, 0),
        (value(1e-6), CaseValue(None, "s", "crashed", "signal"), ComparisonVerdict.BROKEN, 1),
        (CaseValue(None, "s", "crashed", "signal"), value(1e-6), ComparisonVerdict.MENDED, 0),
        (value(1e-6), CaseValue(None, "s", "skipped", "no program"), ComparisonVerdict.ONLY_OLD, 1),
        (value(1e-6), None, ComparisonVerdict.ONLY_OLD, 1),
        (None, value(1e-6), ComparisonVerdict.ONLY_NEW, 0),
    ],
)
def test_every_case_has_a_verdict(old, new, verdict, status):
    one = {PINGPONG: value(1e-6)} | ({BCAST: old} if old else {})
    two = {PINGPONG: value(1e-6)} | ({BCAST: new} if new else {})
    stored = compared(one, two)
    assert verdicts(stored)[BCAST] == verdict
    assert judge_comparison(stored).decision.status == status


def test_a_pair_that_ran_otherwise_does_not_count() -> None:
    both = {BCAST: value(1e-6)}
    judged = judge_comparison(compared(both, both, binding="none"))
    (case,) = judged.cases
    assert (case.verdict, case.pairs) == (ComparisonVerdict.UNDECIDED, 0)
    assert "binding differs: core and none" in case.reason
    assert judged.decision.status == 3


@pytest.mark.parametrize(
    ("cores", "reason"),
    [
        ((2.6e-7, 2.5e-7), "cores differ: they were farther apart in one launch"),
        ((5e-8, 2.5e-7), "cores differ: the ranks were moved in a launch"),
    ],
)
def test_a_pair_whose_ranks_lay_elsewhere_does_not_count(cores: tuple[float, float], reason: str):
    """A hypervisor moved them: what one side took then says nothing of its MPI."""
    near = replace(value(1e-6), core_latency=(5e-8, 5.5e-8))
    judged = judge_comparison(compared({BCAST: near}, {BCAST: replace(near, core_latency=cores)}))
    (case,) = judged.cases
    assert (case.verdict, case.pairs) == (ComparisonVerdict.UNDECIDED, 0) and reason in case.reason
    alike = judge_comparison(compared({BCAST: near}, {BCAST: near}))
    assert [each.verdict for each in alike.cases] == [ComparisonVerdict.SAME]


def test_a_control_that_moved_voids_the_comparison() -> None:
    old = {BCAST: value(1e-6), CONTROL: value(1e-6)}
    judged = judge_comparison(compared(old, old | {CONTROL: value(2e-6)}))
    assert judged.decision == Decision.VOID and judged.decision.status == 3


def test_one_failed_launch_breaks_a_case() -> None:
    both = {BCAST: value(1e-6)}
    stored = compared(both, both)
    bad = LaunchValues("l", {}, {BCAST: CaseValue(None, "s", "timeout", "no end")})
    more = ComparisonPass(9, 0, NEW, "s", 1.0, (bad,))
    broken = StoredComparison(HEADER, stored.looks, (*stored.passes, more))
    assert verdicts(broken)[BCAST] == ComparisonVerdict.BROKEN


@pytest.mark.parametrize(("new", "verdict"), [(3e-6, ComparisonVerdict.SLOWER), (1e-6, ComparisonVerdict.SAME)])
def test_an_old_side_that_fails_now_and_then_excuses_no_slower_new_one(new, verdict):
    stored = compared({BCAST: value(1e-6)}, {BCAST: value(new)})
    bad = LaunchValues("l", {}, {BCAST: CaseValue(None, "s", "crashed", "signal 11")})
    more = ComparisonPass(9, 0, OLD, "s", 1.0, (bad,))
    judged = judge_comparison(StoredComparison(HEADER, stored.looks, (*stored.passes, more)))
    (case,) = judged.cases
    assert case.verdict == verdict
    assert case.reason == "old: crashed: signal 11 (1 of 18 launches)"


def test_blocks_are_of_either_kind_and_come_again() -> None:
    kinds = {draw_block(seed, number) for seed in range(9) for number in (1, 2)}
    assert kinds == {(OLD, NEW, NEW, OLD), (NEW, OLD, OLD, NEW)}
    assert all(draw_block(s, 1) == draw_block(s, 1) != draw_block(s, 2) for s in range(9))


def test_what_is_written_is_read_again_without_a_broken_end(tmp_path: Path) -> None:
    path = tmp_path / data.FILE
    stored = compared({BCAST: value(1e-6)}, {BCAST: value(1.3e-6)})
    data.append_record(path, HEADER)
    data.append_record(path, data.PlannedLooks(stored.looks))
    for each in stored.passes:
        data.append_record(path, each)
    with path.open("a") as file:
        file.write('{"record": "pass", "blo')
    assert data.read_comparison(path) == stored
    data.open_journal(path).truncate_unfinished()
    assert path.read_bytes().endswith(b"\n")


def test_the_pages_tell_the_decision_and_each_case(tmp_path: Path) -> None:
    both = {BCAST: value(1e-6), PINGPONG: value(1e-6)}
    judged = judge_comparison(compared(both, both | {BCAST: value(1.3e-6)}))
    html = page.write_comparison_page(tmp_path, judged).read_text()
    markdown = (tmp_path / page.MARKDOWN).read_text()
    for text in (html, markdown, format_comparison_text(judged)):
        assert "Not safe" in text and "slower" in text and "pingpong@1" in text
    assert "controls without MPI: none" in html
    (slow,) = (each for each in judged.cases if each.verdict == ComparisonVerdict.SLOWER)
    assert slow.ratio and math.isclose(slow.ratio, 1.3, rel_tol=0.02)


def lost(side: str, more: int = 1) -> ComparisonPass:
    """A launch of a side whose job never ran."""
    said = CaseValue(None, "s", "incomplete", "never started: waited 2 s", lost=True)
    launch = LaunchValues("l", {}, {BCAST: said})
    return ComparisonPass(8 + more, 0, side, "s", 1.0, (launch,))


@pytest.mark.parametrize("side", [OLD, NEW])
def test_a_launch_that_the_machine_lost_is_no_failure_of_its_side(side: str) -> None:
    both = {BCAST: value(1e-6)}
    stored = compared(both, both)
    judged = judge_comparison(StoredComparison(HEADER, stored.looks, (*stored.passes, lost(side))))
    assert judged.counts == {"same": 1}
    assert judged.cases[0].void == {"incomplete: never started: waited 2 s": 1}


@pytest.mark.parametrize(
    ("side", "verdict"), [(OLD, ComparisonVerdict.MENDED), (NEW, ComparisonVerdict.BROKEN)]
)
def test_a_side_whose_jobs_never_start_fails(side: str, verdict: ComparisonVerdict) -> None:
    both = {BCAST: value(1e-6)}
    there = [each for each in compared(both, both).passes if each.side != side]
    passes = (*there, *(lost(side, more) for more in range(3)))
    judged = judge_comparison(StoredComparison(HEADER, (6, 10, 16), passes))
    assert verdicts(StoredComparison(HEADER, (6, 10, 16), passes)) == {BCAST: verdict}
    assert "never started: waited 2 s (3 of 3 launches)" in judged.cases[0].reason


def exactly(*ratios: float) -> StoredComparison:
    """A block of simulated time: the new side is so many times as slow in each pair."""
    passes = []
    for position, side in enumerate((OLD, NEW, NEW, OLD)):
        seconds = 1e-6 * (ratios[position // 2] if side == NEW else 1.0)
        said = {BCAST: CaseValue(seconds, "s", exact=True)}
        passes.append(ComparisonPass(1, position, side, "s", 1.0, (LaunchValues("l", {}, said),)))
    return StoredComparison(HEADER, (2,), tuple(passes))


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [(1.04, ComparisonVerdict.SAME), (1.06, ComparisonVerdict.SLOWER), (0.9, ComparisonVerdict.FASTER)],
)
def test_simulated_time_that_repeats_decides_in_one_block(ratio: float, verdict: ComparisonVerdict):
    (case,) = judge_comparison(exactly(ratio, ratio)).cases
    assert case.verdict == verdict and case.ratio and math.isclose(case.ratio, ratio)


def test_simulated_time_that_does_not_repeat_proves_nothing() -> None:
    (case,) = judge_comparison(exactly(1.0, 1.1)).cases
    assert case.verdict == ComparisonVerdict.UNDECIDED
    assert "its time is simulated, and did not repeat" in case.reason
