"""Controls that touch nothing but their own core are compared wherever ranks lie: no place is slow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from postprocess.model.reference import Reference
from postprocess.references.catalog import ReferenceSet
from postprocess.session.nightly.calibrate import list_short_places
from tests.support.factories.launch import case
from tests.support.factories.ledger import launch

NEAR, FAR = 5e-8, 2.5e-7


@pytest.mark.parametrize(("routine", "compared"), [("control_compute", True), ("bcast", False)])
def test_what_touches_no_other_core_has_a_reference_everywhere(tmp_path, routine: str, compared: bool):
    one = case(routine)
    known = ReferenceSet(tmp_path / "a.tsv", {one: Reference(one, 1e-6, 0.01, 20, core_latency=NEAR)}, {})
    assert (known.find_placed(one, FAR) is not None) is compared
    assert known.find_placed(one, NEAR) is not None


def launches(near: int, far: int):
    """Launches of one environment by how far apart the ranks' cores were."""
    one = launch()
    return [
        replace(one, core_latencies=dict.fromkeys(one.values, place)) for place in [NEAR] * near + [FAR] * far
    ]


@pytest.mark.parametrize(
    ("near", "far", "short"), [(20, 0, False), (14, 6, True), (10, 10, False), (19, 1, False)]
)
def test_a_place_with_some_launches_and_fewer_than_ten_is_short(near: int, far: int, short: bool):
    """One launch of twenty may not come again, and is not waited for."""
    assert bool(list_short_places(launches(near, far))) is short
