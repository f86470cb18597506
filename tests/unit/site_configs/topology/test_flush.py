"""How much memory a flush walks, and what that costs here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from site_configs.topology.flush import compute_flush_bytes, measure_flush_seconds
from site_configs.topology.machine import Cache, read_machine

MB = 1024**2
CACHES = (Cache(1, "Data", MB // 32, 2), Cache(2, "Unified", MB, 2), Cache(3, "Unified", 32 * MB, 16))


@pytest.mark.parametrize(
    ("caches", "ranks", "expected"),
    [
        (CACHES, 1, 66 * MB),
        (CACHES, 8, 32 * MB + 2 * MB),  # spread over four last-level caches, two at each
        (CACHES, 64, 2 * MB + 4 * MB),
        (CACHES[:2], 1, 2 * MB),  # the second level is the last one
        ((), 1, 0),
    ],
)
def test_a_rank_walks_its_share_of_twice_the_caches(caches, ranks, expected):
    machine = replace(read_machine(), caches=caches, hardware_threads=64)
    assert compute_flush_bytes(machine, ranks) == expected


def test_a_walk_is_measured_once():
    assert measure_flush_seconds() == measure_flush_seconds() > 0
