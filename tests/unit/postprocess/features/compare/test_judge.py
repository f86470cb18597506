"""A comparison is judged whole: nothing that fails is left out, and no pair counts that ran otherwise."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.features.compare import data
from postprocess.features.compare.data import CaseValue
from postprocess.features.compare.judge import ComparisonVerdict, Decision, judge_comparison
from postprocess.features.compare.page import HTML, MARKDOWN, render_comparison
from postprocess.features.compare.pairs import draw_block
from postprocess.features.compare.text import format_comparison_text
from tests.support.factories.comparison import HEADER, failing, make_pass, write_comparison

BCAST, PINGPONG = (f"cpu/mpicost/{each}/evict-barrier/2x2/8" for each in ("bcast", "pingpong@1"))
CONTROL = "cpu/mpicost/control_timer/evict-barrier/2x2/8"
RUST = "cpu/bindings/bcast.rust/own-own/2x2/8"


def value(seconds: float) -> CaseValue:
    return CaseValue(seconds, "s", rerun="./plumbline run")


BOTH = {BCAST: value(1e-6)}
CRASHED = failing("crashed", "signal")


def compared(
    old: dict[str, CaseValue], new: dict[str, CaseValue], binding: str = "core"
) -> data.StoredComparison:
    """16 pairs, each value off by a little in a fixed way."""
    passes = []
    for block in range(9):
        for position, side in enumerate(draw_block(7, block) if block else (data.OLD, data.NEW)):
            off = 1 + 0.002 * ((3 * block + 2 * position) % 5)
            cases = {
                key: replace(each, value=each.value * off) if each.value else each
                for key, each in (old if side == data.OLD else new).items()
            }
            place = {"nodes": "n1", "binding": "core" if side == data.OLD else binding}
            passes.append(make_pass(block, position, side, cases, place=place))
    return data.StoredComparison(HEADER, (6, 10, 16), tuple(passes))


def test_texts_of_a_comparison_do_nothing_to_a_terminal() -> None:
    """Its folder may be another's."""
    judged = judge_comparison(compared(BOTH, BOTH))
    header = replace(HEADER, old=data.ComparedSide("\x1b[2J", "mpich-4_3_2"))
    effects = data.ReferenceEffects("\x1b[31m", {"key": "\u202ewhy"})
    said = format_comparison_text(replace(judged, header=header, effects=effects))
    assert r"\x1b[2J" in said and said.replace("\n", "").isprintable()


def test_what_is_proven_for_every_case_is_safe() -> None:
    both = {BCAST: value(1e-6), PINGPONG: value(2e-6), CONTROL: value(1e-6)}
    judged = judge_comparison(compared(both, both))
    assert judged.decision == Decision.SAFE and judged.decision.status == 0
    assert "none of 1 changed" in " ".join(format_comparison_text(judged).split())
    assert judged.counts == {"same": 2} and judged.pairs == 16
    assert judged.unchanged.cases == 2 and judged.unchanged.accused == 0


@pytest.mark.parametrize(
    ("old", "new", "verdict", "status"),
    [
        (value(1e-6), value(1.2e-6), ComparisonVerdict.SLOWER, 1),
        (value(1e-6), value(0.8e-6), ComparisonVerdict.FASTER, 0),
        (value(1e-6), CRASHED, ComparisonVerdict.BROKEN, 1),
        (CRASHED, value(1e-6), ComparisonVerdict.MENDED, 0),
        (value(1e-6), failing("skipped", "no program"), ComparisonVerdict.ONLY_OLD, 1),
        (value(1e-6), None, ComparisonVerdict.ONLY_OLD, 1),
        (None, value(1e-6), ComparisonVerdict.ONLY_NEW, 0),
    ],
)
def test_every_case_has_a_verdict(old, new, verdict, status):
    one = {PINGPONG: value(1e-6)} | ({BCAST: old} if old else {})
    two = {PINGPONG: value(1e-6)} | ({BCAST: new} if new else {})
    judged = judge_comparison(compared(one, two))
    assert {case.case.key: case.verdict for case in judged.cases}[BCAST] == verdict
    assert judged.decision.status == status


def test_a_decision_is_followed_by_what_people_do_with_it(tmp_path: Path) -> None:
    """Who validates an upgrade signs it; what a planted delay made is signed by nobody."""
    slower = compared(BOTH, {BCAST: value(1.5e-6)})
    for stored, options in ((compared(BOTH, BOTH), "--accept --key"), (slower, "--reject --reason TEXT --key")):
        said = format_comparison_text(judge_comparison(stored), directory=tmp_path)
        assert f"./plumbline dossier sign {tmp_path} {options} FILE" in said
    page = render_comparison(judge_comparison(slower))[MARKDOWN]
    assert page.index("## To compare again what is slower") < page.index(
        "./plumbline compare a b --routine bcast"
    )
    planted = replace(HEADER, new=replace(HEADER.new, plant="slower-10:bcast"))
    assert "sign" not in format_comparison_text(judge_comparison(replace(slower, header=planted)))


