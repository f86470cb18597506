"""Alarms as they came against alarms as chance would have them, month by month."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scipy.special import gammaincinv

from postprocess.alarms import FALSE, REAL, Night

CONFIDENCE = 0.95
MOST_CLEARED = 10
OFTEN = 2  #: nights on which a case is cleared before it is named


@dataclass(frozen=True)
class Tally:
    """A count against its prediction."""

    predicted: float
    counted: int
    dispersion: float  #: variance between nights, in that of independent events; 1 or more

    @property
    def interval(self) -> tuple[float, float]:
        """Where the expectation behind the count lies with 95% confidence.

        Exact for events by chance (Garwood, Biometrika 28, 1936), stretched by the dispersion: nights have
        effects of their own, and such events come together.
        """
        low, high = poisson_interval(self.counted / self.dispersion)
        return self.dispersion * low, self.dispersion * high

    @property
    def verdict(self) -> str:
        """``as predicted``, ``more`` or ``fewer``."""
        low, high = self.interval
        if low <= self.predicted <= high:
            return "as predicted"
        return "more" if self.predicted < low else "fewer"


@dataclass(frozen=True)
class Month:
    """The nights of a month, or of all."""

    name: str
    nights: int
    judged: int
    screened: Tally
    regressed: Tally
    common: int  #: nights on which many cases were slow by one cause
    real: int  #: alarms that a person called so
    false: int

    @property
    def unmarked(self) -> int:
        """Alarms of which nobody said anything."""
        return self.regressed.counted - self.real - self.false


def months(nights: Iterable[Night]) -> list[Month]:
    """Each month, and all of them together at the end."""
    found: dict[str, list[Night]] = {}
    for night in nights:
        found.setdefault(night.started_utc[:7], []).append(night)
    every = [night for some in found.values() for night in some]
    named = [month(name, found[name]) for name in sorted(found)]
    return [*named, month("all", every)] if len(named) > 1 else named


def month(name: str, nights: Sequence[Night]) -> Month:
    """The sum of some nights."""
    screened = [(night.predicted_screened, night.screened) for night in nights]
    regressed = [(night.predicted_regressed, len(night.alarms)) for night in nights]
    return Month(
        name,
        len(nights),
        sum(night.judged for night in nights),
        tally(screened),
        tally(regressed),
        sum(bool(night.common) for night in nights),
        sum(night.marked(REAL) for night in nights),
        sum(night.marked(FALSE) for night in nights),
    )


def tally(nights: Sequence[tuple[float, int]]) -> Tally:
    """The sum of (predicted, counted) of some nights.

    The dispersion is Pearson's, about the rate that the nights have themselves: a prediction that is wrong
    must not excuse itself by it.
    """
    predicted, counted = sum(p for p, _ in nights), sum(c for _, c in nights)
    if len(nights) < 2 or not counted or not predicted:
        return Tally(predicted, counted, 1.0)
    rate = counted / predicted
    due = [(rate * p, c) for p, c in nights if p]
    spread = sum((c - e) ** 2 / e for e, c in due) / (len(nights) - 1)
    return Tally(predicted, counted, max(spread, 1.0))


def poisson_interval(count: float) -> tuple[float, float]:
    """The expectations under which so few, or so many, events are not less probable than 2.5%."""
    tail = (1 - CONFIDENCE) / 2
    low = float(gammaincinv(count, tail)) if count else 0.0
    return low, float(gammaincinv(count + 1, 1 - tail))


def often_cleared(nights: Iterable[Night]) -> list[tuple[str, int]]:
    """Cases that looked slow on several nights and were not: their references may be of another time."""
    counts = Counter(key for night in nights for key in night.cleared)
    often = [(key, number) for key, number in counts.items() if number >= OFTEN]
    return sorted(often, key=lambda each: (-each[1], each[0]))[:MOST_CLEARED]
