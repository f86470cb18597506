"""What stands on the pages of several papers beside their own tables: the clock, skew, languages, remarks.

*Skew* is how far apart the processes began a trial: what the synchroniser before it left in its time. The
papers call MPI_Barrier before a trial, and take the longest time of any process. The processes leave a
barrier one after the other: the time of a short call is then, in part or wholly, the wait for the one that
left last. The two of a ping-pong or a swap meet before they are timed; a ring and the collective calls have
nobody to meet.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from postprocess.base.errors import UsageError
from postprocess.base.formats import NOT_PRINTED, TextTable
from postprocess.base.grouping import group_pairs
from postprocess.base.records import Positive, Text, read_record
from postprocess.extensions.papers import cells
from postprocess.extensions.papers.measurements import CONDITIONS, LABELS, PaperCell, PaperMeasurements, Place
from postprocess.extensions.papers.printed import History
from postprocess.model.routines.benchmark import LOOP
from postprocess.model.routines.mpicost import BARRIER, SWAPS, Routine, find_routine
from postprocess.results.store import parse_run_json

PAIR = 2  #: processes
SYSTEM = ("system", "partition", "environment")
#: Resolution and overhead of the clock in seconds, by session and by ``SYSTEM``
Timers = Mapping[str, Mapping[tuple[str, str, str], tuple[float, float]]]


def read_timers(frame: pl.DataFrame, session: str) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Read resolution and overhead of the clock, in seconds, by system, partition and environment."""
    found: dict[tuple[str, str, str], tuple[float, float]] = {}
    if frame.is_empty():
        return found
    rows = frame.filter((pl.col("session") == session) & (pl.col("program") == "mpicost"))
    for *place, provenance in rows.select(*SYSTEM, "provenance").unique().iter_rows():
        timer = parse_run_json(provenance).get("timer")
        if isinstance(timer, dict) and {"resolution", "overhead"} <= timer.keys():
            system, partition, environment = place
            resolution, overhead = found.get((system, partition, environment), (0.0, 0.0))
            found[system, partition, environment] = (
                max(resolution, float(timer["resolution"])),
                max(overhead, float(timer["overhead"])),
            )
    return found


def build_timer_table(measured: PaperMeasurements, timers: Timers, history: History) -> TextTable:
    """Build a row for each machine and MPI, and those in print; no row if no session tells."""
    rows: list[tuple[str, ...]] = []
    for machine, environment in measured.mpis:
        known = [timers.get(session, {}) for session in measured.sessions[machine]]
        place = (*measured.systems[machine], environment)
        if told := [each[place] for each in known if place in each]:
            largest = (cells.plain(max(seconds) * 1e6, "us", 3) for seconds in zip(*told, strict=True))
            rows.append((machine, environment, *largest))
    printed = [
        (f"{figure.machine} (in print)", NOT_PRINTED, cells.plain(figure.value, "us"), NOT_PRINTED)
        for figure in history.figures
        if figure.paper == "Luecke 2003" and figure.quantity == "timer_resolution"
    ]
    return TextTable(
        "The clock",
        ("machine", "MPI"),
        ("resolution (us)", "a reading takes (us)"),
        (*rows, *printed) if rows else (),
        ("in print: of MPI_Wtime; ours: of the clock that mpicost reads, the largest of all launches",),
    )


LARGE = 0.25  #: of a time: a skew that is told
RING = "swap_ring_"  #: how the swaps begin whose members do not meet
COLUMNS = ("key", "skew", "late", "dropped")
Skews = Mapping[str, Mapping[str, float]]  #: median in seconds, by session and the key of a case


def read_skews(frame: pl.DataFrame, session: str) -> dict[str, float]:
    """Read the median skew of the counted trials of each case of a session, in seconds, by the case's key."""
    if frame.is_empty() or not {*COLUMNS} <= {*frame.columns}:
        return {}
    found: dict[str, list[float]] = {}
    for key, skew, late, dropped in frame.filter(pl.col("session") == session).select(COLUMNS).iter_rows():
        skews = np.array(skew or [], dtype=np.float64)
        was_late = np.array(late or [False] * skews.size, dtype=bool)
        if was_late.shape == skews.shape:
            counted = ~was_late & np.isfinite(skews)
            counted[: dropped or 0] = False
            found.setdefault(key, []).extend(skews[counted])
    return {key: statistics.median(each) for key, each in found.items() if each}


def build_skew_table(measured: PaperMeasurements, skews: Skews) -> TextTable:
    """Build a row for each routine whose skew is ``LARGE`` beside its shortest time.

    Of each routine the least size at the most processes. Left out are pairs that meet before they are timed,
    loops of calls, which overlap, and what replaces another operation.
    """
    return TextTable(
        f"Where the processes began far apart: by {LARGE:.0%} of the time and more",
        (*LABELS, "routine", "size", "processes"),
        ("time (us)", "skew (us)", "skew / time"),
        tuple(row for cell in _select_waiting(measured) for row in _build_skew_row(measured, skews, cell)),
        (
            "skew: from the first start of a process to the last, the median of the trials; the least size of "
            "each routine at the most processes",
            "who leaves the barrier first waits for the others in its own time: at most the skew is not part "
            "of the call; with --sync window all begin by a common clock",
        ),
    )


