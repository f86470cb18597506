"""Compare machines, or MPIs, at one process count: the ratio tables 1 to 9 of Luecke et al. (2001).

Where simulated machines stand for the paper's, the printed ratio stands beside the simulated one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from postprocess.base.errors import UsageError
from postprocess.extensions.papers.common.data import Operation, PaperMeasurements, operation_sort_key
from postprocess.extensions.papers.common.printed import History, PrintedRatio


@dataclass(frozen=True)
class RatioBasis:
    """The basis of the ratios: a machine at a process count.

    With an MPI named, every time is divided by that of this MPI, as the papers do, which compare each machine
    with an MPI of its own. Without, each by that of the same MPI.
    """

    machine: str
    processes: int
    environment: str | None = None

    def divisor(self, environment: str) -> str:
        """Return the MPI on the basis by which times of another are divided."""
        return self.environment or environment

    @property
    def title(self) -> str:
        """The machine, with its MPI where one is named."""
        return f"{self.machine} with {self.environment}" if self.environment else self.machine


@dataclass(frozen=True)
class RatioRow:
    """One operation on one machine: a ratio for each MPI, None where one of the two times is missing."""

    operation: Operation
    machine: str
    ratios: Mapping[str, float | None]  #: by environment, of those that the machine has
    printed: PrintedRatio | None
    fitted: bool = False  #: the model was made from the printed ratio

    @property
    def is_evidence(self) -> bool:
        """Whether there is a printed ratio that the model does not come from."""
        return self.printed is not None and not self.fitted

    def over_printed(self, environment: str) -> float | None:
        """Return the measured ratio over the printed one, or None where either is missing."""
        measured = self.ratios.get(environment)
        if measured is None or self.printed is None:
            return None
        return measured / self.printed.ratio


@dataclass(frozen=True)
class RatioTable:
    """All sizes of a routine on all machines but the basis."""

    routine: str
    basis: RatioBasis
    environments: tuple[str, ...]
    rows: tuple[RatioRow, ...]


def find_stand_ins(measured: PaperMeasurements, history: History) -> dict[str, list[str]]:
    """Find the machines of the papers for which each machine of the session stands, if any."""
    places = {place: machine for machine, place in measured.systems.items()}
    found: dict[str, list[str]] = {}
    for each in history.stand_ins:
        machine = places.get((each.system, each.partition))
        if machine:
            found.setdefault(machine, []).append(each.machine)
    return found


def choose_basis(
    measured: PaperMeasurements, history: History, against: str | None, processes: int | None
) -> RatioBasis | None:
    """Choose the machine and the count to compare at: as asked for, else those of the papers, else the largest.

    ``against``: ``MACHINE`` or ``MACHINE:ENVIRONMENT``. Where a machine shares no MPI with another, its first
    stands against the MPIs of the others. None if there is nothing to compare and nothing was asked for.

    :raises UsageError: if what was asked for is not there.
    """
    machine, environment = find_against(measured, against)
    if len(measured.machines) < 2 and environment is None:
        if against is None and processes is None:
            return None
        fix = "choose a session with several (./plumbline run --site simulated)"
        raise UsageError(f"the session has one partition, {measured.machines[0]}; {fix}")
    reference = machine or _usual_machine(measured, history)
    counts = _comparable(measured, reference, environment)
    if not counts and environment is None:
        environment = measured.environments_on(reference)[0]
        counts = _comparable(measured, reference, environment)
    asked = [f"--against {against}"] if against else []
    asked += [f"--processes {processes}"] if processes else []
    if asked and (not counts or (processes and processes not in counts)):
        there = f"at {', '.join(map(str, counts))}" if counts else "at no count"
        comparable = f"{reference} can be compared {there}"
        raise UsageError(f"{' '.join(asked)}: not in the session; in it {comparable}")
    if not counts:
        return None
    count = processes or _usual_count(counts, measured, history, reference)
    return RatioBasis(reference, count, environment)


def find_against(measured: PaperMeasurements, against: str | None) -> tuple[str | None, str | None]:
    """Find the machine and the MPI that ``[SESSION:][SYSTEM:]PARTITION[:ENVIRONMENT]`` names."""
    if against is None:
        return None, None
    if found := _find_machine(measured, against):
        return found, None
    name, _, environment = against.rpartition(":")
    machine = _find_machine(measured, name)
    if machine is None:
        there = ", ".join(measured.machines)
        raise UsageError(f"--against {against}: not a partition of the session; it has {there}")
    if environment not in measured.environments_on(machine):
        there = ", ".join(measured.environments_on(machine))
        raise UsageError(f"--against {against}: no MPI of {machine}; it has {there}")
    return machine, environment


def _find_machine(measured: PaperMeasurements, name: str) -> str | None:
    """Find the one machine of this name, be it longer than what tells the machines apart."""
    found = []
    for machine, (system, partition) in measured.systems.items():
        longer = {partition, f"{system}:{partition}"}
        longer |= {f"{session}:{each}" for session in measured.sessions[machine] for each in longer}
        if name == machine:
            return machine
        if name in longer:
            found.append(machine)
    if len(found) > 1:
        raise UsageError(f"--against {name}: is several machines; choose of {', '.join(found)}")
    return found[0] if found else None


def build_paper_tables(measured: PaperMeasurements, history: History, basis: RatioBasis) -> list[RatioTable]:
    """Build a table for each routine that was planned at the process count on some machine.

    Of the MPIs those that have a divisor on the reference machine, and it on another.
    """
    counts = _comparable(measured, basis.machine, basis.environment)
    environments = tuple(counts.get(basis.processes, ()))
    printed = _printed(measured, history, basis)
    own = measured.environments_on(basis.machine)
    others = [
        machine
        for machine in _ordered(measured, history)
        if machine != basis.machine or (basis.environment and len(own) > 1)
    ]
    planned = {cell.operation for cell in measured.results if cell.processes == basis.processes}
    found: dict[str, list[RatioRow]] = {}
    for operation in sorted(planned, key=operation_sort_key):
        rows = [_row(measured, basis, operation, machine, environments, printed) for machine in others]
        found.setdefault(operation.routine, []).extend(rows)
    return [RatioTable(routine, basis, environments, tuple(rows)) for routine, rows in found.items()]


def _usual_machine(measured: PaperMeasurements, history: History) -> str:
    """Return the machine against which the most ratios are printed, else the first by name."""
    stands = find_stand_ins(measured, history)
    against = [ratio.against for ratio in history.ratios]

    def printed(machine: str) -> int:
        return sum(against.count(name) for name in stands.get(machine, []))

    return max(measured.machines, key=printed)


def _usual_count(
    counts: Mapping[int, Sequence[str]], measured: PaperMeasurements, history: History, reference: str
) -> int:
    """Return a process count of the papers' tables, else the largest one."""
    stands = find_stand_ins(measured, history).get(reference, [])
    papers = {ratio.processes for ratio in history.ratios if ratio.against in stands}
    return max(counts.keys() & papers or counts)


