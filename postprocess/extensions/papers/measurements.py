"""Arrange what a session measured for comparison: machines, MPIs and process counts side by side.

A machine is a partition, under the system's name too where a session has several systems. Of each
process count the layout with the most processes per node stands for the machine. Only mpicost's cases
are looked at, without its controls: its routines are the tests of the papers, and what others call the same
is timed otherwise.
"""

import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from postprocess.base.formats import size
from postprocess.extensions.papers import cells
from postprocess.model.case import Case
from postprocess.model.routines.mpicost import BARRIER, OWN_PROGRAM, PINGPONG, ROUTINES, is_control
from postprocess.model.verdict import FAILED_LAUNCH, CaseResult, Verdict
from postprocess.report.panels import find_densest_layouts

#: Of Luecke et al. (2001), in their order; a reduction has the name of its operator behind it.
TESTS = tuple(dict.fromkeys(routine.test for routine in ROUTINES if routine.test))
CONDITIONS = ("cache", "sync")
SENDS = (PINGPONG, "pingpong_standard")  #: by MPI_Send
LABELS = ("machine", "MPI", "conditions")  #: of the cells of a :class:`Place`


class Place(NamedTuple):
    """An MPI on a machine, under the same conditions."""

    machine: str
    environment: str
    cache: str
    sync: str

    @property
    def cells(self) -> tuple[str, str, str]:
        """The first cells of a row, under ``LABELS``."""
        return self.machine, self.environment, f"{self.cache}, {self.sync}"


@dataclass(frozen=True, order=True)
class Operation:
    """What is timed: two times are comparable only if their operations are equal."""

    routine: str
    bytes: int
    cache: str
    sync: str

    @property
    def size(self) -> cells.Number:
        """The size as people read it, empty where there is no payload."""
        return cells.Number("" if self.routine == BARRIER else size(self.bytes), self.bytes)

    def at(self, machine: str, environment: str) -> Place:
        """Return the place at which an MPI of a machine does this."""
        return Place(machine, environment, self.cache, self.sync)


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

    @property
    def place(self) -> Place:
        return self.operation.at(self.machine, self.environment)


@dataclass(frozen=True, order=True)
class PairLayout:
    """Between which processes a message goes."""

    one_node: bool
    processes: int
    per_node: int

    def __str__(self) -> str:
        """Describe it, as in ``2 nodes, of 8x4``."""
        nodes = "1 node" if self.one_node else "2 nodes"
        return f"{nodes}, of {self.processes}x{self.per_node}"


