"""What no machine can be faster than, by layout, caches and direction."""

from __future__ import annotations

import pytest

from postprocess.extensions.procurement.check.offer import ToldFacts
from postprocess.extensions.procurement.check.run_rules import list_speed_limits
from tests.support.factories.launch import case

TOLD = ToldFacts(link_gbit_per_s=80.0, memory_gbyte_per_s=20.0)  # 10 and 20 GB/s


@pytest.mark.parametrize(
    ("routine", "per_node", "cache", "unit", "limits"),
    [
        ("bcast", 1, "evict", "s", {"light": 5e-8, "wire": 1e-4}),
        ("bcast", 1, "warm", "s", {"light": 5e-8, "wire": 1e-4}),
        ("bcast", 2, "evict", "s", {"light": 5e-9, "memory": 5e-5}),
        ("bcast", 2, "flush", "s", {"light": 5e-9, "memory": 5e-5}),
        ("bcast", 2, "warm", "s", {"light": 5e-9}),  # the caches may have it
        ("reduce_scatter_sum", 1, "evict", "s", {"light": 5e-8}),  # each receives a part
        ("bw", 1, "warm", "MB/s", {"wire": 10_000.0}),
        ("bibw", 1, "warm", "MB/s", {"wire": 20_000.0}),  # both ways at once
        ("bw", 2, "warm", "MB/s", {}),
    ],
)
def test_limits_are_those_of_the_way_that_the_bytes_take(routine, per_node, cache, unit, limits):
    one = case(routine, 1_000_000, per_node=per_node, cache=cache)
    found = list_speed_limits(one, unit, TOLD)
    assert {each.what: each.value for each in found} == pytest.approx(limits)


def test_what_is_not_told_is_no_limit() -> None:
    one = case("bw", 1_000_000, per_node=1, cache="warm")
    assert list_speed_limits(one, "MB/s", ToldFacts()) == []


def test_a_time_is_broken_from_below_and_a_rate_from_above() -> None:
    (_, wire) = list_speed_limits(case("bcast", 1_000_000, per_node=1), "s", TOLD)
    (rate,) = list_speed_limits(case("bw", 1_000_000, per_node=1), "MB/s", TOLD)
    assert wire.is_broken(0.9e-4, "s") and not wire.is_broken(1.1e-4, "s")
    assert rate.is_broken(10_001.0, "MB/s") and not rate.is_broken(9_999.0, "MB/s")
