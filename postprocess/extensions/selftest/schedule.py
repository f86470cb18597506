"""Schedule the nights of a self-test: other plants in each environment, and unchanged nights in between."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from postprocess.base.errors import UsageError
from postprocess.model.case import Case
from postprocess.session.lifecycle.injections import (
    EVERYTHING,
    Injection,
    InjectionKind,
    list_injectable_routines,
)


@dataclass(frozen=True)
class InjectionNight:
    """One night: what is planted, at most one plant in an environment; nothing if it is unchanged."""

    number: int
    plantings: tuple[Injection, ...] = ()

    @property
    def words(self) -> str:
        """For people."""
        if not self.plantings:
            return "nothing planted"
        return ", ".join(f"{each.environment} {each.words}" for each in self.plantings)


def schedule_nights(
    cases: Sequence[Case], plants: Sequence[InjectionKind], times: int, unchanged: int, seed: int
) -> list[InjectionNight]:
    """Schedule all nights in an order drawn by ``seed``: unchanged and injected ones meet the same machine.

    Each plant comes at least so many times, over environments and routines in turn. What slows everything has
    nights of its own: in the same night as others it would be the one cause of theirs too.

    :param cases: of all environments
    :raises UsageError: for a plant that slows none of an environment's cases
    """
    environments = sorted({case.environment for case in cases})
    planted: list[tuple[Injection, ...]] = []
    for plant in (each for each in plants if each.everything):
        together = tuple(Injection(name, plant.name, EVERYTHING) for name in environments)
        planted += [together] * -(-times // len(environments))
    planted += distribute_injections(
        environments, cases, [each for each in plants if not each.everything], times
    )
    nights = [*planted, *[()] * unchanged]
    random.Random(seed).shuffle(nights)
    return [InjectionNight(number, night) for number, night in enumerate(nights, start=1)]


def distribute_injections(
    environments: Sequence[str], cases: Sequence[Case], plants: Sequence[InjectionKind], times: int
) -> list[tuple[Injection, ...]]:
    """Distribute injections over nights and environments: neighbours in the list, on different routines.

    Of the routines that are not in the night yet, each plant takes the one that it had least.
    """
    units = [plant for _ in range(times) for plant in plants]
    hosted: Counter[tuple[str, str]] = Counter()  # plants by environment
    had: Counter[tuple[str, str]] = Counter()  # plants by routine
    nights = []
    for number, first in enumerate(range(0, len(units), len(environments))):
        group = units[first : first + len(environments)]
        shift = choose_rotation(group, environments, hosted)
        night: list[Injection] = []
        for position, plant in enumerate(group):
            name = environments[(position + shift) % len(environments)]
            hosted[plant.name, name] += 1
            routines = list_injectable_routines(
                [each for each in cases if each.environment == name], plant.least
            )
            if not routines:
                fix = "choose other --plants or more --routine"
                raise UsageError(f"{plant.name}: slows no case of {name}; {fix}")
            turn = (number + position) % len(routines)
            routine = choose_next_routine(plant, (*routines[turn:], *routines[:turn]), night, had)
            had[plant.name, routine] += 1
            night.append(Injection(name, plant.name, routine))
        nights.append(tuple(sorted(night)))
    return nights


def choose_next_routine(
    plant: InjectionKind,
    routines: Sequence[str],
    night: Sequence[Injection],
    had: Counter[tuple[str, str]],
) -> str:
    """Choose the routine of an injection: the one it had least, and none of the night's if there is another."""
    used = {each.routine for each in night}
    return min(routines, key=lambda routine: (routine in used, had[plant.name, routine]))


def choose_rotation(
    group: Sequence[InjectionKind], environments: Sequence[str], hosted: Counter[tuple[str, str]]
) -> int:
    """Choose the shift of a group after which injections come to environments that had them least."""

    def count_hosted(shift: int) -> int:
        return sum(
            hosted[plant.name, environments[(position + shift) % len(environments)]]
            for position, plant in enumerate(group)
        )

    return min(range(len(environments)), key=count_hosted)
