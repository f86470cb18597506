"""The launches behind a case by where their ranks lay, as the provenance of a reference file tells them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postprocess.model.case import Case
from postprocess.references import provenance
from postprocess.stats.placement import group_placements

#: Share of a case's launches that lie elsewhere on a machine that moves ranks; of 50 one may be mistaken.
SHIFTING = 0.1


@dataclass(frozen=True)
class PlacedLaunches:
    """Launches of one case whose ranks lay alike."""

    core_latency: float | None  #: median of theirs, in seconds; None where nothing tells
    values: list[float]
    sessions: list[int]  #: number of the session of each; empty if that is not told


def read_placed_launches(origin: Mapping[str, Any], case: Case) -> list[PlacedLaunches]:
    """Read the launches behind a case by where their ranks lay, those behind its row first.

    Empty if none is told or they are no positive numbers.
    """
    told = provenance.find_case_calibration(origin["programs"].get(case.program), case.key) or {}
    values = provenance.find_headlines(told, case.key)
    if not isinstance(values, list) or not values or not all(map(_is_value, values)):
        return []
    return [
        PlacedLaunches(
            each.core_latency,
            [values[number] for number in each.members],
            provenance.number_launches(told, case.key, each.members),
        )
        for each in group_placements(provenance.find_core_latencies(told, case.key))
    ]


def _is_value(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and value > 0


def is_shifting(placed: Iterable[Sequence[PlacedLaunches]]) -> bool:
    """Return whether a machine moves its ranks: a good part of some case's launches lay on other cores.

    :param placed: the launches of each case, those of most launches first
    """
    for some in placed:
        most, *others = [len(each.values) for each in some if each.core_latency is not None] or [0]
        if others and sum(others) >= SHIFTING * most:
            return True
    return False