@dataclass(frozen=True)
class PaperMeasurements:
    """The cases behind each cell: one, or for ping-pong one for each partner. Times in seconds."""

    results: Mapping[PaperCell, tuple[CaseResult, ...]]
    systems: Mapping[str, tuple[str, str]]  #: of each machine: system and partition
    sessions: Mapping[str, tuple[str, ...]]  #: of each machine: the sessions that measured it
    #: what a user set by hand, by session and MPI
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: of each machine: ping-pongs of every layout
    pairs: Mapping[str, tuple[CaseResult, ...]] = field(default_factory=dict)

    @cached_property
    def times(self) -> dict[PaperCell, float | None]:
        """The time of each planned cell in seconds; None where it has no usable value."""
        return {cell: compute_time(results) for cell, results in self.results.items()}

    @cached_property
    def machines(self) -> list[str]:
        return sorted(self.systems)

    @cached_property
    def environments(self) -> list[str]:
        return sorted({cell.environment for cell in self.results})

    def environments_on(self, machine: str) -> list[str]:
        """Return the MPIs that were planned on a machine."""
        return [environment for name, environment in self.mpis if name == machine]

    @cached_property
    def mpis(self) -> list[tuple[str, str]]:
        return sorted({(cell.machine, cell.environment) for cell in self.results})

    @cached_property
    def places(self) -> list[Place]:
        """Each machine and MPI under each of the conditions of the sessions, measured or not."""
        conditions = sorted({(operation.cache, operation.sync) for operation in self.operations})
        return [Place(*mpi, *condition) for mpi in self.mpis for condition in conditions]

    @cached_property
    def operations(self) -> list[Operation]:
        """In the order of the tests of the papers."""
        return sorted({cell.operation for cell in self.results}, key=operation_sort_key)

    def list_curves(self, routines: Collection[str]) -> list[tuple[Place, Operation, dict[int, float]]]:
        """List place and operation of these routines on each MPI, with the times in seconds by processes."""
        chosen = [operation for operation in self.operations if operation.routine in routines]
        return [(each.at(*mpi), each, self.curve(*mpi, each)) for mpi in self.mpis for each in chosen]

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

    def find_setting(self, machine: str, environment: str) -> str:
        """Return what a user set by hand for an MPI of a machine; empty for nothing."""
        told = (self.settings.get(session, {}) for session in self.sessions[machine])
        return next((each[environment] for each in told if environment in each), "")

    def conditions(self, operation: Operation) -> tuple[str, ...]:
        """Return the values of an operation in the fields ``varying``."""
        return tuple(getattr(operation, name) for name in self.varying)

    def name_conditions(self, operation: Operation) -> tuple[str, ...]:
        """Name the values of an operation in the fields ``varying``, as ``cache warm``, where no head does."""
        return tuple(f"{name} {getattr(operation, name)}" for name in self.varying)

    def select_sends(self, place: Place) -> tuple[PairLayout, Mapping[int, tuple[CaseResult, ...]]] | None:
        """Select the ping-pongs that tell of a message between two processors of the network, by bytes.

        Those of two nodes before those of one, of few processes before many; of the two routines that time
        the same that of more sizes. None without any.
        """
        found: dict[PairLayout, dict[str, dict[int, list[CaseResult]]]] = {}
        for result in self.pairs.get(place.machine, ()):
            case = result.case
            if (case.environment, case.cache, case.sync) == (place.environment, place.cache, place.sync):
                layout = PairLayout(case.peer < case.per_node, case.processes, case.per_node)
                sizes = found.setdefault(layout, {}).setdefault(case.routine, {})
                sizes.setdefault(case.bytes, []).append(result)
        if not found:
            return None
        layout = min(found)
        _, sizes = max(found[layout].items(), key=lambda item: (len(item[1]), item[0]))
        return layout, {size: tuple(sizes[size]) for size in sorted(sizes)}

    def collect_sends(self, place: Place) -> tuple[str, dict[int, float]]:
        """Collect half ping-pongs in seconds by bytes, and describe between which processes; empty without."""
        found = self.select_sends(place)
        if found is None:
            return "", {}
        layout, results = found
        times = {size: time for size, each in results.items() if (time := compute_time(each)) is not None}
        return str(layout), times

    def group_sizes(self, least: bool = False) -> dict[tuple[Place, str, int], dict[int, float]]:
        """Group the known times, or the ``least`` ones, by place, routine and processes: seconds by bytes."""
        found: dict[tuple[Place, str, int], dict[int, float]] = {}
        for cell, results in sorted(self.results.items()):
            time = compute_time(results, least)
            if time is not None:
                about = (cell.place, cell.operation.routine, cell.processes)
                found.setdefault(about, {})[cell.operation.bytes] = time
        return found

    def time(self, machine: str, environment: str, operation: Operation, processes: int) -> float | None:
        """Return the time in seconds, or None where it was not measured or not planned at all."""
        return self.times.get(PaperCell(machine, environment, operation, processes))

    def ratio(self, operation: Operation, processes: int, *mpis: tuple[str, str]) -> float | None:
        """Return the time with an MPI of a machine over that with another; None where one is missing."""
        one, other = (self.time(machine, mpi, operation, processes) for machine, mpi in mpis)
        return None if one is None or other is None else one / other

    def curve(self, machine: str, environment: str, operation: Operation) -> dict[int, float]:
        """Return the known times in seconds by the count of processes, of two and more."""
        return {
            count: time
            for count in self.planned(machine, environment, operation)
            if count > 1 and (time := self.time(machine, environment, operation, count)) is not None
        }


