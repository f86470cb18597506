"""The history of a case as one small picture of few bytes, which grows when its row opens.

A night is two units wide, and heights are whole units, so that thousands of histories fit a page. The
style sheet says how large a unit is: in a closed row half a pixel high.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from markupsafe import Markup

from postprocess.base.formats import plural, quantity
from postprocess.base.units import find_better_direction
from postprocess.model.verdict import HEALTHY, Verdict
from postprocess.report.past import Past, Step, find_epochs
from postprocess.results.nights import Night

STEP = 2  #: units of a night
HEIGHT = 40
LEAST_SPAN = 0.2  #: of the logarithm: smaller changes do not fill the height
FAR = 1.5  #: how far beyond the values, on the logarithm, a band is shown at most
TOLD_EPOCHS = 3


def draw_history(nights: Sequence[Night], steps: Sequence[Step], every: int = 1) -> Markup:
    """Draw values, bands, epochs, steps, and what was not well, night by night.

    Upwards is slower in every unit. Empty where there are not two values.

    :param every: of so many nights the slowest stands for all
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
    return Markup(f"<svg>{''.join(paths)}</svg>")


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
    return "; ".join(told).replace(" us", " µs")


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
    worth = (Verdict.SUSPECT, Verdict.FAST)
    for n, night in enumerate(nights):
        well = night.verdict in HEALTHY
        if well == good and (not well or night.verdict in worth):
            yield f"M{STEP * n} {heights.find(night.value) if night.value else HEIGHT - 1}h0"
