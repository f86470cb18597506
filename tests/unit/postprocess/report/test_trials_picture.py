"""The picture of trials: what it shows, and that its text stays text."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from postprocess.report import panels, trials_picture
from postprocess.report.rendering import TEMPLATES
from postprocess.report.trial_selection import CaseTrials, LaunchTrials
from tests.support.factories import report as samples

STYLES = (TEMPLATES / "night.css").read_text(encoding="utf-8")


def of_case(times, late=None, **changes):
    result = replace(next(r for r in samples.bad_night().results if r.value is not None), **changes)
    flags = np.zeros(len(times), dtype=bool) if late is None else np.array(late)
    launch = LaunchTrials(1, np.array(times), flags, 1, float(np.mean(times)))
    return CaseTrials(result, (launch,))


def count_places(svg):
    """So many places each kind of path has."""
    return {path.get("class"): path.get("d").count("M") for path in ET.fromstring(svg).iter("path")}


def find_heights(svg, kind):
    """The heights at which the paths of a kind begin; less is further up."""
    (path,) = [path for path in ET.fromstring(svg).iter("path") if path.get("class") == kind]
    return [int(height) for height in re.findall(r"M[\d.]+ (\d+)", path.get("d"))]


def texts(svg):
    return [element.text for element in ET.fromstring(svg).iter("text")]


def test_trials_show_each_kind_by_its_own_sign():
    times = [9e-6] + 18 * [1e-6] + [7e-6, 8e-6, 5e-6]
    svg = trials_picture.draw_trials(of_case(times, [False, True] + 20 * [False]))
    shown = count_places(svg)
    assert ET.fromstring(svg).get("aria-label").startswith("Trials of pingpong@1 8 bytes, impi-")
    assert (shown["kept"], shown["spike"], shown["first"], shown["late"]) == (18, 2, 1, 1)


def test_what_takes_longer_is_further_up_between_round_values():
    svg = trials_picture.draw_trials(of_case([1e-6, 1e-6, 2e-6, 3e-6, 4e-6], reference=None, band=None))
    heights = find_heights(svg, "kept")
    assert heights == sorted(heights, reverse=True)
    labels = [text for text in texts(svg) if re.fullmatch("[0-9.]+", text)]
    ticks = dict(zip(labels, find_heights(svg, "grid"), strict=False))
    assert ticks["4"] == heights[-1]


def test_times_that_rounding_makes_different_have_ticks_that_differ():
    svg = trials_picture.draw_trials(of_case([1e-4, 1e-4 * (1 + 1e-9)] * 3, reference=None, band=None))
    labels = [text for text in texts(svg) if re.fullmatch("[0-9.]+", text)][:-6]
    assert len(labels) == len(set(labels)) > 1
    assert len(set(find_heights(svg, "kept"))) == 1


def test_trials_show_steady_time_headline_reference_and_band():
    svg = trials_picture.draw_trials(of_case([1e-6, 1e-6, 2e-6], reference=1e-6, band=(0.9e-6, 1.1e-6)))
    plain = trials_picture.draw_trials(of_case([1e-6, 1e-6, 2e-6], reference=None, band=None))
    assert count_places(svg).keys() - count_places(plain).keys() == {"reference", "band"}
    assert find_heights(svg, "reference") == find_heights(svg, "steady")
    assert find_heights(svg, "headline") < find_heights(svg, "steady")


def test_launches_stand_beside_each_other():
    shown = of_case([1e-6, 1e-6, 2e-6])
    launches = tuple(replace(shown.launches[0], launch=n) for n in (1, 2, 3))
    svg = trials_picture.draw_trials(replace(shown, launches=launches))
    assert {"launch 1", "launch 2", "launch 3"} <= set(texts(svg))
    assert count_places(svg)["steady"] == count_places(svg)["headline"] == 3
    assert count_places(svg)["kept"] == 6


@pytest.mark.parametrize("band", [(1e-130, 1e130), (0.0, 1e-6), (1e-6, 1e-6)])
@pytest.mark.parametrize("times", [[3e-6, 1e-6, 1.1e-6], [1e-6, 1e-6], [0.0, 0.0], [1e-6, 1e-3, 0.5]])
def test_a_band_without_end_leaves_the_values_readable(band, times):
    svg = trials_picture.draw_trials(of_case(times, band=band, reference=1e-6))
    numbers = [float(text.replace("\u202f", "")) for text in texts(svg) if re.fullmatch(r"[\d.]+", text)]
    assert max(numbers) <= max(1000, 1e7 * max(times))
    assert not re.search(r"nan|inf|e\+|\d{6}\.", svg)


def test_trials_far_apart_are_all_told_apart():
    svg = trials_picture.draw_trials(of_case([1e-6, 2e-6, 4e-6, 8e-6], reference=None, band=None))
    kinds = count_places(svg).keys() & trials_picture.MARKS.keys()
    heights = [height for kind in kinds for height in find_heights(svg, kind)]
    steps = np.diff(sorted(heights))
    assert np.ptp(steps) <= 1 < steps[0]


def test_every_sign_has_its_key_and_its_style():
    keys = trials_picture.draw_sign_keys()
    assert keys.keys() == {*trials_picture.MARKS, *trials_picture.LEVELS, "reference", "band"}
    for name, key in keys.items():
        assert count_places(key) == {name: key.count("M")}
        assert f".trials .{name} {{" in STYLES
        assert 'aria-hidden="true"' in key


@pytest.mark.parametrize("low", [0.0, 0.98, 123.0])
@pytest.mark.parametrize("width", [0.011, 1.0, 7.3, 400.0])
def test_a_linear_axis_has_a_few_round_ticks_inside(low, width):
    ticks = panels.choose_linear_ticks(low, low + width, 4)
    assert 2 <= len(ticks) <= 5
    assert low <= ticks[0] < ticks[-1] <= low + width + 1e-9
