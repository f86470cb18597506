"""Optimal allocation (Kalibera and Jones): trials per launch, and the sensitivity for given seconds.

The variance of ln headline has two parts: B between launches, and V / n within a launch of n trials that count.
A launch costs its start, and a cost for each trial. The mean over launches is known best for its cost with
n = sqrt(cost of the start / cost of a trial x V / B) trials a launch (Kalibera and Jones, Rigorous
benchmarking in reasonable time, ISMM 2013, section 6). The trials that are dropped belong to the start.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from postprocess.base.units import SECONDS
from postprocess.model.case import Case, LaunchPlace
from postprocess.model.reference import ENOUGH_LAUNCHES, Prior, Reference, SessionEvidence
from postprocess.stats.headline import compute_steady_times
from postprocess.stats.power import compute_detectable_slowdown
from postprocess.stats.sessions import summarize_sessions

LEAST, MOST = 11, 1001  #: trials that are ever proposed: a filter of a tenth needs ten that count
DROPPED = 1  #: trials of a launch that no statistic uses
RESAMPLES = 200  #: of one launch: its variance is then known to a tenth
LEAST_SECONDS = 0.1  #: that a launch is taken to last, when a night's budget is shared out
#: Launches of a night, whose median is judged: it has 0.54 of their spread, and that of nine would have 0.41
NIGHT_LAUNCHES = 5
SEEN_IN = 3  #: nights, within which a slowdown is to be called
MOST_LAUNCHES = 1000  #: that are looked at, when launches are sought that see enough


@dataclass(frozen=True)
class NoiseVariance:
    """Variance of the headline of a case, on the logarithm."""

    between: float  #: launches, without what their trials bring in
    trial: float  #: of one trial: a launch has it over the number of those that count

    def spread(self, trials: int) -> float:
        """Return the standard deviation between launches of so many trials each, the dropped ones included."""
        return math.sqrt(self.between + self.trial / (trials - DROPPED))


@dataclass(frozen=True)
class LaunchCost:
    """What a launch of all cases of a place takes, in seconds."""

    start: float
    trial: float = 0.0  #: of each case one, its flush included; 0 for a program without trials
    budget: float = 0.0  #: what a night has for launches of the place; 0 where it takes one

    def seconds(self, trials: int) -> float:
        """Return the seconds of one launch of so many trials."""
        return self.start + trials * self.trial


@dataclass(frozen=True)
class KnownCase:
    """What is known of a case."""

    case: Case
    noise: NoiseVariance
    launches: int  #: that tell it
    prior_degrees: float = (
        0.0  #: degrees of freedom that the spread of similar cases adds to its own
    )
    unit: str = SECONDS
    session: Prior | None = None  #: between sessions, where they can be told from launches

    @property
    def place(self) -> LaunchPlace:
        """Where it is launched, together with all other cases there."""
        return LaunchPlace.of(self.case)


@dataclass(frozen=True)
class CalibrationSpending:
    """A calibration, and what a night that is held against it sees."""

    trials: int
    launches: int
    pass_seconds: float  #: of one launch of each place
    sees: float | None  #: slowdown that half of the cases see; None for fewer
    night_launches: tuple[int, int]  #: fewest and most that a night takes of a place
    night_seconds: float  #: of all launches of a night
    sessions: int = 1  #: over which the launches are spread

    @property
    def seconds(self) -> float:
        """All launches of the calibration."""
        return self.launches * self.pass_seconds


def estimate_trial_variance(
    times: NDArray[np.float64], random: np.random.Generator, resamples: int = RESAMPLES
) -> float:
    """Estimate the variance of ln headline due to one trial: that of the headline of m trials, times m.

    By resampling the trials with replacement through the statistic itself (Efron and Tibshirani, An
    Introduction to the Bootstrap, 1993, chapter 6), whose variance falls short by (m - 1) / m as a mean's does.
    Trials are taken to be independent of each other.

    :param times: shape (m,), the trials that count, all above 0
    :raises ValueError: for fewer than two.
    """
    m = times.size
    if m < 2:
        raise ValueError("one trial says nothing of how trials differ")
    drawn = times[random.integers(m, size=(resamples, m))]
    return float(np.var(np.log(compute_steady_times(drawn)), ddof=1)) * m * m / (m - 1)


def estimate_noise(
    values: Sequence[float],
    trials: Sequence[float] = (),
    counted: Sequence[int] = (),
    sessions: Sequence[int] = (),
) -> NoiseVariance:
    """Estimate both parts of the variance, from headlines and from the trials of some of their launches.

    :param values: one headline a launch, two at least
    :param trials: :func:`estimate_trial_variance` of launches; none for a program without trials
    :param counted: how many trials count, of each of these launches
    :param sessions: number of the session of each value, if what sessions differ by does not count
    """
    total = summarize_sessions(values, sessions).spread ** 2
    if not len(trials):
        return NoiseVariance(total, 0.0)
    within = float(np.mean(np.asarray(trials) / np.asarray(counted)))
    return NoiseVariance(max(total - within, 0.0), float(np.mean(trials)))


def choose_trials(noise: NoiseVariance, cost: LaunchCost) -> int:
    """Choose the trials of a launch, the dropped ones included (Kalibera and Jones); ``LEAST`` to ``MOST``."""
    if noise.trial == 0:
        return LEAST
    if noise.between == 0 or cost.trial == 0:
        return MOST
    start = cost.start + DROPPED * cost.trial
    ideal = math.sqrt(start / cost.trial * noise.trial / noise.between) + DROPPED
    return round(min(max(ideal, LEAST), MOST))


def choose_median_trials(
    known: Sequence[KnownCase], costs: Mapping[LaunchPlace, LaunchCost]
) -> int:
    """Return the median over the cases of the best number of trials."""
    return round(float(np.median([choose_trials(each.noise, costs[each.place]) for each in known])))


def compute_pass_seconds(
    places: set[LaunchPlace], costs: Mapping[LaunchPlace, LaunchCost], trials: int
) -> float:
    """Sum the seconds of one launch of each place."""
    return sum(costs[place].seconds(trials) for place in sorted(places))


def predict_reference(known: KnownCase, trials: int, launches: int, sessions: int = 1) -> Reference:
    """Predict the reference of a case that is calibrated with so many launches, in so many sessions."""
    spread = known.noise.spread(trials)
    prior = Prior(spread, known.prior_degrees) if known.prior_degrees else None
    found = Reference(known.case, 1.0, spread, launches, known.unit, prior=prior)
    if known.session is None or not launches:
        return found
    share = sessions / launches
    between = known.session.spread**2 + share * spread**2
    told = SessionEvidence(sessions, share, between)
    return replace(found, evidence=told, session_prior=known.session)


def compute_sensitivity(
    known: KnownCase, trials: int, launches: int, median_of: int = 1, sessions: int = 1
) -> float | None:
    """Compute the smallest slowdown, as a fraction, that :data:`SEEN_IN` nights call in a case calibrated so.

    :param median_of: launches of the night
    :param sessions: over which the launches of the calibration are spread
    """
    reference = predict_reference(known, trials, launches, sessions)
    return compute_detectable_slowdown(reference, median_of, SEEN_IN)


def count_night_launches(
    places: Iterable[LaunchPlace], costs: Mapping[LaunchPlace, LaunchCost], trials: int
) -> dict[LaunchPlace, int]:
    """Count the launches that a night takes of each place."""
    return {
        place: count_paid_launches(costs[place].budget, costs[place].seconds(trials))
        for place in sorted(set(places))
    }


def count_paid_launches(budget: float, seconds: float) -> int:
    """Count the launches of so many seconds that a night takes: as many as its budget pays, five at most."""
    return max(1, min(NIGHT_LAUNCHES, int(budget // max(seconds, LEAST_SECONDS))))


def evaluate_spending(
    known: Sequence[KnownCase],
    costs: Mapping[LaunchPlace, LaunchCost],
    trials: int,
    launches: int,
    sessions: int = 1,
) -> CalibrationSpending:
    """Evaluate a calibration of so many launches: its cost, that of a night, and what half of the cases see."""
    counts = count_night_launches((each.place for each in known), costs, trials)
    values = [
        math.inf if value is None else value
        for each in known
        for value in [compute_sensitivity(each, trials, launches, counts[each.place], sessions)]
    ]
    median = float(np.quantile(values, 0.5, method="inverted_cdf"))
    return CalibrationSpending(
        trials,
        launches,
        compute_pass_seconds(set(counts), costs, trials),
        median if math.isfinite(median) else None,
        (min(counts.values()), max(counts.values())),
        sum(count * costs[place].seconds(trials) for place, count in counts.items()),
        sessions,
    )


def allocate_seconds(
    known: Sequence[KnownCase], costs: Mapping[LaunchPlace, LaunchCost], trials: int, seconds: float
) -> CalibrationSpending:
    """Allocate so many seconds: the launches that fit, and the resulting sensitivity."""
    once = compute_pass_seconds({each.place for each in known}, costs, trials)
    return evaluate_spending(known, costs, trials, count_fitting_launches(seconds, once))


def count_fitting_launches(seconds: float, once: float) -> int:
    """Count the launches of ``once`` seconds that fit into ``seconds``."""
    return int(seconds / once * (1 + 1e-12))  # twenty of them fit into twenty times one


def find_least_launches(
    known: Sequence[KnownCase],
    costs: Mapping[LaunchPlace, LaunchCost],
    trials: int,
    target: float,
    sessions: int = 1,
) -> CalibrationSpending | None:
    """Find the fewest launches for half of the cases to detect ``target``; None beyond ``MOST_LAUNCHES``."""

    def enough(launches: int) -> bool:
        seen = evaluate_spending(known, costs, trials, launches, sessions).sees
        return seen is not None and seen <= target

    if not enough(MOST_LAUNCHES):
        return None
    low, high = ENOUGH_LAUNCHES - 1, MOST_LAUNCHES
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return evaluate_spending(known, costs, trials, high, sessions)
