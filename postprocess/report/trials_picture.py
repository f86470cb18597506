"""The trials of a case as a picture, and the signs of its legend: SVG in the style of a night's page.

No matplotlib: to import it takes longer than to draw all trials of a page.
"""

import html
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from markupsafe import Markup

from postprocess.base import formats
from postprocess.base.sanitize import sanitize_line
from postprocess.report import panels
from postprocess.report.trial_selection import CaseTrials, LaunchTrials

WIDTH, HEIGHT = 300, 205
LEFT, RIGHT, TOP, BOTTOM = 45, 291, 24, 166
MICRO = 1e6
LOG_FACTOR = 6.0  #: trials further apart than this are shown on a logarithmic axis
MARGIN = 1.18  #: beyond the values, as a factor
ROOM = 0.08  #: beyond the values of a linear axis, as a share of what is between them
ALIKE = 1e-4  #: values within this factor are drawn as equal: they are rounded, and their ticks would be alike
MOST_STEPS = 4  #: of a linear axis
FAR = 10.0  #: a band that reaches further out than this factor is cut off
GAP = 5  #: trials of room between two launches
#: Path of each kind of trial, from its middle
MARKS = {"kept": "h0", "spike": "m0-4l4 7h-8z", "first": "m-3-3h6v6h-6z", "late": "m-3-3l6 6m0-6l-6 6"}
LEVELS = ("steady", "headline")  #: of each launch
KEY_WIDTH, KEY_HEIGHT = 28, 14


def draw_trials(shown: CaseTrials) -> str:
    """Draw the trials of a case in the order they were run, one launch after the other.

    What does not enter the headline is marked by its own sign; steady time and headline of each launch,
    the reference and its band are lines and a shade.
    """
    result = shown.result
    find_y, ticks = _scale(shown)
    name = f"{result.case.label} {result.case.bytes} bytes, {result.case.environment}"
    spoken = f"Trials of {name}, steady time {formats.microseconds(result.value)} microseconds"
    grid = "".join(f"M{LEFT} {find_y(tick)}H{RIGHT}" for tick in ticks)
    inside = [_path("grid", grid)]
    inside += [_text(LEFT - 4, find_y(tick) + 3, "y", panels.write_tick(tick)) for tick in ticks]
    inside += [
        _text(LEFT - 4, TOP - 7, "y", "µs"),
        _text((LEFT + RIGHT) // 2, HEIGHT - 6, "x", "trials in order"),
    ]
    if result.band:
        low, high = (find_y(end * MICRO) for end in result.band)
        inside.append(_path("band", f"M{LEFT} {high}H{RIGHT}V{low}H{LEFT}z"))
    if result.reference:
        inside.append(_path("reference", f"M{LEFT} {find_y(result.reference * MICRO)}H{RIGHT}"))
    inside += _draw_launches(shown.launches, find_y)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}"'
    label = html.escape(sanitize_line(spoken))
    return f'<svg class="trials" {size} role="img" aria-label="{label}">{"".join(inside)}</svg>'


def _scale(shown: CaseTrials) -> tuple[Callable[[float], int], list[float]]:
    """Return the height of each value, and the ticks, in microseconds; what is beyond an end lies on it."""
    result = shown.result
    values = [float(time) for launch in shown.launches for time in launch.times]
    least, most = min(values), max(values)
    ends = [*(result.band or ()), *([result.reference] if result.reference else [])]
    near = [*values, *(min(max(end, least / FAR), most * FAR) for end in ends)]
    low, high = min(near) * MICRO, max(near) * MICRO
    if logarithmic := high > LOG_FACTOR * low > 0:
        low, high = low / MARGIN, high * MARGIN
        ticks = panels.choose_log_ticks(low, high)
    else:
        room = (ROOM * (high - low) if high - low > ALIKE * high else 0.1 * high) or 1.0
        low, high = max(0.0, low - room), high + room
        ticks = panels.choose_linear_ticks(low, high, MOST_STEPS)

    def find_y(value: float) -> int:
        inside = min(max(value, low), high)
        share = math.log(inside / low) / math.log(high / low) if logarithmic else (inside - low) / (high - low)
        return round(BOTTOM - (BOTTOM - TOP) * share)

    return find_y, ticks


def _draw_launches(launches: Sequence[LaunchTrials], find_y: Callable[[float], int]) -> Iterator[str]:
    starts = [1]
    for launch in launches:
        starts.append(starts[-1] + launch.times.size + GAP)
    first, last = 1 - GAP / 2, starts[-1] - GAP / 2 - 1

    def find_x(trial: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * (trial - first) / (last - first), 1)

    for level in LEVELS:
        heights = [find_y(getattr(launch, level) * MICRO) for launch in launches]
        ends = [(find_x(start - GAP / 2), find_x(end - GAP / 2 - 1)) for start, end in pairwise(starts)]
        drawn = (f"M{left:g} {y}H{right:g}" for (left, right), y in zip(ends, heights, strict=True))
        yield _path(level, "".join(drawn))
    for kind, mark in MARKS.items():
        places = [
            f"M{find_x(start + int(n)):g} {find_y(float(launch.times[n]) * MICRO)}{mark}"
            for launch, start in zip(launches, starts, strict=False)
            for n in launch.masks()[kind].nonzero()[0]
        ]
        if places:
            yield _path(kind, "".join(places))
    if len(launches) == 1:
        ticks = {float(tick): str(tick) for tick in panels.choose_counting_ticks(launches[0].times.size)}
    else:
        middles = [start + (la.times.size - 1) / 2 for la, start in zip(launches, starts, strict=False)]
        ticks = {place: f"launch {la.launch}" for la, place in zip(launches, middles, strict=True)}
    for place, label in ticks.items():
        yield _text(find_x(place), BOTTOM + 14, "x", label)


def draw_sign_keys() -> dict[str, Markup]:
    """Draw every sign by what it means: trials, levels, the reference and its band."""
    middle = KEY_HEIGHT // 2
    drawn = {kind: f"M{KEY_WIDTH // 2} {middle}{mark}" for kind, mark in MARKS.items()}
    drawn |= dict.fromkeys((*LEVELS, "reference"), f"M1 {middle}H{KEY_WIDTH - 1}")
    drawn["band"] = f"M1 1H{KEY_WIDTH - 1}V{KEY_HEIGHT - 1}H1z"
    start = f'<svg class="trials" viewBox="0 0 {KEY_WIDTH} {KEY_HEIGHT}" aria-hidden="true">'
    return {name: Markup(f"{start}{_path(name, path)}</svg>") for name, path in drawn.items()}


def _path(kind: str, path: str) -> str:
    return f'<path class="{kind}" d="{path}"/>'


def _text(x: float, y: int, kind: str, text: str) -> str:
    return f'<text x="{x:g}" y="{y}" class="{kind}">{html.escape(sanitize_line(text))}</text>'