def _select_waiting(measured: PaperMeasurements) -> list[PaperCell]:
    """Select the cells whose processes may have waited for each other: the shortest of each routine."""
    found: dict[tuple[Place, str], PaperCell] = {}
    for cell, time in measured.times.items():
        operation = cell.operation
        routine = find_routine(operation.routine)
        waits = operation.sync != LOOP and not _meets(routine)
        sent = operation.bytes or operation.routine == BARRIER
        if time is not None and cell.processes > 1 and waits and sent and not routine.replaces:
            key = (cell.place, operation.routine)
            found[key] = min(
                found.get(key, cell), cell, key=lambda each: (-each.processes, each.operation.bytes)
            )
    return [found[key] for key in sorted(found)]


def _meets(routine: Routine) -> bool:
    """Return whether the two of each pair meet before they are timed."""
    return routine.in_pairs or (routine.family == SWAPS and not routine.name.startswith(RING))


def _build_skew_row(measured: PaperMeasurements, skews: Skews, cell: PaperCell) -> Iterator[tuple[str, ...]]:
    known = [
        each[result.case.key]
        for session in measured.sessions[cell.machine]
        for each in [skews.get(session, {})]
        for result in measured.results[cell]
        if result.case.key in each
    ]
    time, operation = measured.times[cell], cell.operation
    if not known or not time or statistics.median(known) < LARGE * time:
        return
    skew = statistics.median(known)
    yield (
        *cell.place.cells,
        *(operation.routine, operation.size, str(cell.processes)),
        *(cells.time(time), cells.time(skew), cells.ratio(skew / time)),
    )


FOLDER = "bindings"  #: of the work directory, a file for each call of ``agree --bindings``
CONTROL = "c-again"  #: the name of the same program once more


@dataclass(frozen=True)
class LanguageRow:
    """A language in a case with an MPI: its time of a call over that in C, with the interval."""

    environment: Text
    language: Text
    title: Text
    routine: Text
    bytes: int
    launches: int
    ratio: Positive
    low: Positive
    high: Positive
    seconds: Positive
    extra: float  #: seconds over C
    control: str = ""  #: the interval of C again over C in the same rounds

    @property
    def difference(self) -> str:
        if self.low <= 1 <= self.high:
            return "none shown"
        return "slower" if self.low > 1 else "faster"


@dataclass(frozen=True)
class LanguageFile:
    """What of such a file is looked at."""

    machine: str
    rows: list[LanguageRow]


def load_languages(work: Path) -> list[LanguageRow]:
    """Load the newest rows of each language with each MPI; none where nothing was measured.

    :raises UsageError: for a file that cannot be read
    """
    newest: dict[tuple[str, str], list[LanguageRow]] = {}
    for path in sorted((work / FOLDER).glob("*.json")):
        try:
            rows = read_record(path, LanguageFile, exact=False).rows
        except (OSError, ValueError) as error:
            fix = "remove it, and measure again: ./plumbline agree --bindings"
            raise UsageError(f"{path}: {error}; {fix}") from None
        controls = {
            (row.environment, row.routine, row.bytes): f"{row.low:.2f} to {row.high:.2f}"
            for row in rows
            if row.language == CONTROL
        }
        found: dict[tuple[str, str], list[LanguageRow]] = {}
        for row in rows:
            control = controls.get((row.environment, row.routine, row.bytes), "")
            found.setdefault((row.environment, row.language), []).append(replace(row, control=control))
        newest |= found
    return [row for key in sorted(newest) for row in newest[key]]


def build_language_table(language: str, title: str, said: str, rows: Sequence[LanguageRow]) -> TextTable:
    """Build a row for each case in which a language was measured beside C."""
    return TextTable(
        title,
        ("MPI", "binding", "routine", "size"),
        ("time (us)", "over C (us)", "ratio", "from", "to", "difference", "C again / C", "launches"),
        tuple(_write_language(row) for row in rows if row.language.partition("-")[0] == language),
        (
            f"in print: {said}",
            "ratio within a round, geometric mean over launches with its 95 % interval; C again: a control",
        ),
    )


def _write_language(row: LanguageRow) -> tuple[str, ...]:
    return (
        *(row.environment, row.title, row.routine, cells.size(row.bytes)),
        *(cells.time(row.seconds), cells.Number(f"{row.extra * 1e6:+.3f}", row.extra * 1e6, "us")),
        *(cells.ratio(row.ratio), cells.ratio(row.low), cells.ratio(row.high)),
        *(row.difference, row.control, cells.count(row.launches)),
    )


def describe_few_processes(measured: PaperMeasurements, tells_nothing: str) -> str:
    """Describe which machines were measured with one pair of processes; empty for none.

    :param tells_nothing: what a page cannot tell then
    """
    most: dict[str, int] = {}
    for cell in measured.results:
        most[cell.machine] = max(cell.processes, most.get(cell.machine, 0))
    pairs = sorted(machine for machine, count in most.items() if count == PAIR)
    return f"{', '.join(pairs)}: 2 processes only: {tells_nothing}" if pairs else ""


def describe_conditions(measured: PaperMeasurements) -> str:
    """Describe the caches and the synchroniser of all cases where they are the same; else rows have them."""
    same = [name for name in CONDITIONS if name not in measured.varying]
    if not measured.operations or not same:
        return ""
    told = ", ".join(f"{name} {getattr(measured.operations[0], name)}" for name in same)
    return f"All measured with {told}."


def describe_split(measured: PaperMeasurements) -> list[str]:
    """Describe the partitions that are several machines here, and why."""
    return [
        f"{', '.join(names)}: one partition, but several machines here: their sessions measured the same "
        "operation, ran other libraries, or had --set-env or --oversubscribe; name sessions that complement "
        "each other, and they are one"
        for names in group_pairs((place, machine) for machine, place in measured.systems.items()).values()
        if len(names) > 1
    ]
