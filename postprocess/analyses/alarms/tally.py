"""Count alarms month by month, and compare with the number expected by chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scipy.special import gammaincinv

from postprocess.analyses.alarms.log import FALSE, REAL, NightAlarms

CONFIDENCE = 0.95
MOST_CLEARED = 10
OFTEN = 2  #: nights on which a case is cleared before it is named


@dataclass(frozen=True)
class AlarmCount:
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
        low, high = compute_poisson_interval(self.counted / self.dispersion)
        return self.dispersion * low, self.dispersion * high

    @property
    def verdict(self) -> str:
        """``as predicted``, ``more`` or ``fewer``."""
        low, high = self.interval
        if low <= self.predicted <= high:
            return "as predicted"
        return "more" if self.predicted < low else "fewer"


@dataclass(frozen=True)
class AlarmMonth:
    """The nights of a site in a month, or in all."""

    site: str
    name: str
    nights: int
    judged: int
    screened: AlarmCount
    regressed: AlarmCount
    common: int  #: nights on which many cases were slow by one cause
    real: int  #: alarms that a person called so
    false: int

    @property
    def unmarked(self) -> int:
        """Alarms without a mark."""
        return self.regressed.counted - self.real - self.false


def tally_by_month(nights: Iterable[NightAlarms]) -> list[AlarmMonth]:
    """Tally each month and all of them together, site by site, because machines differ."""
    found: dict[str, dict[str, list[NightAlarms]]] = {}
    for night in nights:
        found.setdefault(night.site, {}).setdefault(night.started_utc[:7], []).append(night)
    return [month for site in sorted(found) for month in tally_site_by_month(site, found[site])]


def tally_site_by_month(site: str, found: Mapping[str, Sequence[NightAlarms]]) -> list[AlarmMonth]:
    """Tally the months of one site, by name, and all of them together if they are several."""
    every = [night for some in found.values() for night in some]
    named = [tally_month(site, name, found[name]) for name in sorted(found)]
    return [*named, tally_month(site, "all", every)] if len(named) > 1 else named


def tally_month(site: str, name: str, nights: Sequence[NightAlarms]) -> AlarmMonth:
    """Tally some nights of a site."""
    screened = [(night.predicted_screened, night.screened) for night in nights]
    regressed = [(night.predicted_regressed, len(night.alarms)) for night in nights]
    return AlarmMonth(
        site,
        name,
        len(nights),
        sum(night.judged for night in nights),
        sum_alarm_counts(screened),
        sum_alarm_counts(regressed),
        sum(bool(night.common or night.causes) for night in nights),
        sum(night.marked(REAL) for night in nights),
        sum(night.marked(FALSE) for night in nights),
    )


def sum_alarm_counts(nights: Sequence[tuple[float, int]]) -> AlarmCount:
    """Sum (predicted, counted) of some nights.

    The dispersion is Pearson's, about the rate that the nights have themselves: a prediction that is wrong
    must not widen its own interval.
    """
    predicted, counted = sum(p for p, _ in nights), sum(c for _, c in nights)
    if len(nights) < 2 or not counted or not predicted:
        return AlarmCount(predicted, counted, 1.0)
    rate = counted / predicted
    due = [(rate * p, c) for p, c in nights if p]
    spread = sum((c - e) ** 2 / e for e, c in due) / (len(nights) - 1)
    return AlarmCount(predicted, counted, max(spread, 1.0))


def compute_poisson_interval(count: float) -> tuple[float, float]:
    """Compute the means under which so few, or so many, events have a probability of 2.5% or more."""
    tail = (1 - CONFIDENCE) / 2
    low = float(gammaincinv(count, tail)) if count else 0.0
    return low, float(gammaincinv(count + 1, 1 - tail))


def find_often_cleared(nights: Iterable[NightAlarms]) -> list[tuple[str, int]]:
    """Find cases that were cleared on several nights: their references may be stale."""
    counts = Counter(key for night in nights for key in night.cleared)
    often = [(key, number) for key, number in counts.items() if number >= OFTEN]
    return sorted(often, key=lambda each: (-each[1], each[0]))[:MOST_CLEARED]


def find_slow_hosts(nights: Iterable[NightAlarms], key: str) -> tuple[str, ...]:
    """Find the hosts on which a case looks slow that is often cleared; empty if hosts do not explain it.

    It was slow on them on several nights, in half of its clearings or more, and fine on others alone. A second
    look avoids hosts wherever it can: those of one night say nothing.
    """
    cleared = [night for night in nights if key in night.cleared]
    counts = Counter(host for night in cleared for host in night.slow_on.get(key, ()))
    least = max(OFTEN, len(cleared) / 2)
    return tuple(sorted(host for host, number in counts.items() if number >= least))
