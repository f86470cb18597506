"""Compare machines, or MPIs, at one process count: the ratio tables 1 to 9 of Luecke et al. (2001).

Where simulated machines stand for the paper's, the printed ratio stands beside the simulated one. A machine
that is only in print is reached by way of such a machine, as the paper prints ratios and no times:
T(ours) / T(NT) is T(ours) / T(torus) over the printed T(NT) / T(T3E-600), where the torus stands for the
T3E-600.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from postprocess.base.errors import UsageError
from postprocess.base.formats import NOT_PRINTED, TextTable, ratio, size
from postprocess.base.grouping import group_pairs
from postprocess.extensions.papers import cells, measurements
from postprocess.extensions.papers.printed import History, PrintedRatio


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

    operation: measurements.Operation
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


def find_stand_ins(measured: measurements.PaperMeasurements, history: History) -> dict[str, list[str]]:
    """Find the machines of the papers for which each machine of the session stands, if any."""
    places = {place: machine for machine, place in measured.systems.items()}
    found: dict[str, list[str]] = {}
    for each in history.stand_ins:
        machine = places.get((each.system, each.partition))
        if machine:
            found.setdefault(machine, []).append(each.machine)
    return found


def choose_basis(
    measured: measurements.PaperMeasurements, history: History, against: str | None, processes: int | None
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
    stands = find_stand_ins(measured, history)
    against_it = {
        name: [each.processes for each in history.ratios if each.against in stands.get(name, [])]
        for name in measured.machines
    }
    # without one, that against which the most ratios are printed, else the first by name
    reference = machine or max(measured.machines, key=lambda name: len(against_it[name]))
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
    count = processes or max(counts.keys() & against_it[reference] or counts)
    return RatioBasis(reference, count, environment)


def find_against(
    measured: measurements.PaperMeasurements, against: str | None
) -> tuple[str | None, str | None]:
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


def _find_machine(measured: measurements.PaperMeasurements, name: str) -> str | None:
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


def build_paper_tables(
    measured: measurements.PaperMeasurements, history: History, basis: RatioBasis
) -> list[RatioTable]:
    """Build a table for each routine that was planned at the process count on some machine.

    Of the MPIs those that have a divisor on the reference machine, and it on another.
    """
    counts = _comparable(measured, basis.machine, basis.environment)
    environments = tuple(counts.get(basis.processes, ()))
    printed = _printed(measured, history, basis)
    own = measured.environments_on(basis.machine)
    ordered = dict.fromkeys([*find_stand_ins(measured, history), *measured.machines])
    others = [
        machine for machine in ordered if machine != basis.machine or (basis.environment and len(own) > 1)
    ]
    planned = {cell.operation for cell in measured.results if cell.processes == basis.processes}
    found: dict[str, list[RatioRow]] = {}
    for operation in sorted(planned, key=measurements.operation_sort_key):
        rows = [_row(measured, basis, operation, machine, environments, printed) for machine in others]
        found.setdefault(operation.routine, []).extend(rows)
    return [RatioTable(routine, basis, environments, tuple(rows)) for routine, rows in found.items()]


def _comparable(
    measured: measurements.PaperMeasurements, reference: str, environment: str | None
) -> dict[int, list[str]]:
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
    return group_pairs(sorted(pairs))


_Printed = Mapping[tuple[str, str, int], tuple[PrintedRatio, bool]]


def _printed(measured: measurements.PaperMeasurements, history: History, basis: RatioBasis) -> _Printed:
    """Return the printed ratios to the basis at its count, by machine, routine and bytes.

    Each comes with whether the model of the machine was fitted to it.
    """
    stands = find_stand_ins(measured, history)
    names = {name: machine for machine, known in stands.items() for name in known}
    fits = {((f.system, f.partition), f.routine, f.bytes) for f in history.fits}
    found = {}
    for printed in history.ratios:
        same = printed.against in stands.get(basis.machine, []) and printed.processes == basis.processes
        machine = names.get(printed.machine)
        if same and machine:
            fitted = (measured.systems[machine], printed.routine, printed.bytes) in fits
            found[machine, printed.routine, printed.bytes] = (printed, fitted)
    return found


def _row(
    measured: measurements.PaperMeasurements,
    basis: RatioBasis,
    operation: measurements.Operation,
    machine: str,
    environments: Sequence[str],
    printed: _Printed,
) -> RatioRow:
    ratios = {
        name: measured.ratio(operation, basis.processes, (machine, name), (basis.machine, basis.divisor(name)))
        for name in environments
        if name in measured.environments_on(machine)
    }
    known, fitted = printed.get((machine, operation.routine, operation.bytes), (None, False))
    return RatioRow(operation, machine, ratios, known, fitted)


def format_ratio_table(measured: measurements.PaperMeasurements, table: RatioTable) -> TextTable:
    """Format the table as the paper has it, with a line for each size and machine."""
    basis = table.basis
    sources = sorted({row.printed.source for row in table.rows if row.printed})
    rows = tuple(
        (
            *(row.operation.size, *measured.conditions(row.operation), row.machine),
            *(_format_ratio(row, name) for name in table.environments),
            *([_format_printed(row)] if sources else []),
        )
        for row in table.rows
    )
    note = (
        f"printed: {'; '.join(sources)}; in brackets: the measured ratio over the printed one; fitted: the "
        "model of the machine was made from it"
    )
    return TextTable(
        f"{table.routine}: time over that of {basis.title}, {basis.processes} processes",
        ("size", *measured.varying, "machine"),
        (*table.environments, *(["printed"] if sources else [])),
        rows,
        (note,) if sources else (),
        (("routine", table.routine), ("processes", str(basis.processes))),
    )


def _format_ratio(row: RatioRow, environment: str) -> str:
    if environment not in row.ratios:
        return NOT_PRINTED
    value, factor = row.ratios[environment], row.over_printed(environment)
    if value is None:
        return cells.MISSING
    about = {"mpi": environment}
    text = ratio(value, 1.0)
    if factor is None:
        return cells.Number(text, value, quantity="ratio", about=about)
    over = cells.ratio(factor, quantity="ratio over printed ratio", about=about)
    return cells.Number(f"{text} ({over})", value, quantity="ratio", about=about, more=[over])


def _format_printed(row: RatioRow) -> str:
    if row.printed is None:
        return NOT_PRINTED
    text = f"{row.printed.ratio:g}" + (" (fitted)" if row.fitted else "")
    note = "fitted" if row.fitted else ""
    return cells.Number(text, row.printed.ratio, quantity="printed ratio", note=note)


NEEDED = (
    "--against {against}: the paper has only ratios, and no session stands for one of its machines "
    "at {count} processes; run ./plumbline nightly --site simulated --partition torus"
)


def build_chained_tables(
    measured: measurements.PaperMeasurements, history: History, against: str
) -> tuple[list[TextTable], str]:
    """Build a table for each routine in print, and say what is missing where there can be none.

    From machines of the sessions to one that is in print by way of one that stands for another in print. Those
    that do are tried in turn, that by which the paper divides first.
    """
    count = history.ratios[0].processes
    stands = find_stand_ins(measured, history)
    divisors = {each.against for each in history.ratios}
    printed: dict[str, dict[tuple[str, int], float]] = {}
    for each in history.ratios:
        own = printed.setdefault(each.routine, {})
        own |= {(each.against, each.bytes): 1.0, (each.machine, each.bytes): each.ratio}
    for way in sorted(stands, key=lambda machine: not divisors & {*stands[machine]}):
        tables = []
        for routine, times in printed.items():
            divided = {n: time for (name, n), time in sorted(times.items()) if name == against}
            over = {(name, n): time / divided[n] for (name, n), time in times.items() if n in divided}
            rows = tuple(_chain(measured, stands, way, count, routine, over, [*divided]))
            tables.append(
                TextTable(
                    f"{routine}: time over that of the {against} in print, {count} processes",
                    measurements.LABELS,
                    tuple(head for n in divided for head in (size(n) if n else "ratio", "in print")),
                    rows,
                    (f"by way of {way}, which stands for the {stands[way][0]}",),
                    (("routine", routine), ("processes", str(count))),
                )
            )
        if found := [table for table in tables if table.rows]:
            return found, ""
    return [], NEEDED.format(against=against, count=count)


def _chain(
    measured: measurements.PaperMeasurements,
    stands: Mapping[str, list[str]],
    way: str,
    processes: int,
    routine: str,
    over: Mapping[tuple[str, int], float],
    sizes: Sequence[int],
) -> Iterator[tuple[str, ...]]:
    """Build the rows of places with a ratio.

    :param over: printed times over that of the machine in print, by machine and bytes
    """
    own = measured.environments_on(way)
    for place in measured.places:
        divisor = place.environment if place.environment in own else own[0]
        row: list[str] = []
        for n in sizes:
            operation = measurements.Operation(routine, n, place.cache, place.sync)
            ratio = measured.ratio(operation, processes, place[:2], (way, divisor))
            known = over.get((stands[way][0], n))
            printed = [over[name, n] for name in stands.get(place.machine, []) if (name, n) in over]
            row += [
                _write_chained("ratio", None if ratio is None or known is None else ratio * known, n),
                _write_chained("ratio in print", printed[0] if printed else None, n),
            ]
        if any(cell != NOT_PRINTED for cell in row[::2]):
            yield (*place.cells, *row)


def _write_chained(quantity: str, value: float | None, count: int) -> str:
    return NOT_PRINTED if value is None else cells.ratio(value, quantity=quantity, about={"bytes": count})