def test_one_open_case_is_told_as_one() -> None:
    few = replace(compared(BOTH, BOTH), passes=compared(BOTH, BOTH).passes[:4])
    judged = judge_comparison(few)
    assert "1 of 1 case measured from a to b needs more pairs" in format_comparison_text(judged)
    assert "1 pairs" not in render_comparison(judged)[HTML]


LACKED = failing("skipped", "no binary of IMB", foreseen=True)
IMB = "cpu/imb/pingpong/warm-loop/2x2/8"


@pytest.mark.parametrize(("side", "where"), [(data.NEW, "new side (b)"), (data.OLD, "old side (a)")])
def test_a_program_that_a_side_cannot_have_is_not_compared_and_that_is_said(side: str, where: str) -> None:
    with_it, without = BOTH | {IMB: value(1e-6)}, BOTH | {IMB: LACKED}
    judged = judge_comparison(compared(*((with_it, without) if side == data.NEW else (without, with_it))))
    assert (judged.decision, judged.counts) == (Decision.SAFE, {"same": 1, "not compared": 1})
    text = " ".join(format_comparison_text(judged).split())
    assert f"1 further case of imb not compared, as the {where} cannot have it: no binary of IMB" in text
    assert text.count("imb") == 1


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        (value(1e-6), failing("skipped", "no binary of IMB"), ComparisonVerdict.ONLY_OLD),
        (value(1e-6), failing("incomplete", "its build failed"), ComparisonVerdict.BROKEN),
        (CRASHED, LACKED, ComparisonVerdict.ONLY_OLD),
        (LACKED, CRASHED, ComparisonVerdict.BROKEN),
    ],
)
def test_what_fails_or_is_missing_otherwise_stays_not_safe(old, new, verdict):
    judged = judge_comparison(compared(BOTH | {IMB: old}, BOTH | {IMB: new}))
    assert {case.case.key: case.verdict for case in judged.cases}[IMB] == verdict
    assert judged.decision == Decision.NOT_SAFE


def test_what_a_side_lacked_in_some_launches_only_is_missing_there() -> None:
    stored = compared(BOTH | {IMB: value(1e-6)}, BOTH | {IMB: LACKED})
    passes = (*stored.passes, make_pass(9, 0, data.NEW, {IMB: failing("skipped", "too few nodes")}))
    assert judge_comparison(replace(stored, passes=passes)).decision == Decision.NOT_SAFE


def test_what_one_side_lacks_is_measured_again_there_in_one_command() -> None:
    sizes = {f"cpu/imb/pingpong/warm-loop/2x2/{size}": size for size in (8, 16)}
    run = "./plumbline run --environment {} --program imb --bytes {} --iterations 100".format
    old = {key: replace(value(1e-6), rerun=run("mpich-4_3_2", size)) for key, size in sizes.items()}
    new = {key: failing("skipped", "why", rerun=run("mpich-5_0_2", size)) for key, size in sizes.items()}
    said = format_comparison_text(judge_comparison(compared(BOTH | old, BOTH | new)))
    again = [line for line in said.splitlines() if "again:" in line]
    assert again == [f"  again: {run('mpich-5_0_2', '8,16')}"]


@pytest.mark.parametrize(
    ("binding", "cores", "reason"),
    [
        ("none", (5e-8, 5.5e-8), "binding differs: core and none"),
        ("core", (2.6e-7, 2.5e-7), "cores differ: they were farther apart in one launch"),
        ("core", (5e-8, 2.5e-7), "cores differ: the ranks were moved in a launch"),
    ],
)
def test_a_pair_that_ran_otherwise_or_elsewhere_does_not_count(binding, cores, reason):
    """A hypervisor moved its ranks: what one side took then says nothing of its MPI."""
    near = replace(value(1e-6), core_latency=(5e-8, 5.5e-8))
    judged = judge_comparison(compared({BCAST: near}, {BCAST: replace(near, core_latency=cores)}, binding))
    (case,) = judged.cases
    assert (case.verdict, case.pairs) == (ComparisonVerdict.UNDECIDED, 0) and reason in case.reason
    assert judged.decision.status == 3
    alike = judge_comparison(compared({BCAST: near}, {BCAST: near}))
    assert [each.verdict for each in alike.cases] == [ComparisonVerdict.SAME]


def test_a_control_that_moved_voids_the_comparison() -> None:
    old = {BCAST: value(1e-6), CONTROL: value(1e-6)}
    judged = judge_comparison(compared(old, old | {CONTROL: value(2e-6)}))
    assert judged.decision == Decision.VOID and judged.decision.status == 3
    told = " ".join(format_comparison_text(judged).split())
    assert "controls, which call no MPI: 1 of 1 changed, control_timer by +" in told


