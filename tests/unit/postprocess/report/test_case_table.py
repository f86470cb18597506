"""The history of a case as a small picture: where values, bands, changes and failures lie."""

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from postprocess.report import case_table as view
from postprocess.report.first_screen import Step
from postprocess.results.query import Night

NIGHT = Night("2026-11-01", "pass", "s", 1e-6, 1e-6, (0.9e-6, 1.1e-6), "s0", "now")


def nights(*values, **changes):
    return [
        replace(NIGHT, value=value, session=f"s{n}", day=f"2026-11-{n + 1:02}", **changes)
        for n, value in enumerate(values)
    ]


def heights(svg):
    """Follow the course and return the height of each night by its place."""
    (path,) = re.findall(r'<path d="([^"]*)"', svg)
    x = y = 0
    found = {}
    for letter, rest in re.findall(r"([Mlh])([^Mlh]*)", path):
        numbers = list(map(int, re.findall(r"-?\d+", rest)))
        for a, b in zip(numbers[::2], numbers[1::2], strict=False):
            x, y = (a, b) if letter == "M" else (x + a, y + b)
            found[x // view.STEP] = y
    return found


def test_slower_is_higher_in_every_unit():
    slow = heights(view.draw_history(nights(1e-6, 1.05e-6, 1e-6, 1.3e-6), []))
    assert slow[3] < slow[1] < slow[0] == slow[2]
    bandwidth = nights(1000.0, 700.0, unit="MB/s", band=(900.0, 1100.0))
    slow = heights(view.draw_history(bandwidth, []))
    assert slow[1] < slow[0]


def test_a_night_without_a_value_breaks_the_course_and_is_marked():
    some = nights(1e-6, None, 1e-6, 1.1e-6)
    some[1] = replace(some[1], verdict="crashed")
    svg = view.draw_history(some, [])
    assert svg.count("M", svg.index('<path d="')) >= 2
    assert set(heights(svg)) == {0, 2, 3}
    assert f'class=x d="M{view.STEP} {view.HEIGHT - 1}h0"' in svg


def test_a_new_reference_a_new_mpi_and_a_step_have_their_lines():
    some = nights(1e-6, 1e-6, 1e-6, 1e-6)
    some[2] = replace(some[2], library="later")
    some[3] = replace(some[3], library="later", reference=2e-6, band=(1.8e-6, 2.2e-6))
    svg = view.draw_history(some, [Step("s1", "step of +8.0%")])
    assert f'class=e d="M4 0V{view.HEIGHT}M6 0V{view.HEIGHT}"' in svg
    assert f'class=t d="M2 0V{view.HEIGHT}"' in svg
    assert svg.split("class=b")[1].split("/>")[0].count("M") == 2
    told = view.describe_history(some, [Step("s1", "step of +8.0%")])
    assert told.endswith("step of +8.0%; another reference or MPI from 2026-11-03, 2026-11-04")


def test_of_several_nights_the_slowest_stands_for_all():
    svg = view.draw_history(nights(1e-6, 1.2e-6, 1e-6, 1e-6, 1e-6, 1e-6), [], every=3)
    found = heights(svg)
    assert set(found) == {0, 1}
    assert found[0] < found[1]


@given(st.lists(st.none() | st.floats(1e-12, 1e6), max_size=70))
def test_any_nights_can_be_drawn(values):
    svg = view.draw_history([replace(NIGHT, value=value) for value in values], [])
    assert bool(svg) == (sum(bool(value) for value in values) > 1)
    if svg:
        assert all(0 <= y <= view.HEIGHT for y in heights(svg).values())
