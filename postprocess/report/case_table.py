"""All cases of a session as rows that open: what each shows closed, and what is inside.

A page of thousands of cases must open at once, so a row costs few bytes: its history is one small picture that
grows when the row opens, and its diagrams are those of the page, shown again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from postprocess.base import formats
from postprocess.model.verdict import CaseResult, Verdict, find_varying_fields
from postprocess.report.curves import MANY_CASES, Curves, PlacedCase
from postprocess.report.history_svg import choose_interval, describe_history, draw_history
from postprocess.report.overview import sort_by_severity
from postprocess.report.past import Past
from postprocess.report.trial_selection import CaseTrials

PLACES = ("program", "system", "partition")
CONDITIONS = ("cache", "sync")
MOST_CASES = 6000  #: on a page, the worst first
MOST_POINTS = 60_000  #: of the histories of those cases
#: Beyond which healthy cases have one diagram, no words, and no name to link to
MOST_IN_FULL = MANY_CASES
WIDEST = 24  #: letters of a column

Write = Callable[[CaseResult], str]


@dataclass(frozen=True)
class CaseColumn:
    """A column. ``kind`` is ``text``, or ``number`` of which the first number counts."""

    name: str  #: by which it is searched for
    kind: str
    label: str
    write: Write
    width: int = 0  #: in letters


@dataclass(frozen=True)
class CaseRow:
    """A case: its cells, and what it shows when it is open."""

    result: CaseResult
    name: str  #: on the page; empty where it shows next to nothing
    tone: str  #: ``bad``, ``fair``, or empty
    cells: tuple[str, ...]
    places: Sequence[PlacedCase]
    full: bool
    trials: CaseTrials | None
    history: Markup  #: its picture
    told: str  #: the same in words


@dataclass(frozen=True)
class CaseTable:
    """The table of a page."""

    columns: tuple[CaseColumn, ...]
    rows: tuple[CaseRow, ...]
    left_out: int
    interval: int  #: of so many nights of healthy cases one is drawn

    @property
    def drawn(self) -> bool:
        """Whether trials of a case are drawn."""
        return any(row.trials for row in self.rows)


def build_case_table(
    results: Sequence[CaseResult],
    strict: bool,
    curves: Curves,
    past: Past,
    trials: Mapping[str, CaseTrials],
) -> CaseTable:
    """Build the table of what was to be measured: the worst first, and what was skipped not at all."""
    ran = sort_by_severity(each for each in results if each.verdict is not Verdict.SKIPPED)
    shown = ran[:MOST_CASES]
    lean = len(shown) > MOST_IN_FULL
    columns = _choose_columns(shown, lean)
    quiet = [each.case.key for each in shown if lean and not _find_tone(each, strict)]
    interval = choose_interval(past, quiet, MOST_POINTS) if quiet else 1
    rows = []
    for number, each in enumerate(shown):
        key, tone = each.case.key, _find_tone(each, strict)
        full = bool(tone) or not lean or key in trials
        places = curves.places.get(each.case, ())
        nights, steps = past.nights.get(key, ()), past.steps.get(key, ())
        every = interval if lean and not tone and not steps else 1
        rows.append(
            CaseRow(
                each,
                f"c{number}" if full else "",
                tone,
                tuple(column.write(each) for column in columns),
                places if full else places[:1],
                full,
                trials.get(key),
                draw_history(nights, steps, every),
                describe_history(nights, steps) if full else "",
            )
        )
    widths = (
        max([len(column.label) + 2, *(len(row.cells[n]) for row in rows)])
        for n, column in enumerate(columns)
    )
    sized = (
        CaseColumn(c.name, c.kind, c.label, c.write, min(width, WIDEST))
        for c, width in zip(columns, widths, strict=True)
    )
    return CaseTable(tuple(sized), tuple(rows), len(ran) - len(shown), interval)


def _find_tone(result: CaseResult, strict: bool) -> str:
    if not result.counts_as_healthy(strict):
        return "bad"
    looked_at = (Verdict.SUSPECT, Verdict.FAST)
    return "fair" if result.verdict in looked_at or result.expected else ""


def _choose_columns(results: Sequence[CaseResult], lean: bool) -> list[CaseColumn]:
    dense = all(each.case.per_node == each.case.processes for each in results)
    layout: Write = (lambda r: str(r.case.processes)) if dense else (lambda r: r.case.layout)
    varying = find_varying_fields(results, PLACES) + _find_conditions(results)
    one_unit = len({each.unit for each in results}) < 2
    amount: Callable[[float | None, str], str] = formats.number if one_unit else formats.quantity
    unit = formats.SHOWN[results[0].unit][1].replace("us", "µs") if results and one_unit else ""
    value = f"value, {unit}" if unit else "value"
    reference = CaseColumn(
        "reference", "number", "reference", lambda r: formats.number(r.reference, r.unit)
    )
    return [
        CaseColumn("verdict", "text", "verdict", lambda r: str(r.verdict)),
        CaseColumn("routine", "text", "routine", lambda r: r.case.label),
        CaseColumn("bytes", "number", "bytes", lambda r: str(r.case.bytes)),
        CaseColumn("p", "number", "p", layout),
        CaseColumn("environment", "text", "environment", lambda r: r.case.environment),
        *(CaseColumn(name, "text", name, _read_field(name)) for name in varying),
        CaseColumn("value", "number", value, lambda r: _plain(amount(r.value, r.unit))),
        *([] if lean else [reference]),
        CaseColumn("slowdown", "number", "slowdown", lambda r: formats.factor(r.slowdown)),
        CaseColumn("limit", "number", "limit", _write_limit),
    ]


def _find_conditions(results: Sequence[CaseResult]) -> tuple[str, ...]:
    """Find the conditions in which the cases of one program differ: elsewhere the program tells them."""
    own: dict[str, list[CaseResult]] = {}
    for each in results:
        own.setdefault(each.case.program, []).append(each)
    found = {name for each in own.values() for name in find_varying_fields(each, CONDITIONS)}
    return tuple(name for name in CONDITIONS if name in found)


def _read_field(name: str) -> Write:
    return lambda result: str(getattr(result.case, name))


def _plain(text: str) -> str:
    return text.replace(" us", " µs")


def _write_limit(result: CaseResult) -> str:
    """Write the detection limit: that of a judged case that sees nothing is endless."""
    if result.detectable is not None:
        return formats.format_percent(min(result.detectable, 10.0))
    return formats.DASH if result.reference is None else "∞"
