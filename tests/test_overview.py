"""What a reader wants to know first."""

from __future__ import annotations

from dataclasses import replace

from postprocess import overview
from postprocess.summaries import parse_summary
from postprocess.verdicts import Verdict
from tests import report_samples as samples

NIGHT = samples.bad_night()
SUMMARY = parse_summary(NIGHT.document())


def test_every_verdict_has_its_place_in_the_order():
    assert sorted(overview.WORST_FIRST) == sorted(Verdict)


def test_the_larger_ratio_comes_first_among_equals():
    ordered = [r for r in overview.worst_first(SUMMARY.results) if r.verdict is Verdict.REGRESSED]
    ratios = [r.value / r.reference for r in ordered]
    assert len(ratios) == 3
    assert ratios == sorted(ratios, reverse=True)


def test_the_grid_counts_every_case_once():
    grid = overview.grid(SUMMARY)
    assert grid.columns == tuple(sorted(samples.LIBRARIES))
    assert [row for row, _ in grid.rows] == sorted(samples.SIZES)
    cells = [cell for _, row in grid.rows for cell in row]
    assert sum(sum(cell.counts.values()) for cell in cells) == len(NIGHT.results)
    assert sum(cell.failed for cell in cells) == len(SUMMARY.failed)


def test_the_grid_leaves_holes_and_tells_partitions_apart():
    one, other, _ = (r for r in NIGHT.results if r.case.layout == "2x2" and r.case.bytes == 0)
    moved = replace(other, case=replace(other.case, partition="fat"))
    grid = overview.grid(replace(SUMMARY, results=(one, moved)))
    assert grid.columns == ("cpu:impi-2021.16.0", "fat:mpich-5.0.2")
    assert [cell and cell.text for cell in grid.rows[0][1]] == ["1 pass", "1 pass"]
    renamed = replace(moved, case=replace(moved.case, routine="bcast"))
    holes = overview.grid(replace(SUMMARY, results=(one, renamed)))
    assert [[cell is None for cell in row] for _, row in holes.rows] == [
        [False, True],
        [True, False],
    ]


def test_the_tone_of_a_cell():
    assert overview.Cell({"pass": 2, "regressed": 1}, 1).tone == "bad"
    assert overview.Cell({"pass": 2, "provisional": 1}, 0).tone == "good"
    assert overview.Cell({"provisional": 1, "skipped": 2}, 0).tone == "fair"


def test_cases_of_a_lost_launch_are_one_trouble_and_measured_ones_each_their_own():
    troubles = overview.troubles(SUMMARY.failed)
    sizes = [(str(trouble.verdict), len(trouble.results)) for trouble in troubles]
    assert sizes == [
        ("incorrect", 1),
        ("timeout", 6),
        ("regressed", 1),
        ("regressed", 1),
        ("regressed", 1),
    ]
    assert sum(len(trouble.results) for trouble in troubles) == len(SUMMARY.failed)


def test_reasons_are_counted():
    assert overview.reasons(SUMMARY, Verdict.SKIPPED) == [("no Spack", 12)]
