"""The launches behind a case by where their ranks lay, as the provenance of a reference file has them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postprocess.model.case import Case
from postprocess.model.routines.mpicost import is_placeless
from postprocess.references import provenance
from postprocess.stats.placement import Placement, group_placements
from postprocess.stats.sessions import number_day

#: Share of a case's launches that lie elsewhere on a machine that moves ranks; of 50 one may be mistaken.
SHIFTING = 0.1


@dataclass(frozen=True)
class PlacedLaunches:
    """Launches of one case whose ranks lay alike."""

    core_latency: float | None  #: median of theirs, in seconds; None if unknown
    values: list[float]
    sessions: list[int]  #: number of the session of each; empty if unknown
    days: list[int]  #: the day of each; empty likewise
    headlines: list[float]  #: of each; empty where they are what is judged
    since: str = ""  #: end (UTC) of the last one that no night has taught; empty if unknown


def read_placed_launches(origin: Mapping[str, Any], case: Case) -> list[PlacedLaunches]:
    """Read the launches behind a case by where their ranks lay, those behind its row first.

    Empty if there are none or they are no positive numbers.
    """
    told = provenance.find_case_calibration(origin["programs"].get(case.program), case.key) or {}
    values = provenance.find_values(told, case.key)
    headlines = provenance.find_headlines(told, case.key)
    if not _are_values(values) or not (headlines is None or _are_values(headlines)):
        return []
    latencies = provenance.find_core_latencies(told, case.key)
    alike = is_placeless(case)
    places = group_placements([None] * len(latencies) if alike else latencies)
    return [_place(told, case.key, placement, values, headlines) for placement in places]


def _place(
    told: Mapping[str, Any],
    key: str,
    place: Placement,
    values: Sequence[float],
    headlines: Sequence[float] | None,
) -> PlacedLaunches:
    """Select the records of the launches of one place."""
    ends = provenance.list_ends(told, key, place.members)
    return PlacedLaunches(
        place.core_latency,
        [values[number] for number in place.members],
        provenance.number_launches(told, ends),
        [number_day(each) for each in ends],
        [headlines[number] for number in place.members] if headlines else [],
        max(provenance.list_ends(told, key, place.members, learned=False), default=""),
    )


def _are_values(values: Any) -> bool:
    """Return whether something is a list of positive numbers, one at least."""
    return isinstance(values, list) and bool(values) and all(map(_is_value, values))


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
