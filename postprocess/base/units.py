"""The units in which a case is judged, and which values of each are better."""

from __future__ import annotations

from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["s", "MB/s"]
SECONDS: Unit = "s"
MEGABYTES: Unit = "MB/s"  #: 10**6 bytes per second, as OSU and IMB count
UNITS: dict[str, str] = {SECONDS: "lower", MEGABYTES: "higher"}  #: unit -> the better direction


def parse_unit(text: str) -> Unit:
    """Return the unit that is spelled so.

    :raises ValueError: if it is none of :data:`UNITS`.
    """
    for unit in (SECONDS, MEGABYTES):
        if text == unit:
            return unit
    raise ValueError(f"unit {text!r} is none of {', '.join(UNITS)}")


def find_better_direction(unit: str) -> str:
    """Return ``lower`` or ``higher``: which values of a unit are better.

    :raises ValueError: if the unit is none of :data:`UNITS`.
    """
    return UNITS[parse_unit(unit)]


def compute_slowdown(value: float, reference: float, unit: str) -> float:
    """Compute how many times as slow as its reference a value is: above 1 is worse, whatever the direction.

    Both are positive and in ``unit``.
    """
    return value / reference if find_better_direction(unit) == "lower" else reference / value
