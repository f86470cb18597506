"""Which cases share a diagram, and what it shows of them."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.report import curves as view
from postprocess.report import panels
from postprocess.report.curves import build_scales, draw_curve
from postprocess.report.panels import Panel, PanelLine, Point
from tests.support.factories import report as samples
from tests.support.faults import plants


@pytest.fixture(scope="module")
def results():
    return samples.bad_night().results


def build(results, names=None):
    return view.build_curves(results, False, names or panels.list_environments(results))


def named(curves):
    return {c.panel.title: c for section in curves.sections for c in (*section.over_bytes, *section.others)}


def texts(curve):
    return [element.text for element in ET.fromstring(f"<g>{curve.inside}</g>").iter("text")]


def test_over_bytes_by_layout_and_over_processes_by_size_with_a_line_per_mpi(results):
    found = named(build(results))
    for title, x in (("bcast, 16 processes", "bytes"), ("bcast, 8 B", "processes")):
        panel = found[title].panel
        assert (panel.x, [line.name for line in panel.lines]) == (x, sorted(samples.LIBRARIES))
    assert "barrier, 16 processes" not in found
    assert found["barrier, no payload"].panel.x == "processes"
    assert found["pingpong, 8 B, 16 processes"].panel.x == "peer"


def test_every_case_lies_where_its_diagrams_show_it(results):
    curves = build(results)
    drawn = named(curves)
    for result in results:
        places = curves.places.get(result.case, [])
        assert places or result.verdict == "skipped"
        for place in places:
            (curve,) = [each for each in drawn.values() if each.name == place.curve]
            assert (place.y is None) == (result.value is None)
            if result.value is not None:
                assert place.y == curve.scales.find_y(result.value)
                assert f"M{place.x} {place.y}h0" in curve.inside


def test_failed_cases_are_ringed_and_those_without_a_value_crossed(results):
    found = named(build(results))
    assert found["bcast, 16 processes"].inside.count("<circle") == 2
    assert found["scan_sum, 16 processes"].inside.count('class="r"') == 1


def test_ticks_are_values_that_people_read(results):
    curve = named(build(results))["bcast, 16 processes"]
    assert {"8 B", "10 kB", "1 MB", "µs"} <= set(texts(curve))
    heights = {text: int(y) for y, text in re.findall(r'y="(\d+)" class="y">([\d.]+)<', curve.inside)}
    assert len(set(heights.values())) == len(heights) > 1
    ordered = sorted(heights, key=float)
    assert [heights[text] for text in ordered] == sorted(heights.values(), reverse=True)


def test_an_mpi_keeps_its_colour_where_another_is_missing(results):
    bcast = [r for r in results if r.case.routine == "bcast"]
    found = named(build(bcast, ["another", *sorted(samples.LIBRARIES)]))
    assert [line.style for line in found["bcast, 8 B"].panel.lines] == [1, 2, 3]


def test_what_differs_is_never_in_one_line(results):
    bcast = [r for r in results if r.case.routine == "bcast"]
    warm = [replace(r, case=replace(r.case, cache="warm")) for r in bcast]
    spread = [replace(r, case=replace(r.case, per_node=1)) for r in bcast]
    found = named(build([*bcast, *warm, *spread]))
    assert {"bcast, 8 B, evict", "bcast, 8 B, 1 per node, evict", "bcast, 8 B, warm"} <= set(found)
    for curve in found.values():
        for line in curve.panel.lines:
            places = [point.x for point in line.points]
            assert places == sorted(set(places))


def test_a_large_session_gets_fewer_diagrams(results, monkeypatch):
    monkeypatch.setattr(view, "MOST_CURVES", 30)
    curves = build(results)
    assert len(named(curves)) == 30
    assert curves.left_out > 0


def test_text_in_a_diagram_is_escaped():
    lines = (PanelLine(samples.HOSTILE, 0, (Point(1, 1e-6, None, False), Point(2, 2e-6, None, True))),)
    panel = Panel(samples.HOSTILE, "bytes", lines)
    tags = {each.tag for each in ET.fromstring(f"<g>{draw_curve(panel, build_scales(panel))}</g>").iter()}
    assert tags == {"g", "text", "path", "circle"}


@plants("files", "a value of 1e-320 s, by which nothing can be divided",
        "a summary.json of which a report is made", "", 0, "0 diagrams")  # fmt: skip
def test_a_value_too_small_to_be_one_has_no_diagram(declared):
    line = PanelLine("a", 0, (Point(1, 1e-320, None, False), Point(2, None, None, True)))
    drawn = [build_scales(Panel("", "bytes", (line,)))]
    declared.check((), 0, [f"{len([*filter(None, drawn)])} diagrams"])


@given(st.lists(st.floats(1e-9, 1e3), min_size=2, max_size=9))
def test_any_values_lie_inside(values):
    points = tuple(Point(2**n, value, (value / 99, value * 99), False) for n, value in enumerate(values))
    panel = Panel("", "bytes", (PanelLine("a", 0, points),))
    inside = draw_curve(panel, build_scales(panel))
    assert all(0 <= int(number) <= 300 for number in re.findall(r"(?<=[ML ])\d+", inside))


@given(st.lists(st.integers(), unique=True, min_size=1).map(sorted), st.integers(1, 9))
def test_thin_keeps_order_and_ends(values, most):
    chosen = panels.thin_values(values, most)
    assert (len(chosen), chosen) == (min(most, len(values)), sorted(set(chosen)))
    assert chosen[-1] == values[-1]
    assert most == 1 or chosen[0] == values[0]
