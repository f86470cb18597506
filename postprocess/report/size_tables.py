"""Size by size: for each benchmark and layout a diagram over bytes, and a table with every value and its band.

This is how programs are shown that have one value for a case and many sizes, OSU and IMB. What failed or lies
outside its band comes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from postprocess.base.formats import plural
from postprocess.base.units import SECONDS
from postprocess.model.case import Case
from postprocess.model.routines.mpicost import OWN_PROGRAM, program_sort_key
from postprocess.model.verdict import CaseResult, Verdict, find_varying_fields
from postprocess.report.overview import format_totals
from postprocess.report.panels import Panel, build_lines, list_environments

MOST_PANELS = 160  #: on a page, for all programs together
MOST_CASES = 12_000  #: in tables on a page
CONDITIONS = ("system", "partition", "cache", "sync")

#: Routine, peer, conditions, processes, per node
_Place = tuple[str, int, tuple[str, ...], int, int]


@dataclass(frozen=True)
class Curve:
    """One benchmark at one layout with all MPIs. ``rows`` are sizes, with a case for each MPI or None."""

    title: str
    unit: str
    failed: int
    outside: int  #: of their bands, without being a failure
    columns: tuple[str, ...]
    rows: tuple[tuple[int, tuple[CaseResult | None, ...]], ...]
    panel: Panel

    @property
    def cases(self) -> int:
        """How many cases it shows."""
        return sum(result is not None for _, results in self.rows for result in results)


@dataclass(frozen=True)
class ProgramTables:
    """All benchmarks of one program: those with a finding, and the others."""

    name: str
    counts: str
    findings: tuple[Curve, ...]
    others: tuple[Curve, ...]
    left_out: str  #: what is not on the page, or empty


def build_program_tables(
    results: Sequence[CaseResult], strict: bool, names: Sequence[str]
) -> list[ProgramTables]:
    """Build the tables of a session's OSU and IMB benchmarks, program by program.

    ``names`` are the environments of the page in the order of their styles.
    A page bears so many diagrams and so many cases: beyond that, benchmarks without a finding are
    left out first, and every program says how many of its own are.
    """
    found: dict[str, list[CaseResult]] = {}
    for result in results:
        if result.case.program != OWN_PROGRAM:
            found.setdefault(result.case.program, []).append(result)
    styles = {name: n for n, name in enumerate(names)}
    programs = sorted(found, key=program_sort_key)
    curves = {name: _curves(found[name], styles, strict) for name in programs}
    shown = _fitting([curve for name in programs for curve in curves[name]])
    return [_program(name, found[name], curves[name], shown) for name in programs]


def _program(
    name: str, results: Sequence[CaseResult], curves: Sequence[Curve], shown: set[int]
) -> ProgramTables:
    kept = [curve for curve in curves if id(curve) in shown]
    missing = len(curves) - len(kept)
    remark = f"{plural(missing, 'further diagram')} not shown; every case is in summary.json"
    return ProgramTables(
        name,
        format_totals(results),
        tuple(curve for curve in kept if _worth(curve)),
        tuple(curve for curve in kept if not _worth(curve)),
        remark if missing else "",
    )


def _fitting(curves: Sequence[Curve]) -> set[int]:
    """Return the curves that fit on a page, those with findings first, by identity."""
    room = MOST_CASES
    chosen: set[int] = set()
    for curve in sorted(curves, key=lambda c: (-c.failed, -c.outside))[:MOST_PANELS]:
        room -= curve.cases
        if room < 0 and chosen:
            break
        chosen.add(id(curve))
    return chosen


def _worth(curve: Curve) -> bool:
    return bool(curve.failed or curve.outside)


def _curves(results: Sequence[CaseResult], styles: Mapping[str, int], strict: bool) -> list[Curve]:
    """Return a curve for each benchmark, layout and other difference, by name; none where all is skipped."""
    several = len({result.case.layout for result in results}) > 1
    routines: dict[str, list[CaseResult]] = {}
    for result in results:
        routines.setdefault(result.case.routine, []).append(result)
    groups: dict[_Place, list[CaseResult]] = {}
    for own in routines.values():
        conditions = find_varying_fields(own, CONDITIONS)
        for result in own:
            groups.setdefault(_place(result.case, conditions), []).append(result)
    return [
        _curve(groups[place], place, several, styles, strict)
        for place in sorted(groups)
        if any(result.verdict is not Verdict.SKIPPED for result in groups[place])
    ]


def _place(case: Case, conditions: Sequence[str]) -> _Place:
    """Return what the cases of one diagram share: the routine, what it was measured under, and the layout.

    Of its conditions only those that differ among the cases of the routine have a name.
    """
    about = tuple(getattr(case, name) for name in conditions)
    return (case.routine, case.peer, about, case.processes, case.per_node)


def _curve(
    results: Sequence[CaseResult],
    place: _Place,
    several: bool,
    styles: Mapping[str, int],
    strict: bool,
) -> Curve:
    routine, _, about, *_ = place
    title = [routine, *about, *([_layout(results[0])] if several else [])]
    unit = next((each.unit for each in results if each.value is not None), SECONDS)
    columns = tuple(list_environments(results))
    failed = {r.case for r in results if not r.counts_as_healthy(strict)}
    placed = {(r.case.bytes, r.case.environment): r for r in results}
    sizes = sorted({size for size, _ in placed})
    return Curve(
        title=", ".join(title),
        unit=unit,
        failed=len(failed),
        outside=sum(r.beyond for r in results if r.case not in failed),
        columns=columns,
        rows=tuple((size, tuple(placed.get((size, c)) for c in columns)) for size in sizes),
        panel=Panel(", ".join(title), "bytes", build_lines(results, "bytes", styles, strict), unit),
    )


def _layout(result: CaseResult) -> str:
    case = result.case
    words = plural(case.processes, "process", "es")
    return words if case.per_node == case.processes else f"{words} ({case.per_node} per node)"