def _comparable(measured: PaperMeasurements, reference: str, environment: str | None) -> dict[int, list[str]]:
    """List, by process count, the MPIs whose times have a divisor on the reference machine.

    With ``environment``, those of all machines, this one itself only if another machine has it too; without,
    those with a time both on the reference machine and on another.
    """
    here: set[tuple[int, str]] = set()
    there: set[tuple[int, str]] = set()
    for cell, time in measured.times.items():
        if time is not None:
            side = here if cell.machine == reference else there
            side.add((cell.processes, cell.environment))
    if environment is None:
        pairs = here & there
    else:
        other = there | {each for each in here if each[1] != environment}
        divisors = {count for count, name in here if name == environment}
        pairs = {each for each in other if each[0] in divisors}
    found: dict[int, list[str]] = {}
    for count, name in sorted(pairs):
        found.setdefault(count, []).append(name)
    return found


def _ordered(measured: PaperMeasurements, history: History) -> list[str]:
    """Sort machines in the order of the papers, then by name."""
    order = {machine: n for n, machine in enumerate(find_stand_ins(measured, history))}
    return sorted(measured.machines, key=lambda name: (order.get(name, len(order)), name))


_Printed = Mapping[tuple[str, str, int], tuple[PrintedRatio, bool]]


def _printed(measured: PaperMeasurements, history: History, basis: RatioBasis) -> _Printed:
    """Return the printed ratios to the basis at its count, by machine, routine and bytes.

    Each comes with whether the model of the machine was fitted to it.
    """
    stands = find_stand_ins(measured, history)
    names = {name: machine for machine, known in stands.items() for name in known}
    fits = {((f.system, f.partition), f.routine, f.bytes) for f in history.fits}
    found = {}
    for ratio in history.ratios:
        same = ratio.against in stands.get(basis.machine, []) and ratio.processes == basis.processes
        machine = names.get(ratio.machine)
        if same and machine:
            fitted = (measured.systems[machine], ratio.routine, ratio.bytes) in fits
            found[machine, ratio.routine, ratio.bytes] = (ratio, fitted)
    return found


def _row(
    measured: PaperMeasurements,
    basis: RatioBasis,
    operation: Operation,
    machine: str,
    environments: Sequence[str],
    printed: _Printed,
) -> RatioRow:
    ratios = {}
    for name in environments:
        if name not in measured.environments_on(machine):
            continue
        time = measured.time(machine, name, operation, basis.processes)
        divisor = basis.divisor(name)
        reference = measured.time(basis.machine, divisor, operation, basis.processes)
        ratios[name] = time / reference if time is not None and reference is not None else None
    known, fitted = printed.get((machine, operation.routine, operation.bytes), (None, False))
    return RatioRow(operation, machine, ratios, known, fitted)
