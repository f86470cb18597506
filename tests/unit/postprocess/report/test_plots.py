"""The pictures: what they show, and that they are harmless guests in a page."""

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise

import matplotlib
import pytest

from postprocess.base import formats
from postprocess.report import drawing, panels, plots
from postprocess.report.panels import Panel, PanelLine, Point
from tests.support.factories import report as samples

BAD = "var(--bad)"


def panel_of(routine, number=0, results=None):
    results = results or samples.bad_night().results
    own = [r for r in results if r.case.routine == routine]
    size = sorted({r.case.bytes for r in own})[number]
    chosen = [r for r in own if r.case.bytes == size]
    styles = {name: n for n, name in enumerate(panels.list_environments(results))}
    lines = panels.build_lines(chosen, "processes", styles, False)
    return Panel("8 B", "processes", lines)


def small_panel(*values, band=(0.5e-6, 2e-6), x="processes", title="8 B"):
    points = tuple(Point(2**n, value, band, value is None) for n, value in enumerate(values, start=1))
    return Panel(title, x, (PanelLine("mpich", 0, points),))


def texts(svg):
    return [element.text for element in ET.fromstring(svg).iter("text")]


def styles(svg, tag):
    return [element.get("style", "") for element in ET.fromstring(svg).iter(tag)]


def series_markers(svg, style=0):
    start = f"fill: var(--series-{style}); stroke: var(--paper)"
    return [s for s in styles(svg, "use") if s.startswith(start)]


def test_x_has_ticks_only_where_something_was_measured():
    shown = texts(plots.draw_lines(panel_of("bcast")))
    expected = ["2", "4", "8", "16"]
    assert [text for text in shown if text in {"1", "2", "3", "4", "8", "16", "32"}][:4] == expected
    assert {"8 B", "processes", "µs"} <= set(shown)


def test_labels_of_x_keep_a_distance():
    """Of sizes to 2 MiB and of partners in ping-pong, whose labels ran into each other."""
    _, plot = drawing.draw_panel("", "bytes")
    drawing.set_logarithmic_x(plot, [2**k for k in range(22)], "bytes")
    shown = [tick for tick, text in _labels(plot) if text]
    wide = math.log(2**21) * drawing.LABEL_WIDTH[True]
    assert len(shown) > 3
    assert all(math.log(b / a) > 0.99 * wide for a, b in pairwise(shown))
    _, plot = drawing.draw_panel("", "peer")
    drawing.set_linear_x(plot, [1, 4, 16, 64, 127])
    assert [text for _, text in _labels(plot)] == ["1", "", "16", "64", "127"]


def _labels(plot):
    axis = plot.xaxis
    ticks = axis.get_majorticklocs()
    return list(zip(ticks, axis.get_major_formatter().format_ticks(ticks), strict=True))


def test_each_mpi_has_its_colour_and_marker():
    svg = plots.draw_lines(panel_of("bcast"))
    assert [len(series_markers(svg, style)) for style in range(4)] == [4, 4, 4, 0]
    signs = [plots.choose_line_style(n) for n in range(9)]
    assert len({sign["marker"] for sign in signs[:8]}) == 8
    assert len({sign["color"] for sign in signs[:8]}) == 8
    assert signs[8]["linestyle"] != signs[0]["linestyle"]


def test_one_process_count_shows_points_values_and_bars():
    results = [r for r in samples.bad_night().results if r.case.processes == 2]
    panel = panel_of("bcast", 0, results)
    svg = plots.draw_lines(panel)
    shown = texts(svg)
    assert shown.count("2") == 1
    values = {formats.microseconds(line.points[0].value) for line in panel.lines}
    assert values <= set(shown)
    places = [e.get("x") for e in ET.fromstring(svg).iter("use") if "series" in e.get("style", "")]
    assert len(set(places)) == 3


def test_failed_cases_have_a_ring():
    rings = [s for s in styles(plots.draw_lines(panel_of("bcast", 1)), "use") if f"stroke: {BAD}" in s]
    assert len(rings) == 1
    assert BAD not in plots.draw_lines(panel_of("bcast", 0))


def test_a_missing_value_breaks_the_line_and_leaves_a_cross():
    whole = plots.draw_lines(small_panel(1e-6, 2e-6, 3e-6, 4e-6))
    broken = plots.draw_lines(small_panel(1e-6, 2e-6, None, 4e-6))
    assert len(series_markers(broken)) == len(series_markers(whole)) - 1
    cross = "stroke: var(--series-0); stroke-width: 2.2"
    assert [cross in s for s in styles(broken, "use")].count(True) == 1
    assert cross not in whole
    (path,) = [e for e in ET.fromstring(broken).iter("path") if "width: 1.6" in e.get("style", "")]
    assert re.sub(r"[^ML]", "", path.get("d")) == "MLM"  # no line from the second to the fourth


def test_a_panel_without_any_value_is_still_drawn():
    svg = plots.draw_lines(small_panel(None, None, band=None))
    assert {"2", "4"} <= set(texts(svg))


