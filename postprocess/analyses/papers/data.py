"""Arrange what a session measured for comparison: machines, MPIs and process counts side by side.

A machine is a partition, under the system's name too where a session has several systems. Of each
process count the layout with the most processes per node stands for the machine. Only mpicost's cases
are looked at, without its controls: its routines are the tests of the papers, and what others call the same
is timed otherwise.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from postprocess.base.formats import size
from postprocess.model.case import Case
from postprocess.model.mpicost import BARRIER, OWN_PROGRAM, ROUTINES, is_control
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.report.panels import find_densest_layouts

#: Of Luecke et al. (2001), in their order; a reduction has the name of its operator behind it.
TESTS = tuple(dict.fromkeys(each.test for each in ROUTINES if each.test))
CONDITIONS = ("cache", "sync")
#: Verdicts under which a value, if there is one, is no time of the routine.
UNUSABLE = frozenset({Verdict.INCORRECT, Verdict.INCOMPLETE, Verdict.CRASHED, Verdict.TIMEOUT})


@dataclass(frozen=True, order=True)
class Operation:
    """What is timed: two times are comparable only if their operations are equal."""

    routine: str
    bytes: int
    cache: str
    sync: str

    @property
    def size(self) -> str:
        """The size as people read it, empty where there is no payload."""
        return "" if self.routine == BARRIER else size(self.bytes)


def operation_sort_key(operation: Operation) -> tuple[int, Operation]:
    """Return the key that sorts operations: the papers' tests in their order, then all others."""
    test = operation.routine.partition("_")[0]
    return TESTS.index(test) if test in TESTS else len(TESTS), operation


@dataclass(frozen=True, order=True)
class PaperCell:
    """One operation on one machine with one MPI at one process count."""

    machine: str
    environment: str
    operation: Operation
    processes: int


@dataclass(frozen=True)
class PaperMeasurements:
    """The cases behind each cell: one, or for ping-pong one for each partner. Times in seconds."""

    results: Mapping[PaperCell, tuple[CaseResult, ...]]
    systems: Mapping[str, tuple[str, str]]  #: of each machine: system and partition
    sessions: Mapping[str, str]  #: of each machine: the session that measured it

    @cached_property
    def times(self) -> dict[PaperCell, float | None]:
        """The time of each planned cell; None where it has no usable value."""
        return {cell: _time(results) for cell, results in self.results.items()}

    @cached_property
    def machines(self) -> list[str]:
        return sorted(self.systems)

    @cached_property
    def environments(self) -> list[str]:
        return sorted({cell.environment for cell in self.results})

    def environments_on(self, machine: str) -> list[str]:
        """Return the MPIs that were planned on a machine."""
        return sorted({cell.environment for cell in self.results if cell.machine == machine})

    @cached_property
    def operations(self) -> list[Operation]:
        """In the order of the tests of the papers."""
        return sorted({cell.operation for cell in self.results}, key=operation_sort_key)

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """The conditions in which the operations of the session differ: a reader must see them."""
        names = (n for n in CONDITIONS if len({getattr(o, n) for o in self.operations}) > 1)
        return tuple(names)

    @cached_property
    def _counts(self) -> dict[tuple[str, str, Operation], list[int]]:
        found: dict[tuple[str, str, Operation], list[int]] = {}
        for cell in sorted(self.results):
            place = (cell.machine, cell.environment, cell.operation)
            found.setdefault(place, []).append(cell.processes)
        return found

    def planned(self, machine: str, environment: str, operation: Operation) -> list[int]:
        """Process counts at which an MPI was to be measured, sorted."""
        return self._counts.get((machine, environment, operation), [])

    def known(self, machine: str, operation: Operation) -> list[int]:
        """Process counts at which some MPI has a time, sorted."""
        counts = {
            count
            for name in self.environments
            for count in self.planned(machine, name, operation)
            if self.time(machine, name, operation, count) is not None
        }
        return sorted(counts)

    def conditions(self, operation: Operation) -> tuple[str, ...]:
        """Return the values of an operation in the fields ``varying``."""
        return tuple(getattr(operation, name) for name in self.varying)

    def time(
        self, machine: str, environment: str, operation: Operation, processes: int
    ) -> float | None:
        """Return the time, or None where it was not measured or not planned at all."""
        return self.times.get(PaperCell(machine, environment, operation, processes))


def arrange_sessions(sessions: Mapping[str, Sequence[CaseResult]]) -> PaperMeasurements:
    """Arrange mpicost's cases of sessions, by the name of the session.

    The same partition in two sessions is two machines. What was skipped was not to be measured, so it is not
    missing.
    """
    kept = {name: _own_cases(results) for name, results in sessions.items()}
    names = _name_machines(kept)
    found: dict[PaperCell, list[CaseResult]] = {}
    systems: dict[str, tuple[str, str]] = {}
    of: dict[str, str] = {}
    for session, results in kept.items():
        most = find_densest_layouts(results)
        for result in results:
            case = result.case
            if case.per_node != most[(case.system, case.partition, case.processes)]:
                continue
            machine = names[session, case.system, case.partition]
            systems[machine], of[machine] = (case.system, case.partition), session
            found.setdefault(_cell(case, machine), []).append(result)
    return PaperMeasurements({cell: tuple(group) for cell, group in found.items()}, systems, of)


def _own_cases(results: Sequence[CaseResult]) -> list[CaseResult]:
    return [
        r
        for r in results
        if r.case.program == OWN_PROGRAM
        and r.verdict is not Verdict.SKIPPED
        and not is_control(r.case)
    ]


def _name_machines(
    sessions: Mapping[str, Sequence[CaseResult]],
) -> dict[tuple[str, str, str], str]:
    """Name each partition of each session, no longer than tells them apart."""
    places = {
        (name, r.case.system, r.case.partition) for name, group in sessions.items() for r in group
    }
    parts: tuple[int, ...] = (2,) if len({system for _, system, _ in places}) == 1 else (1, 2)
    if len({tuple(place[n] for n in parts) for place in places}) < len(places):
        parts = (0, *parts)
    return {place: ":".join(place[n] for n in parts) for place in places}


def _cell(case: Case, machine: str) -> PaperCell:
    operation = Operation(case.routine, case.bytes, case.cache, case.sync)
    return PaperCell(machine, case.environment, operation, case.processes)


def _time(results: Sequence[CaseResult]) -> float | None:
    """Return the median over the partners of a ping-pong; None if one is missing."""
    values = [result.value for result in results if _is_usable(result)]
    known = [value for value in values if value is not None]
    return statistics.median(known) if len(known) == len(results) else None


def _is_usable(result: CaseResult) -> bool:
    return result.value is not None and result.value > 0 and result.verdict not in UNUSABLE
