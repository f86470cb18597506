"""The grid of verdicts: how many cases of each routine came to which verdict on each MPI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from postprocess.base.formats import plural
from postprocess.model.routines.mpicost import program_sort_key
from postprocess.model.verdict import UNASSERTED, CaseResult, Verdict, count_verdicts, find_varying_fields
from postprocess.report.overview import format_counts, format_totals
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
