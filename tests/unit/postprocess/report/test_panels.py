"""Which cases share a picture."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.report import panels as series
from tests.support.factories import report as samples


@pytest.fixture(scope="module")
def results():
    return samples.bad_night().results


def chapter(results, title):
    (found,) = [c for c in series.build_chapters(results, False) if c.title == title]
    return found


def test_one_panel_per_size_and_one_line_per_mpi(results):
    over_processes, over_bytes = chapter(results, "bcast").pictures
    assert [panel.title for panel in over_processes.panels] == ["8 B", "10 kB", "1 MB"]
    assert [panel.title for panel in over_bytes.panels] == [f"{p} processes" for p in (2, 4, 8, 16)]
    for panel in over_processes.panels:
        assert [line.name for line in panel.lines] == sorted(samples.LIBRARIES)
        assert [[point.x for point in line.points] for line in panel.lines] == [[2, 4, 8, 16]] * 3


def test_every_case_of_a_routine_is_a_point(results):
    over_processes = chapter(results, "scatter").pictures[0]
    drawn = sorted(
        p.value for panel in over_processes.panels for li in panel.lines for p in li.points
    )
    assert drawn == sorted(r.value for r in results if r.case.routine == "scatter")


def test_a_routine_without_payload_has_no_picture_over_bytes(results):
    (picture,) = chapter(results, "barrier").pictures
    assert picture.panels[0].title == "no payload"


def test_ping_pong_runs_over_the_partner_of_the_largest_launch(results):
    over_ranks, over_bytes = chapter(results, "pingpong").pictures
    assert [point.x for point in over_ranks.panels[0].lines[0].points] == list(range(1, 16))
    assert over_ranks.panels[0].x == "peer"
    expected = ["rank 0 with rank 1", "rank 0 with rank 15"]
    assert [panel.title for panel in over_bytes.panels][::3] == expected
    assert "11 further panels" in over_bytes.remark


def test_failed_cases_are_marked_and_counted(results):
    scan = chapter(results, "scan_sum")
    assert scan.failed == 2
    points = scan.pictures[0].panels[0].lines[0].points
    expected = (16, True, True)
    assert [(point.x, point.value is None, point.failed) for point in points][-1] == expected
    assert not any(point.failed for point in points[:-1])


def test_an_mpi_keeps_its_style_where_another_is_missing(results):
    present = [r for r in results if r.case.environment != "mpich-5.0.2" or r.case.bytes == 8]
    panels = chapter(present, "bcast").pictures[0].panels
    expected = {("impi-2021.16.0", 0), ("mpich-5.0.2", 1), ("openmpi-5.0.9", 2)}
    assert {(line.name, line.style) for panel in panels for line in panel.lines} == expected


def test_an_mpi_that_only_other_programs_used_keeps_its_style(results):
    bcast = [r for r in results if r.case.routine == "bcast"]
    (found,) = series.build_chapters(bcast, False, ["another", *sorted(samples.LIBRARIES)])
    assert [line.style for line in found.pictures[0].panels[0].lines] == [1, 2, 3]


def test_what_differs_is_never_in_one_line(results):
    bcast = [r for r in results if r.case.routine == "bcast"]
    warm = [replace(r, case=replace(r.case, cache="warm")) for r in bcast]
    spread = [replace(r, case=replace(r.case, per_node=1)) for r in bcast]
    found = series.build_chapters([*bcast, *warm, *spread], False)
    titles = [c.title for c in found]
    assert titles == ["bcast, evict", "bcast, evict, 1 per node", "bcast, warm"]
    for panel in (panel for c in found for picture in c.pictures for panel in picture.panels):
        for line in panel.lines:
            places = [point.x for point in line.points]
            assert places == sorted(set(places))


def test_a_large_session_gets_fewer_panels(results):
    copies = [
        replace(r, case=replace(r.case, partition=name)) for name in "abcdefg" for r in results
    ]
    found = series.build_chapters(copies, False)
    assert len(found) == 7 * len(samples.SIZES)
    panels = sum(len(picture.panels) for c in found for picture in c.pictures)
    fewest = sum(len(c.pictures) for c in found)
    assert panels <= max(series.MOST_ON_PAGE, fewest)


@given(st.lists(st.integers(), unique=True, min_size=1).map(sorted), st.integers(1, 9))
def test_thin_keeps_order_and_ends(values, most):
    chosen = series.thin_values(values, most)
    assert len(chosen) == min(most, len(values))
    assert chosen == sorted(set(chosen))
    assert chosen[-1] == values[-1]
    assert most == 1 or chosen[0] == values[0]
