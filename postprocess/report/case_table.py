"""All cases of a session as rows that open: what each shows closed, and what is inside.

A page of thousands of cases must open at once, so a row costs few bytes: its history is one small picture that
grows when the row opens, and its diagrams are those of the page, shown again.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from postprocess.base import formats
from postprocess.base.formats import find_better_direction, plural, quantity
from postprocess.base.grouping import group_pairs
from postprocess.model.verdict import HEALTHY, WORTH_A_LOOK, CaseResult, Verdict, find_varying_fields
from postprocess.report.curves import MANY_CASES, Curves, PlacedCase
from postprocess.report.first_screen import Past, Step, find_epochs
from postprocess.report.overview import sort_by_severity
from postprocess.report.trial_selection import CaseTrials
from postprocess.results.query import Night

STEP = 2  #: units of a night
HEIGHT = 40
LEAST_SPAN = 0.2  #: of the logarithm: smaller changes do not fill the height
FAR = 1.5  #: how far beyond the values, on the logarithm, a band is shown at most
TOLD_EPOCHS = 3


def draw_history(nights: Sequence[Night], steps: Sequence[Step], every: int = 1, axes: bool = True) -> Markup:
    """Draw values, bands, epochs, steps, and what was not well, night by night.

    Upwards is slower in every unit. Empty where there are not two values.

    :param every: of so many nights the slowest stands for all
    :param axes: whether values and dates stand beside it when its row is open
    """
    shown = [_find_slowest(nights[n : n + every]) for n in range(0, len(nights), every)]
    heights = _Heights(shown)
    if not heights.known:
        return Markup("")
    epochs = "".join(f"M{STEP * (n // every)} 0V{HEIGHT}" for n in find_epochs(nights))
    places = {night.session: n for n, night in enumerate(shown)}
    stepped = [places[step.session] for step in steps if step.session in places]
    parts = {
        "b": "".join(_draw_bands(shown, heights)),
        "e": epochs,
        "t": "".join(f"M{STEP * n} 0V{HEIGHT}" for n in stepped),
        "": _draw_course(shown, heights),
        "w": "".join(_dots(shown, heights, good=True)),
        "x": "".join(_dots(shown, heights, good=False)),
    }
    paths = (f'<path{f" class={kind}" if kind else ""} d="{d}"/>' for kind, d in parts.items() if d)
    beside = _write_axes(shown, heights) if axes else ""
    return Markup(f"<svg style=--n:{len(shown) - 1}>{''.join(paths)}{beside}</svg>")


def describe_history(nights: Sequence[Night], steps: Sequence[Step]) -> str:
    """Describe the nights of a case in one line: from when to when, between which values, and what changed."""
    values = [night.value for night in nights if night.value]
    if len(values) < 2:
        return ""
    unit = nights[-1].unit
    told = [
        f"{plural(len(nights), 'night')}, {nights[0].day} to {nights[-1].day}: "
        f"{quantity(min(values), unit)} to {quantity(max(values), unit)}"
    ]
    told += [step.text for step in steps]
    epochs = find_epochs(nights)
    if epochs:
        days = ", ".join(nights[n].day for n in epochs[-TOLD_EPOCHS:])
        told.append(f"another reference or MPI from {days}")
    return _plain("; ".join(told))


def choose_interval(past: Past, keys: Sequence[str], room: int) -> int:
    """Choose of how many nights one is drawn, so that all histories together have no more points than room."""
    points = sum(len(past.nights.get(key, ())) for key in keys)
    return max(1, math.ceil(points / room))


def _find_slowest(nights: Sequence[Night]) -> Night:
    """Find the slowest of some nights, or the last one if none has a value."""

    def cost(night: Night) -> float:
        value = night.value or 0.0
        lower_is_better = find_better_direction(night.unit) == "lower"
        return value if lower_is_better or not value else 1 / value

    return max(reversed(nights), key=cost)


class _Heights:
    """Where values lie between the upper and the lower edge."""

    def __init__(self, nights: Sequence[Night]) -> None:
        logs = [math.log(night.value) for night in nights if night.value]
        self.known = len(logs) > 1
        if not self.known:
            return
        ends = [
            min(max(math.log(end), min(logs) - FAR), max(logs) + FAR)
            for night in nights
            for end in night.band or ()
            if end > 0
        ]
        low, high = min([*logs, *ends]), max([*logs, *ends])
        middle, span = (low + high) / 2, max(high - low, LEAST_SPAN)
        self.low, self.span = middle - span / 2, span
        self.slower_up = find_better_direction(nights[-1].unit) == "lower"

    def find(self, value: float) -> int:
        """Find the height of a value, counted from above."""
        share = (math.log(value) - self.low) / self.span if value > 0 else 0.0
        share = min(max(share, 0.0), 1.0)
        return 1 + round((HEIGHT - 2) * (1 - share if self.slower_up else share))

    def read(self, height: int) -> float:
        """Read the value at a height."""
        share = (height - 1) / (HEIGHT - 2)
        return math.exp(self.low + self.span * (1 - share if self.slower_up else share))


def _write_axes(nights: Sequence[Night], heights: _Heights) -> str:
    """Write values at three heights, and the first day, the last one and one between, by their places in %."""
    values = (
        f"<text style=--y:{y}>{_plain(quantity(heights.read(y), nights[-1].unit))}</text>"
        for y in (1, HEIGHT // 2, HEIGHT - 1)
    )
    last = len(nights) - 1
    days = (
        f"<text style=--x:{100 * n / last:.3g}>{nights[n].day}</text>" for n in sorted({0, last // 2, last})
    )
    return f"{''.join(values)}<g>{''.join(days)}</g>"


def _draw_course(nights: Sequence[Night], heights: _Heights) -> str:
    """Return the course of the values, relative from night to night; a night without one breaks it."""
    course, last = "", None
    for n, night in enumerate(nights):
        if not night.value:
            last = None
            continue
        y = heights.find(night.value)
        if last is None:
            course += f"M{STEP * n} {y}"
            course += "h0" if n + 1 == len(nights) else ""
        else:
            begun = course[-1:].isdigit() and "l" in course.rpartition("M")[2]
            space = " " if y >= last else ""
            course += f"{' ' if begun else 'l'}{STEP}{space}{y - last}"
        last = y
    return course


def _draw_bands(nights: Sequence[Night], heights: _Heights) -> Iterator[str]:
    """Yield a box for each stretch of nights with the same band."""

    def ends(numbered: tuple[int, Night]) -> tuple[int, int] | None:
        band = numbered[1].band
        return (heights.find(band[0]), heights.find(band[1])) if band and band[0] > 0 else None

    for limits, run in groupby(enumerate(nights), ends):
        if limits is not None:
            first, *_ = some = [n for n, _ in run]
            yield f"M{STEP * first - 1} {limits[0]}V{limits[1]}h{STEP * len(some)}V{limits[0]}z"


def _dots(nights: Sequence[Night], heights: _Heights, good: bool) -> Iterator[str]:
    """Yield a dot for each night that failed, or for each that was well and worth a look."""
    for n, night in enumerate(nights):
        well = night.verdict in HEALTHY
        if well == good and (not well or night.verdict in WORTH_A_LOOK):
            yield f"M{STEP * n} {heights.find(night.value) if night.value else HEIGHT - 1}h0"


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
    columns: tuple[CaseColumn, ...]
    rows: tuple[CaseRow, ...]
    left_out: int
    interval: int  #: of so many nights of healthy cases one is drawn

    @property
    def drawn(self) -> bool:
        """Whether trials of a case are drawn."""
        return any(row.trials for row in self.rows)


def build_case_table(
    results: Sequence[CaseResult], strict: bool, curves: Curves, past: Past, trials: Mapping[str, CaseTrials]
) -> CaseTable:
    """Build the table of what was to be measured: the worst first, and what was skipped not at all."""
    ran = sort_by_severity(result for result in results if result.verdict is not Verdict.SKIPPED)
    shown = ran[:MOST_CASES]
    lean = len(shown) > MOST_IN_FULL
    columns = _choose_columns(shown, lean)
    quiet = [result.case.key for result in shown if lean and not _find_tone(result, strict)]
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
                draw_history(nights, steps, every, full),
                describe_history(nights, steps) if full else "",
            )
        )
    widths = (
        max([len(column.label) + 2, *(len(row.cells[n]) for row in rows)]) for n, column in enumerate(columns)
    )
    sized = (
        CaseColumn(c.name, c.kind, c.label, c.write, min(width, WIDEST))
        for c, width in zip(columns, widths, strict=True)
    )
    return CaseTable(tuple(sized), tuple(rows), len(ran) - len(shown), interval)


def _find_tone(result: CaseResult, strict: bool) -> str:
    if not result.counts_as_healthy(strict):
        return "bad"
    return "fair" if result.verdict in WORTH_A_LOOK or result.expected else ""


def _choose_columns(results: Sequence[CaseResult], lean: bool) -> list[CaseColumn]:
    dense = all(result.case.per_node == result.case.processes for result in results)
    layout: Write = (lambda r: str(r.case.processes)) if dense else (lambda r: r.case.layout)
    varying = find_varying_fields(results, PLACES) + _find_conditions(results)
    one_unit = len({result.unit for result in results}) < 2
    amount: Callable[[float | None, str], str] = formats.number if one_unit else formats.quantity
    unit = formats.SHOWN[results[0].unit][1].replace("us", "µs") if results and one_unit else ""
    value = f"value, {unit}" if unit else "value"
    reference = CaseColumn("reference", "number", "reference", lambda r: formats.number(r.reference, r.unit))
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
    own = group_pairs((result.case.program, result) for result in results)
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
