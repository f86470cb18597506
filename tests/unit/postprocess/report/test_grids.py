"""The grid of verdicts: every case is counted once, however much of it is folded."""

from dataclasses import replace

import pytest

from postprocess.report.grids import GridCell, build_grid
from postprocess.results.summary import parse_summary
from tests.support.factories import report as samples
from tests.support.factories import size as sizes


@pytest.fixture(scope="module")
def summary():
    return parse_summary(samples.bad_night().document())


@pytest.fixture(scope="module")
def three():
    return parse_summary(sizes.three_programs(sizes.cases(routines=60, sizes=(8, 64))).document())


def cells(shown):
    return [c for section in shown.sections for row in section.rows for c in row.cells if c]


def test_the_grid_counts_every_case_once(summary):
    shown = build_grid(summary)
    assert shown.columns == tuple(sorted(samples.LIBRARIES))
    (section,) = shown.sections
    assert [row.name for row in section.rows] == sorted(samples.SIZES)
    assert sum(sum(cell.counts.values()) for cell in cells(shown)) == len(samples.bad_night().results)
    assert sum(cell.failed for cell in cells(shown)) == len(summary.failed)


def test_programs_stand_apart_and_our_own_comes_first(three):
    shown = build_grid(three)
    assert [section.program for section in shown.sections] == ["mpicost", "imb", "osu"]
    assert [len(section.rows) for section in shown.sections] == [7, 60, 60]
    assert shown.sections[2].counts.startswith("360 cases: 240 pass, 120 skipped: no Spack")


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("most", [1, 10, 24, 60])
def test_folding_loses_no_case_and_fits_a_screen(most, strict, three):
    shown = build_grid(replace(three, strict=strict), most)
    assert sum(sum(cell.counts.values()) for cell in cells(shown)) == len(three.results)
    assert sum(cell.failed for cell in cells(shown)) == len(replace(three, strict=strict).failed)
    least = 3 * len(shown.sections)  # one that failed, and two folded
    assert sum(len(section.rows) for section in shown.sections) <= max(most, least)


def test_what_is_all_well_is_one_row_and_what_failed_keeps_its_own(three):
    _, imb, osu = build_grid(parse_summary(sizes.three_programs().document()), 15).sections
    assert [row.name for row in imb.rows] == ["alltoall", "bcast", "10 routines without a failure"]
    assert [row.name for row in osu.rows] == ["bw", "12 routines without a failure"]
    assert imb.rows[0].cells[1].text == "20 crashed"
    assert osu.rows[1].cells[2].text == f"{11 * 20 + 1} skipped"
    strict = build_grid(replace(three, strict=True), 12)
    assert [row.name for row in strict.sections[2].rows] == ["bw_0", "59 routines more with failures"]


def test_a_grid_that_fits_is_not_folded(summary):
    assert build_grid(summary, len(samples.SIZES)) == build_grid(summary)
    assert build_grid(summary, len(samples.SIZES) - 1) != build_grid(summary)


def test_the_grid_leaves_holes_and_tells_partitions_apart(summary):
    one, other, _ = (r for r in samples.bad_night().results if r.case.layout == "2x2" and r.case.bytes == 0)
    moved = replace(other, case=replace(other.case, partition="fat"))
    shown = build_grid(replace(summary, results=(one, moved)))
    assert shown.columns == ("cpu:impi-2021.16.0", "fat:mpich-5.0.2")
    assert [cell.text for cell in cells(shown)] == ["1 pass", "1 pass"]
    renamed = replace(moved, case=replace(moved.case, routine="bcast"))
    holes = build_grid(replace(summary, results=(one, renamed))).sections[0]
    expected = [[False, True], [True, False]]
    assert [[cell is None for cell in row.cells] for row in holes.rows] == expected


def test_the_tone_of_a_cell():
    assert GridCell({"pass": 2, "regressed": 1}, 1).tone == "bad"
    assert GridCell({"pass": 2, "provisional": 1}, 0).tone == "good"
    assert GridCell({"provisional": 1, "skipped": 2}, 0).tone == "fair"
    assert GridCell({"pass": 1204}, 0).text == "1,204 pass"


def test_a_cell_in_brief_tells_what_failed_from_what_was_skipped(three):
    counts = {"pass": 1204, "regressed": 1, "skipped": 3}
    assert GridCell(counts, 1, 3).brief == "1 failed, 3 skipped, 1,204 well"
    assert GridCell(counts, 4).brief == "4 failed, 1,204 well"
    assert GridCell({"provisional": 2}, 0).brief == "2 well"
    found = [cell.skipped for cell in cells(build_grid(replace(three, strict=True)))].count(0)
    assert found == len(cells(build_grid(three)))
