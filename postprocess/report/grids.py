"""Two views of all cases: verdicts by routine and MPI, and maps of routine by size.

A cell of a map holds all cases of a routine, size and environment, and shows the worst of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from postprocess.base.formats import format_percent, plural, size
from postprocess.model.routines.mpicost import program_sort_key
from postprocess.model.verdict import UNASSERTED, CaseResult, Verdict, count_verdicts, find_varying_fields
from postprocess.report.overview import classify_detectable, format_counts, format_totals, select_with_power
from postprocess.results.summary import SessionSummary

#: Lines of a folded section beside the failed routines: its head, two lines of folded ones
FRAME = 3

_Columns = dict[str, list[CaseResult]]  #: results of a routine by column


@dataclass(frozen=True)
class GridCell:
    """The cases of one environment and routine, counted by verdict."""

    counts: dict[str, int]
    failed: int
    skipped: int = 0  #: that count as no failure

    @property
    def text(self) -> str:
        """Such as ``11 pass, 1 regressed``."""
        return format_counts(self.counts)

    @property
    def brief(self) -> str:
        """The same where there is no room: ``1 failed, 11 well``."""
        well = sum(self.counts.values()) - self.failed - self.skipped
        counts = {"failed": self.failed, "skipped": self.skipped, "well": well}
        return format_counts({word: number for word, number in counts.items() if number})

    @property
    def tone(self) -> str:
        """``bad`` if a case failed, ``good`` if some passed, ``fair`` if one is suspect or none asserted."""
        if self.failed:
            return "bad"
        told = set(self.counts)
        return "fair" if "suspect" in told or told <= UNASSERTED else "good"


@dataclass(frozen=True)
class GridRow:
    """A routine of a program, or several in one: a cell for each column, None where there is no such case."""

    name: str
    cells: tuple[GridCell | None, ...]

    @property
    def failed(self) -> int:
        """How many of its cases failed."""
        return sum(cell.failed for cell in self.cells if cell)


@dataclass(frozen=True)
class GridSection:
    """The rows of one program, and its cases counted by verdict."""

    program: str
    counts: str
    rows: tuple[GridRow, ...]

    @property
    def ran(self) -> bool:
        """Whether more is said of it than that it was not run, which is no failure."""
        cells = (cell for row in self.rows for cell in row.cells if cell)
        return any(sum(cell.counts.values()) > cell.skipped for cell in cells)


@dataclass(frozen=True)
class VerdictGrid:
    """Counts per routine (rows) and environment (columns), a section for each program."""

    columns: tuple[str, ...]
    sections: tuple[GridSection, ...]


def build_grid(summary: SessionSummary, most_rows: int | None = None) -> VerdictGrid:
    """Count the cases of a session by program, routine and environment.

    With more rows than ``most_rows``, the routines of a program in which no case failed are folded
    into one row, and so are failed ones beyond a program's share.
    """
    column_names = (*find_varying_fields(summary.results, ("system", "partition")), "environment")
    found: dict[str, dict[str, _Columns]] = {}
    for result in summary.results:
        routines = found.setdefault(result.case.program, {})
        row = routines.setdefault(result.case.routine, {})
        column = ":".join(getattr(result.case, name) for name in column_names)
        row.setdefault(column, []).append(result)
    columns = tuple(sorted({c for each in found.values() for row in each.values() for c in row}))
    too_many = most_rows is not None and sum(map(len, found.values())) > most_rows
    share = max(1, (most_rows or 0) // max(1, len(found)) - FRAME)
    return VerdictGrid(
        columns,
        tuple(
            _section(program, found[program], columns, summary.strict, share if too_many else None)
            for program in sorted(found, key=program_sort_key)
        ),
    )


def _section(
    program: str, routines: dict[str, _Columns], columns: Sequence[str], strict: bool, most_bad: int | None
) -> GridSection:
    """Return the rows of a program; ``most_bad`` failed routines get a row each, and the rest one together."""
    results = [r for row in routines.values() for results in row.values() for r in results]
    rows = [_row(name, [routines[name]], columns, strict) for name in sorted(routines)]
    if most_bad is not None:
        bad = sorted((row for row in rows if row.failed), key=lambda row: -row.failed)
        own, more = ({row.name for row in part} for part in (bad[:most_bad], bad[most_bad:]))
        good = {row.name for row in rows if not row.failed}
        rows = [row for row in rows if row.name in own]
        for names, text in ((more, "more with failures"), (good, "without a failure")):
            if names:
                name = f"{plural(len(names), 'routine')} {text}" if len(names) > 1 else min(names)
                rows.append(_row(name, [routines[each] for each in names], columns, strict))
    return GridSection(program, format_totals(results), tuple(rows))


def _row(name: str, routines: Sequence[_Columns], columns: Sequence[str], strict: bool) -> GridRow:
    cells = [[r for routine in routines for r in routine.get(column, ())] for column in columns]
    return GridRow(name, tuple(_cell(results, strict) for results in cells))


def _cell(results: list[CaseResult], strict: bool) -> GridCell | None:
    if not results:
        return None
    counts = count_verdicts(results)
    failed = sum(not r.counts_as_healthy(strict) for r in results)
    return GridCell(counts, failed, 0 if strict else counts.get(str(Verdict.SKIPPED), 0))


MOST_SIZES = 9  #: columns of an environment, beyond which sizes stand together by their power of ten
LARGEST = 10.0  #: slowdown that is written as a number


@dataclass(frozen=True)
class HeatCell:
    tone: str
    text: str
    title: str


@dataclass(frozen=True)
class HeatRow:
    """A routine: a cell for each column, None where there is no such case."""

    routine: str
    cells: tuple[HeatCell | None, ...]
    search: str  #: what chooses its cases in the table of all cases


@dataclass(frozen=True)
class HeatSection:
    """The rows of one program."""

    program: str
    rows: tuple[HeatRow, ...]


@dataclass(frozen=True)
class HeatColumn:
    """A size, or sizes of one power of ten, in one environment."""

    place: str
    label: str
    search: str  #: what chooses its cases in the table of all cases


@dataclass(frozen=True)
class HeatMap:
    """One map. ``places`` are the environments, each with its number of columns."""

    columns: tuple[HeatColumn, ...]
    places: tuple[tuple[str, int], ...]
    sections: tuple[HeatSection, ...]

    @property
    def rows(self) -> int:
        return sum(len(section.rows) for section in self.sections)


def build_verdict_map(results: Sequence[CaseResult], strict: bool) -> HeatMap:
    """Build the map of verdicts, of what was to be measured: what was skipped has no cells."""
    ran = [result for result in results if result.verdict is not Verdict.SKIPPED]
    return _build(ran, lambda found: _show_verdicts(found, strict))


def build_limit_map(results: Sequence[CaseResult]) -> HeatMap:
    """Build the map of detection limits, of the cases that were judged with known scatter."""
    return _build(select_with_power(results), _show_limits)


def _show_verdicts(found: Sequence[CaseResult], strict: bool) -> HeatCell:
    worst = max((result.verdict for result in found), key=lambda verdict: verdict.gravity)
    failed = sum(not result.counts_as_healthy(strict) for result in found)
    tone = "bad" if failed else "good" if worst.tone == "good" else "fair"
    return HeatCell(tone, worst, format_counts(count_verdicts(found)))


def _show_limits(found: Sequence[CaseResult]) -> HeatCell:
    limits = [result.detectable for result in found]
    worst = None if None in limits else max(limit for limit in limits if limit is not None)
    shown = 100 * min(worst or 0.0, LARGEST)
    text = "∞" if worst is None else f"{'>' if worst > LARGEST else ''}{shown:.0f}"
    title = f"{format_percent(worst, 'nothing')}: the worst of {plural(len(found), 'case')}"
    return HeatCell(f"sight-{classify_detectable(worst)}", text, title)


def _build(results: Sequence[CaseResult], show: Callable[[Sequence[CaseResult]], HeatCell]) -> HeatMap:
    names = (*find_varying_fields(results, ("system", "partition")), "environment")
    classify = _choose_classes({result.case.bytes for result in results})
    found: dict[tuple[str, str], dict[tuple[str, int], list[CaseResult]]] = {}
    for result in results:
        place = ":".join(getattr(result.case, name) for name in names)
        row = found.setdefault((result.case.program, result.case.routine), {})
        row.setdefault((place, classify(result.case.bytes)), []).append(result)
    keys = sorted({key for row in found.values() for key in row})
    places = sorted({place for place, _ in keys})
    programs = sorted({program for program, _ in found}, key=program_sort_key)
    several = len(programs) > 1
    return HeatMap(
        tuple(_column(place, least, classify is _power_of_ten) for place, least in keys),
        tuple((place, sum(place == other for other, _ in keys)) for place in places),
        tuple(
            HeatSection(
                name if several else "",
                tuple(
                    HeatRow(
                        routine,
                        tuple(show(row[key]) if key in row else None for key in keys),
                        f"program={name} routine={routine}" if several else f"routine={routine}",
                    )
                    for (program, routine), row in sorted(found.items())
                    if program == name
                ),
            )
            for name in programs
        ),
    )


def _choose_classes(sizes: set[int]) -> Callable[[int], int]:
    return _power_of_ten if len(sizes) > MOST_SIZES else int


def _power_of_ten(count: int) -> int:
    return 10 ** (len(str(count)) - 1) if count else 0


def _column(place: str, least: int, powers: bool) -> HeatColumn:
    environment = place.rpartition(":")[2]
    sizes = f"bytes>={least} bytes<{10 * least}" if powers and least else f"bytes={least}"
    label = ("≥ " if powers and least else "") + size(least) if least else "–"
    return HeatColumn(place, label, f"environment={environment} {sizes}")