def arrange_sessions(
    sessions: Mapping[str, Sequence[CaseResult]], may_join: Callable[[str, str], bool] = lambda one, other: True
) -> PaperMeasurements:
    """Arrange mpicost's cases of sessions, by the name of the session.

    The same partition in two sessions is one machine where they measured different things, and ``may_join``
    allows it; else it is two. What was skipped was not to be measured, so it is not missing.
    """
    kept = {name: _own_cases(results) for name, results in sessions.items()}
    parts = _join_sessions(kept, may_join)
    names = _name_machines(parts)
    found: dict[PaperCell, list[CaseResult]] = {}
    pairs: dict[str, list[CaseResult]] = {}
    systems: dict[str, tuple[str, str]] = {}
    of: dict[str, tuple[str, ...]] = {}
    for part in parts:
        machine, place = names[part], part[1:]
        systems[machine], of[machine] = place, part[0]
        for session in part[0]:
            own = [r for r in kept[session] if (r.case.system, r.case.partition) == place]
            most = find_densest_layouts(own)
            pairs.setdefault(machine, []).extend(r for r in own if r.case.routine in SENDS)
            for result in own:
                case = result.case
                if case.per_node == most[(case.system, case.partition, case.processes)]:
                    found.setdefault(_cell(case, machine), []).append(result)
    results = {cell: tuple(group) for cell, group in found.items()}
    every = {machine: tuple(group) for machine, group in pairs.items()}
    return PaperMeasurements(results, systems, of, pairs=every)


_Part = tuple[tuple[str, ...], str, str]  #: sessions, system, partition


def _join_sessions(
    kept: Mapping[str, Sequence[CaseResult]], may_join: Callable[[str, str], bool]
) -> list[_Part]:
    """Join sessions of one partition that share no operation of an MPI at a process count."""
    joined: dict[_Part, set[PaperCell]] = {}
    for session, results in kept.items():
        parts: dict[tuple[str, str], set[PaperCell]] = {}
        for result in results:
            place = (result.case.system, result.case.partition)
            parts.setdefault(place, set()).add(_cell(result.case, ""))
        for place, own in parts.items():
            part: _Part = ((), *place)
            for known, others in joined.items():
                alike = all(may_join(session, name) for name in known[0])
                if known[1:] == place and alike and not own & others:
                    part = known
                    break
            others = joined.pop(part, set())
            whole: _Part = ((*part[0], session), *place)
            joined[whole] = own | others
    return list(joined)


def _own_cases(results: Sequence[CaseResult]) -> list[CaseResult]:
    return [
        r
        for r in results
        if r.case.program == OWN_PROGRAM and r.verdict is not Verdict.SKIPPED and not is_control(r.case)
    ]


def _name_machines(parts: Sequence[_Part]) -> dict[_Part, str]:
    """Name each partition by its first session, system and itself, no longer than tells them apart."""
    shown: tuple[int, ...] = (2,) if len({system for _, system, _ in parts}) == 1 else (1, 2)
    places = {part: (part[0][0], *part[1:]) for part in parts}
    if len({tuple(place[n] for n in shown) for place in places.values()}) < len(places):
        shown = (0, *shown)
    return {part: ":".join(place[n] for n in shown) for part, place in places.items()}


def _cell(case: Case, machine: str) -> PaperCell:
    operation = Operation(case.routine, case.bytes, case.cache, case.sync)
    return PaperCell(machine, case.environment, operation, case.processes)


def compute_time(results: Sequence[CaseResult], least: bool = False) -> float | None:
    """Compute the median over the partners of a ping-pong; None if one is missing.

    :param least: of the least of all trials, as Taboada et al. do; of a case without trials its value
    """
    usable = [r for r in results if r.value is not None and r.value > 0 and r.verdict not in FAILED_LAUNCH]
    own = [(r.summary.minimum if r.summary else r.value) if least else r.published for r in usable]
    known = [value for value in own if value]
    return statistics.median(known) if known and len(known) == len(results) else None
