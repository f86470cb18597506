"""Exactly what rules ask for, as a choice that makes the checks measure it and nothing else.

Options choose routines, sizes and layouts that are combined with each other. Rules name combinations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from postprocess.model.options import WANTED


@dataclass(frozen=True, order=True)
class WantedRoutine:
    """A routine at one layout, at these sizes and with these partners."""

    program: str
    partition: str
    layout: str  #: processes and processes per node, as ``4x2``
    routine: str
    sizes: tuple[int, ...]
    peers: tuple[int, ...] = ()  #: of rank 0, where ranks play in pairs; none for all


def merge_wanted(found: Iterable[WantedRoutine]) -> list[WantedRoutine]:
    """Merge what is wanted of a routine at one layout: a launch combines its sizes and partners."""
    merged: dict[tuple[str, ...], WantedRoutine] = {}
    for each in found:
        key = each.program, each.partition, each.layout, each.routine
        known = merged.get(key, each)
        sizes = tuple(sorted({*known.sizes, *each.sizes}))
        peers = tuple(sorted({*known.peers, *each.peers}))
        merged[key] = WantedRoutine(*key, sizes, peers)
    return sorted(merged.values())


def build_wanted_choice(found: Iterable[WantedRoutine]) -> dict[str, Any]:
    """Build the choice that makes checks measure just these."""
    return {WANTED: [asdict(routine) for routine in merge_wanted(found)]}


def select_wanted(
    choice: Sequence[Mapping[str, Any]] | None, **place: str
) -> dict[str, WantedRoutine] | None:
    """Select what is wanted at a place, as far as it is known, by routine; None where nothing was said."""
    if choice is None:
        return None
    found = [
        WantedRoutine(**{**each} | {"sizes": tuple(each["sizes"]), "peers": tuple(each["peers"])})
        for each in choice
    ]
    here = [each for each in found if all(getattr(each, key) == place[key] for key in place)]
    return {each.routine: each for each in here}
