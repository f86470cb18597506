"""What small diagrams show: panels of lines, and the cases in them. How they are drawn is elsewhere."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from postprocess.base.formats import SECONDS
from postprocess.model.verdict import CaseResult

MOST_PANELS = 4  #: side by side
X_LABELS = {
    "processes": "processes",
    "bytes": "bytes",
    "buffer": "buffer of the report",
    "peer": "rank of the partner",
}
SIZED = ("bytes", "buffer")  #: of these those that are written as sizes
#: Scales of a panel: both logarithmic; y linear from 0; x linear too
LOGARITHMIC, FROM_ZERO, LINEAR = "logarithmic", "from zero", "linear"
MILLISECONDS = "ms"  #: the unit of a panel whose values are such


@dataclass(frozen=True)
class Point:
    """One case in a line, in the unit of its panel; ``value`` is None where nothing was measured."""

    x: int
    value: float | None
    band: tuple[float, float] | None
    failed: bool


@dataclass(frozen=True)
class PanelLine:
    """The cases of one environment, ordered by x. ``style`` numbers its colour and marker."""

    name: str
    style: int
    points: tuple[Point, ...]
    modelled: bool = False  #: whether a model says so, and nothing was measured


@dataclass(frozen=True)
class Panel:
    """One small diagram. ``x`` is of :data:`X_LABELS`."""

    title: str
    x: str
    lines: tuple[PanelLine, ...]
    unit: str = SECONDS
    scale: str = LOGARITHMIC


def list_environments(results: Iterable[CaseResult]) -> list[str]:
    return sorted({result.case.environment for result in results})


def build_lines(
    results: Iterable[CaseResult], x: str, styles: Mapping[str, int], strict: bool
) -> tuple[PanelLine, ...]:
    found: dict[str, list[Point]] = {}
    for result in sorted(results, key=lambda r: r.case):
        failed = not result.counts_as_healthy(strict)
        point = Point(getattr(result.case, x), result.value, result.band, failed)
        found.setdefault(result.case.environment, []).append(point)
    return tuple(
        PanelLine(name, styles[name], tuple(sorted(points, key=lambda p: p.x)))
        for name, points in found.items()
    )


def list_banded(points: Sequence[Point]) -> list[list[tuple[int, Point]]]:
    """List the stretches of neighbours that all have a band, each point with its place."""
    stretches = groupby(enumerate(points), lambda each: bool(each[1].band and each[1].band[0] > 0))
    return [list(stretch) for banded, stretch in stretches if banded]


def thin_values(values: Sequence[int], most: int) -> list[int]:
    """Choose at most ``most`` of the values, evenly, the first and the last among them."""
    if len(values) <= most:
        return list(values)
    if most == 1:
        return [values[-1]]
    step = (len(values) - 1) / (most - 1)
    return [values[round(n * step)] for n in range(most)]


MOST_TICKS = 6


def choose_counting_ticks(last: int) -> list[int]:
    """Choose ticks of a count: 1, and the multiples of a round number up to ``last``."""
    step = next(s * 10**e for e in range(18) for s in (1, 2, 5) if last <= MOST_TICKS * s * 10**e)
    return sorted({1, *range(step, last + 1, step)})


def choose_log_ticks(low: float, high: float) -> list[float]:
    """Return a few round values, by the finest steps per decade that give no more than ``MOST_TICKS``."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 1.5, 2, 3, 4, 5, 7), (1, 2, 5), (1, 3), (1,)):
        ticks = [s * 10.0**d for d in decades for s in steps if low <= s * 10.0**d <= high]
        if len(ticks) <= MOST_TICKS:
            return ticks
    return [ticks[n] for n in thin_values(range(len(ticks)), MOST_TICKS)]


def choose_linear_ticks(low: float, high: float, most_steps: int) -> list[float]:
    """Choose round values between two ends, by the finest step of which no more than ``most_steps`` fit in."""
    power = 10.0 ** math.floor(math.log10((high - low) / most_steps))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if (high - low) / (s * power) <= most_steps)
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def write_tick(value: float) -> str:
    if value >= 10_000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:g}"


def find_densest_layouts(results: Iterable[CaseResult]) -> dict[tuple[str, str, int], int]:
    """Find the most processes per node that a partition was given, for each number of processes."""
    most: dict[tuple[str, str, int], int] = {}
    for result in results:
        place = (result.case.system, result.case.partition, result.case.processes)
        most[place] = max(most.get(place, 0), result.case.per_node)
    return most
