"""Launches are grouped by where their ranks lay: by the time from core to core."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from postprocess.model.measurement import CoreLatency
from postprocess.stats.placement import (
    MOVED,
    REACH,
    group_placements,
    is_near,
    is_same_place,
    limit_slowdown,
    locate_case,
)

TIMES = st.floats(1e-300, 1e300)


def test_two_places_are_told_apart_and_the_one_of_most_launches_is_first():
    far = [260e-9, 245e-9, 290e-9]
    near = [52e-9, 55e-9, 51e-9, 40e-9]
    first, second = group_placements([far[0], *near, *far[1:]])
    assert first.members == (1, 2, 3, 4) and math.isclose(first.core_latency or 0, 51.5e-9)
    assert second.members == (0, 5, 6) and second.core_latency == 260e-9


def test_of_as_many_launches_the_nearer_cores_are_first():
    assert [each.core_latency for each in group_placements([2e-7, 4e-8])] == [4e-8, 2e-7]


def test_launches_of_which_nothing_is_known_are_of_one_place():
    (only,) = group_placements([None, None])
    assert only.core_latency is None and only.members == (0, 1)
    assert group_placements([]) == []


@given(st.lists(st.none() | TIMES, max_size=30))
def test_each_launch_is_in_one_place_near_to_another_of_it(latencies: list[float | None]):
    found = group_placements(latencies)
    assert sorted(number for each in found for number in each.members) == [*range(len(latencies))]
    sizes = [len(each.members) for each in found]
    assert sizes == sorted(sizes, reverse=True)
    for each in found:
        times = [latencies[number] for number in each.members]
        known = [time for time in times if time is not None]
        assert not known or len(known) == len(times)
        assert not known or max(known) <= REACH**2 * min(known) * (1 + 1e-9)


@given(TIMES, TIMES)
def test_a_case_lay_where_both_times_say_or_was_moved(before: float, after: float):
    place = locate_case(CoreLatency(before, after))
    if is_near(before, after):
        assert place is not None and min(before, after) * (1 - 1e-9) <= place <= max(before, after) * (1 + 1e-9)
    else:
        assert place == MOVED and not is_same_place(place, before)


def test_other_cores_make_a_call_five_times_as_slow_or_by_the_farther_time():
    for measured, reference, limit in (
        (None, 5e-8, 5.0),
        (CoreLatency(9e-7, 9e-7), None, 5.0),
        (CoreLatency(7e-8, 7e-8), 5e-8, 5.0),
        (CoreLatency(5e-8, 2.5e-7), 5e-8, 12.5),
        (CoreLatency(2.5e-7, None), 5e-8, 12.5),
        (CoreLatency(1e-3, 1e-3), 5e-8, 30.0),  # whatever a record says of its cores
    ):
        assert math.isclose(limit_slowdown(measured, reference), limit)


def test_without_a_time_nothing_is_kept_apart():
    assert locate_case(None) is None and locate_case(CoreLatency(None, None)) is None
    for each in (CoreLatency(None, 5e-8), CoreLatency(5e-8, None)):
        assert math.isclose(locate_case(each) or 0, 5e-8)
    assert is_same_place(None, 1e-7) and is_same_place(1e-7, None)