def test_a_band_is_shaded_where_there_is_one():
    assert "fill-opacity" in plots.draw_lines(small_panel(1e-6, 2e-6))
    assert "fill-opacity" not in plots.draw_lines(small_panel(1e-6, 2e-6, band=None))


@pytest.mark.parametrize("band", [(1e-130, 1e130), (0.0, 1e-6), (1e-6, 1e-6)])
def test_a_band_without_end_leaves_the_values_readable(band):
    svg = plots.draw_lines(small_panel(1e-6, 2e-6, band=band))
    numbers = [float(t.replace("\u202f", "")) for t in texts(svg) if re.fullmatch(r"[\d.]+", t)]
    assert max(numbers) <= 1000
    assert not re.search(r"nan|inf|e\+|\d{6}\.", svg)


@pytest.mark.parametrize("sizes", [(0, 8, 1000), (0,), (8,), tuple(range(8, 8 * 60, 8))])
def test_any_sizes_can_be_drawn(sizes):
    points = tuple(Point(x, 1e-6, None, False) for x in sizes)
    svg = plots.draw_lines(Panel("2 processes", "bytes", (PanelLine("mpich", 0, points),)))
    labels = [text for text in texts(svg) if text and text.endswith(" B")]
    assert len(series_markers(svg)) == min(len(sizes), plots.MOST_MARKED)
    assert 1 <= len(labels) <= 12


def test_every_point_of_a_long_line_is_seen():
    """A line has its marker at every few points only, but one that no line leads to has its own."""
    values = [None, 1e-6, None, *[3e-6] * 21]
    svg = plots.draw_lines(small_panel(*values, x="bytes", band=None))
    assert len(series_markers(svg)) == len(range(3, 24, 3)) + 1
    first = plots.draw_lines(small_panel(*values[1:], x="bytes", band=None))
    assert len(series_markers(first)) == len(range(3, 23, 3)) + 1


def test_bandwidth_is_drawn_in_megabytes_per_second():
    points = tuple(Point(2**n, 100.0 * 2**n, (80.0 * 2**n, 120.0 * 2**n), False) for n in range(5))
    panel = Panel("bw", "bytes", (PanelLine("mpich", 0, points),), unit="MB/s")
    svg = plots.draw_lines(panel)
    assert {"MB/s", "100", "1000"} <= set(texts(svg))
    assert "µs" not in texts(svg)
    assert 'aria-label="bw: bandwidth over bytes for mpich' in svg
    alone = replace(panel, lines=(PanelLine("mpich", 0, points[:1]),))
    assert "100.0" in texts(plots.draw_lines(alone))


def test_noise_does_not_fill_the_axis():
    svg = plots.draw_lines(small_panel(1e-6, 1.01e-6, 0.99e-6, band=None))
    heights = [float(e.get("y")) for e in ET.fromstring(svg).iter("use") if "series" in e.get("style")]
    assert max(heights) - min(heights) < 5


@pytest.mark.parametrize("title", [samples.HOSTILE, "$\\frac{", "a\x00b\x1b[0m", "--> <!-- ]]>"])
def test_text_in_a_picture_is_escaped(title):
    svg = plots.draw_lines(small_panel(1e-6, 2e-6, title=title))
    root = ET.fromstring(svg)
    plain = ET.fromstring(plots.draw_lines(small_panel(1e-6, 2e-6)))
    assert [e.tag for e in root.iter()] == [e.tag for e in plain.iter()]
    assert plots.sanitize_line(title) in texts(svg)


def test_a_picture_is_one_element_that_needs_nothing_from_outside():
    svg = plots.draw_lines(panel_of("bcast"))
    assert svg.startswith("<svg ")
    assert not re.search(r"<style|<!DOCTYPE|<\?xml|<image|<metadata|xlink|http|//", svg)
    assert all(target.startswith("#") for target in re.findall(r'href="([^"]*)"', svg))
    assert re.findall(r'role="img" aria-label="8 B: time over processes for impi-', svg)


def test_ids_are_unique_among_pictures():
    drawn = [plots.draw_lines(panel_of("bcast")) for _ in range(2)]
    ids = [re.findall(r'\bid="([^"]*)"', svg) for svg in drawn]
    assert ids[0]
    assert not set(ids[0]) & set(ids[1])
    for svg, known in zip(drawn, ids, strict=True):
        assert set(re.findall(r'(?:href="|url\()#([^")]*)', svg)) <= set(known)


def test_colours_follow_the_page():
    assert not re.search(r"#[0-9a-f]{6}", plots.draw_lines(panel_of("bcast", 1)))


def test_the_users_own_style_changes_nothing():
    def drawn():
        return re.sub(r"f\d+-", "", plots.draw_lines(panel_of("bcast")))

    expected = drawn()
    with matplotlib.rc_context({"axes.spines.left": False, "svg.fonttype": "path"}):
        assert drawn() == expected
        assert not matplotlib.rcParams["axes.spines.left"]
