"""What the nights of a self-test found, one line of JSON a case: every figure is computed from these lines.

A night ends with a line of its own; what stands behind the last of those was interrupted, and does not count.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.base.records import Amount, Count, Journal, Measured, parse_record
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
        if not self.plantings:
            return "nothing planted"
        return ", ".join(f"{planting.environment} {planting.words}" for planting in self.plantings)


def schedule_nights(
    cases: Sequence[Case], plants: Sequence[InjectionKind], times: int, unchanged: int, seed: int
) -> list[InjectionNight]:
    """Schedule all nights in an order drawn by ``seed``: unchanged and injected ones meet the same machine.

    Each plant comes at least so many times, over environments and routines in turn. What slows everything has
    nights of its own: in the same night as others it would be the one cause of theirs too.

    :raises UsageError: for a plant that slows none of an environment's cases
    """
    environments = sorted({case.environment for case in cases})
    planted: list[tuple[Injection, ...]] = []
    for plant in (kind for kind in plants if kind.everything):
        together = tuple(Injection(name, plant.name, EVERYTHING) for name in environments)
        planted += [together] * -(-times // len(environments))
    planted += distribute_injections(
        environments, cases, [kind for kind in plants if not kind.everything], times
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
                [case for case in cases if case.environment == name], plant.least
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
    plant: InjectionKind, routines: Sequence[str], night: Sequence[Injection], had: Counter[tuple[str, str]]
) -> str:
    """Choose the routine of an injection: the one it had least, and none of the night's if there is another."""
    used = {injection.routine for injection in night}
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


FILE = "nights.jsonl"


def open_journal(path: Path) -> Journal:
    return Journal(path, "choose another --output", missing="name the folder of a self-test")


@dataclass(frozen=True)
class CaseNight:
    """One case in one night. Times in seconds."""

    key: str
    environment: str
    routine: str
    plant: str  #: name of what is planted in its environment; empty if nothing is
    of: str  #: routine that the plant is of
    target: bool  #: whether the plant slows this case
    delayed: bool  #: whether most of the night's launches were delayed: some plants spare some
    verdict: str  #: after the confirmation run
    first: str  #: verdict of the night's launch alone
    value: Measured | None  #: headline of that launch, or the median of several
    median: Measured | None  #: of its trials
    reference: Measured | None
    upper: Amount | None  #: limit of the band
    spread: Amount | None  #: moderated, on the logarithm
    degrees: Amount | None  #: of freedom of the spread
    launches: Count  #: behind the reference
    common: bool = False  #: whether it is called slow as one of many with a common cause
    again: tuple[Measured, ...] = ()  #: headlines of the confirmation run's launches
    median_of: Count = 1  #: launches behind ``value``
    #: Limit of the fresh values: what lies between it and ``upper`` may be the hour, and is suspect
    call: Amount | None = None
    #: of the mean of the fresh values from the reference, on the logarithm
    call_deviation: Amount = 0.0
    call_degrees: Amount = 0.0  #: of freedom of that, as the call limit counts them
    cause: str = ""  #: of many slow cases, in words; empty for a case by itself

    @property
    def screened(self) -> bool:
        """Whether the night's launch alone looked slow."""
        return self.first == "regressed"

    @property
    def suspect(self) -> bool:
        """Whether it was slow again, but no more than other hours may bring."""
        return self.verdict == "suspect"

    @property
    def regressed(self) -> bool:
        """Whether the night calls it slow."""
        return self.verdict == "regressed"


@dataclass(frozen=True)
class FinishedNight:
    number: Count
    session: str
    seconds: Amount
    notes: tuple[str, ...]
    rows: tuple[CaseNight, ...]

    @property
    def unchanged(self) -> bool:
        """Whether nothing was planted."""
        return not any(row.plant for row in self.rows)


@dataclass(frozen=True)
class SelftestHeader:
    """The header of a self-test. A later call that continues it must have the same options."""

    site: str
    seed: int
    times: Count  #: nights with each plant
    unchanged: Count
    plants: tuple[str, ...]
    keys: tuple[str, ...]  #: of all cases
    references: str  #: where they are from, in words
    spread: Amount = 0.0  #: minutes over which the nights are spread


def write_selftest_header(path: Path, begun: SelftestHeader) -> None:
    """Write the first line. :raises UsageError: if it cannot be written."""
    open_journal(path).append({"record": "begun", **asdict(begun)})


def append_selftest_night(path: Path, night: FinishedNight) -> None:
    """Add a night, whole. :raises UsageError: if it cannot be written."""
    end = {name: getattr(night, name) for name in ("number", "session", "seconds", "notes")}
    cases = [{"record": "case", "night": night.number, **asdict(row)} for row in night.rows]
    open_journal(path).append(*cases, {"record": "night", **end})


def read_selftest(path: Path) -> tuple[SelftestHeader, list[FinishedNight]]:
    """Read the header of a self-test and its finished nights.

    :raises UsageError: if the file is missing or damaged.
    """
    journal = open_journal(path)
    with journal.reading():
        begun, entries = journal.read(SelftestHeader)
        for key in begun.keys:
            Case.from_key(key)
        return begun, list(_nights(entries))


def _nights(entries: Sequence[dict[str, Any]]) -> Iterator[FinishedNight]:
    rows: list[CaseNight] = []
    for entry in entries:
        if entry["record"] == "case":
            rows.append(parse_record(entry, CaseNight))
            continue
        yield replace(parse_record(entry | {"rows": []}, FinishedNight), rows=tuple(rows))
        rows = []