def test_the_pairs_that_are_told_are_not_those_of_controls() -> None:
    old = {BCAST: value(1e-6), CONTROL: value(1e-6)}
    judged = judge_comparison(compared(old, old | {BCAST: CRASHED}))
    assert judged.pairs == 0 and judged.controls[0].pairs > 0


@pytest.mark.parametrize(
    ("side", "new", "verdict", "reason"),
    [
        (data.NEW, 1e-6, ComparisonVerdict.BROKEN, "crashed: signal (1 of 18 launches)"),
        (data.OLD, 3e-6, ComparisonVerdict.SLOWER, "old: crashed: signal (1 of 18 launches)"),
        (data.OLD, 1e-6, ComparisonVerdict.SAME, "old: crashed: signal (1 of 18 launches)"),
    ],
)
def test_one_failed_launch_breaks_the_new_side_and_excuses_nothing_of_the_old(side, new, verdict, reason):
    stored = compared(BOTH, {BCAST: value(new)})
    passes = (*stored.passes, make_pass(9, 0, side, {BCAST: CRASHED}))
    (case,) = judge_comparison(replace(stored, passes=passes)).cases
    assert (case.verdict, case.reason) == (verdict, reason)


def test_blocks_are_of_either_kind_and_come_again() -> None:
    kinds = {draw_block(seed, number) for seed in range(9) for number in (1, 2)}
    assert kinds == {(data.OLD, data.NEW, data.NEW, data.OLD), (data.NEW, data.OLD, data.OLD, data.NEW)}
    assert all(draw_block(s, 1) == draw_block(s, 1) != draw_block(s, 2) for s in range(9))


def test_what_is_written_is_read_again_without_a_broken_end(tmp_path: Path) -> None:
    path = tmp_path / data.FILE
    stored = compared(BOTH, {BCAST: value(1.3e-6)})
    write_comparison(path, stored)
    with path.open("a") as file:
        file.write('{"record": "pass", "blo')
    assert data.read_comparison(path) == stored
    data.open_journal(path).truncate_unfinished()
    assert path.read_bytes().endswith(b"\n")


LOST = failing("incomplete", "never started: waited 2 s", lost=True)


@pytest.mark.parametrize("side", [data.OLD, data.NEW])
def test_a_launch_that_the_machine_lost_is_no_failure_of_its_side(side: str) -> None:
    stored = compared(BOTH, BOTH)
    judged = judge_comparison(replace(stored, passes=(*stored.passes, make_pass(9, 0, side, {BCAST: LOST}))))
    assert judged.counts == {"same": 1}
    assert judged.cases[0].void == {"incomplete: never started: waited 2 s": 1}


@pytest.mark.parametrize(
    ("side", "verdict"), [(data.OLD, ComparisonVerdict.MENDED), (data.NEW, ComparisonVerdict.BROKEN)]
)
def test_a_side_whose_jobs_never_start_fails(side: str, verdict: ComparisonVerdict) -> None:
    stored = compared(BOTH, BOTH)
    there = [each for each in stored.passes if each.side != side]
    never = [make_pass(block, 0, side, {BCAST: LOST}) for block in (8, 9, 10)]
    (case,) = judge_comparison(replace(stored, passes=(*there, *never))).cases
    assert case.verdict == verdict and "never started: waited 2 s (3 of 3 launches)" in case.reason


@pytest.mark.parametrize(
    ("ratios", "verdict", "reason"),
    [
        ((1.04, 1.04), ComparisonVerdict.SAME, ""),
        ((1.06, 1.06), ComparisonVerdict.SLOWER, ""),
        ((0.9, 0.9), ComparisonVerdict.FASTER, ""),
        ((1.0, 1.1), ComparisonVerdict.UNDECIDED, "its time is simulated, and did not repeat"),
    ],
)
def test_simulated_time_decides_in_one_block_if_it_repeats(ratios, verdict, reason):
    passes = []
    for position, side in enumerate((data.OLD, data.NEW, data.NEW, data.OLD)):
        seconds = 1e-6 * (ratios[position // 2] if side == data.NEW else 1.0)
        passes.append(make_pass(1, position, side, {BCAST: CaseValue(seconds, "s", exact=True)}))
    (case,) = judge_comparison(data.StoredComparison(HEADER, (2,), tuple(passes))).cases
    assert case.verdict == verdict and reason in case.reason
    assert reason or (case.ratio and math.isclose(case.ratio, ratios[0]))


@pytest.mark.parametrize(
    ("keys", "mpicost", "bindings"),
    [((BCAST,), True, False), ((BCAST, RUST), True, True), ((RUST,), False, True)],
    ids=["one of mpicost", "both", "one of bindings"],
)
def test_it_tells_how_to_read_the_values_of_what_was_measured(keys, mpicost, bindings) -> None:
    both = dict.fromkeys(keys, value(1e-6))
    said = " ".join(format_comparison_text(judge_comparison(compared(both, both))).split())
    assert ("A launch of mpicost says" in said) == mpicost
    assert ("A launch of bindings says" in said) == bindings
