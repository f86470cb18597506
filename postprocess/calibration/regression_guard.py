"""Detect references that would absorb a regression: the new center lies outside the old band."""

from __future__ import annotations

from collections.abc import Mapping

from postprocess.base.formats import plural
from postprocess.base.units import compute_slowdown
from postprocess.model.case import Case
from postprocess.model.reference import ENOUGH_LAUNCHES, Reference
from postprocess.stats.band import compute_band
from postprocess.stats.placement import is_same_place

#: How many times as slow the new reference of a case is as the old one
Slower = Mapping[Case, float]


def is_absorbing(before: Reference, after: Reference) -> bool:
    """Return whether the new center lies above the band of the old reference."""
    return before.unit == after.unit and compute_band(before).too_slow(after.center)


def find_absorbed_regressions(
    old: Mapping[Case, Reference], new: Mapping[Case, Reference]
) -> dict[Case, float]:
    """Find the cases whose old reference, of enough launches, calls the new center regressed.

    Returns how many times as slow the new center is, by case.

    :param old: all references of the file, with what is known of their noise
    """
    found = {case: (old[case], after) for case, after in new.items() if case in old}
    return {
        case: compute_slowdown(after.center, before.center, after.unit)
        for case, (before, after) in found.items()
        if before.launches >= ENOUGH_LAUNCHES
        and is_same_place(before.core_latency, after.core_latency)
        and is_absorbing(before, after)
    }


def describe_absorbed(found: Slower) -> str:
    """Describe which old references stay, the worst of them, and how to take the new ones."""
    worst = max(found, key=lambda case: (found[case], case))
    return (
        f"{plural(len(found), 'case')} would absorb a slowdown (largest: {worst.key}, {found[worst] - 1:.1%}): "
        "the old references stay; find the cause, or accept it by ./plumbline calibrate --afresh"
    )
