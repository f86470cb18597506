"""Two maps of a session, routine by size: the verdicts, and the slowdowns that would be seen.

A cell holds all cases of a routine, size and environment, and shows the worst of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from postprocess.base.formats import format_percent, plural, size
from postprocess.model.routines.mpicost import program_sort_key
from postprocess.model.verdict import CaseResult, Verdict, count_verdicts, find_varying_fields
from postprocess.report.overview import format_counts
from postprocess.report.sensitivity import classify_detectable, select_with_power

MOST_SIZES = 9  #: columns of an environment, beyond which sizes stand together by their power of ten
LARGEST = 10.0  #: slowdown that is written as a number


@dataclass(frozen=True)
class HeatCell:
    """What a cell shows; ``tone`` is a class of the style sheet."""

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
        """How many routines it has."""
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
