"""How many launches each place gets where not all get as many: as a choice that makes the checks keep to it.

ReFrame repeats every test as often as the place with most launches asks for. A check whose number is beyond
those of a place is not run there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from postprocess.model.case import LaunchPlace
from postprocess.model.options import LAUNCHES
from postprocess.model.session import Selection


def select_launch_counts(selection: Selection, counts: Mapping[LaunchPlace, int]) -> Selection:
    """Return the selection with so many launches at each place; a place that is not named gets one."""
    most = max(counts.values(), default=1)
    choice = {name: value for name, value in selection.choice.items() if name != LAUNCHES}
    if any(count < most for count in counts.values()):
        told = [{**place._asdict(), "launches": count} for place, count in sorted(counts.items())]
        choice[LAUNCHES] = told
    return replace(selection, choice=choice, launches=most)


def select_places(
    choice: Sequence[Mapping[str, Any]], number: int, **place: str | int
) -> list[LaunchPlace]:
    """Select the places of a choice that get a launch of this number, of those that agree with ``place``."""
    return [
        LaunchPlace(*(entry[name] for name in LaunchPlace._fields))
        for entry in choice
        if entry["launches"] >= number and all(entry[name] == place[name] for name in place)
    ]
