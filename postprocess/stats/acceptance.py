"""Acceptance of a row: compare launches of the delivered machine with a commitment, at two stated risks.

d = ln(time of a launch / limit), where the limit is the commitment times its tolerance. After fixed numbers of
launches, the looks, the one-sided confidence limits of the mean of d are computed by Student's t. The row is
met if the upper limit is below 0 and missed if the lower one is above 0. Otherwise it is undecided, and
launches continue. Each of K looks spends a K-th of both risks (Bonferroni). So a machine just within the limit
is missed, and one just beyond it is met, with at most the stated probability, if ln values are normal. The rule
``worst`` has no probability: every launch must be within the limit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache

import numpy as np
import scipy
from numpy.typing import NDArray


def compute_exceedance(others: int, own: int, largest: int) -> float:
    """Compute the probability that the ``largest`` largest values all come from one's own sample by chance."""
    return math.comb(own, largest) / math.comb(others + own, largest)


NORMAL, ORDERED, EXACT = "normal tolerance limit", "order statistic", "exact"
LEAST_LAUNCHES = 3  #: with two launches k is 37, which makes a useless limit


@dataclass(frozen=True)
class ToleranceLimit:
    """A limit on the slow side, on the logarithm."""

    limit: float
    method: str
    factor: float  #: k of the normal limit; otherwise 0
    launches: int


@cache
def compute_tolerance_factor(launches: int, confidence: float, coverage: float) -> float:
    """Compute k of the one-sided normal limit m + k s of n launches."""
    root = math.sqrt(launches)
    return (
        float(scipy.stats.nct.ppf(confidence, launches - 1, float(scipy.special.ndtri(coverage)) * root)) / root
    )


@cache
def find_order_statistic(launches: int, confidence: float, coverage: float) -> int:
    """Find which of the largest values is a distribution-free limit: 1 for the largest; 0 if none is."""
    ranks = np.arange(1, launches + 1)
    sure = scipy.stats.binom.cdf(launches - ranks, launches, coverage)
    return int(np.count_nonzero(sure >= confidence))


def compute_tolerance_limit(
    logs: Sequence[float], confidence: float, coverage: float, exact: bool = False
) -> ToleranceLimit:
    """Compute the tolerance limit of launches.

    :param logs: ln of how slow each launch was; more is worse
    :param exact: whether time is simulated and has no spread
    :raises ValueError: for too few launches
    """
    values = np.sort(np.asarray(logs, dtype=float))
    count = len(values)
    if exact and count:
        return ToleranceLimit(float(values[-1]), EXACT, 0.0, count)
    if count < LEAST_LAUNCHES:
        raise ValueError(f"{count} launches give no tolerance limit; {LEAST_LAUNCHES} do")
    if rank := find_order_statistic(count, confidence, coverage):
        return ToleranceLimit(float(values[-rank]), ORDERED, 0.0, count)
    factor = compute_tolerance_factor(count, confidence, coverage)
    limit = float(values.mean() + factor * values.std(ddof=1))
    return ToleranceLimit(limit, NORMAL, factor, count)


GROWTH = 2  #: factor between the launches of successive looks
MOST_NEEDED = 10**6  #: launches; more are impracticable
EXACT_TOLERANCE = 1e-9  #: rounding of simulated time
SIMULATED_ROWS = 4000  #: per point of an operating characteristic
SEED = 20011122


class RowVerdict(str, Enum):
    MET = "met"
    MISSED = "missed"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"

    def __str__(self) -> str:
        return self.value


class Open(str, Enum):
    """Why a row is undecided."""

    LOOK = "more-launches"  #: a later look would decide if launches keep differing as they do
    MOST = "beyond-most-launches"  #: no number of launches that the rules allow would decide
    APART = "cores-farther-apart"  #: too few launches had their ranks placed as in the offer

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class AcceptedRow:
    """A verdict with the numbers behind it, on the logarithm."""

    verdict: RowVerdict
    mean: float = math.nan
    lower: float = -math.inf
    upper: float = math.inf
    why: Open | None = None  #: why it is undecided
    launches_more: int | None = None  #: until the look that would decide; None if none would
    needed: int | None = None  #: total launches that would decide; None if no number would


def choose_acceptance_looks(least: int, most: int) -> tuple[int, ...]:
    """Choose the numbers of launches at which to look: the least, then twice as many each time."""
    looks = [least]
    while looks[-1] * GROWTH <= most:
        looks.append(looks[-1] * GROWTH)
    if looks[-1] < most:
        looks.append(most)
    return tuple(looks)


def judge_acceptance(
    distances: Sequence[float],
    looks: Sequence[int],
    good_failed: float,
    slow_accepted: float,
    exact: bool = False,
    worst: bool = False,
) -> AcceptedRow:
    """Judge a row at the last look that its launches have reached.

    :param distances: d of each launch, in the order of launching
    :param exact: whether time is simulated
    :param worst: whether every launch must be within the limit
    """
    d = np.asarray(distances, dtype=float)
    if exact and len(d):
        verdict = RowVerdict.MET if d.max() <= EXACT_TOLERANCE else RowVerdict.MISSED
        return AcceptedRow(verdict, float(d.mean()), float(d.min()), float(d.max()))
    if worst:
        return _judge_worst(d, looks[0])
    reached = [look for look in looks if look <= len(d)]
    if not reached:
        return _wait_for(looks[0], len(d))
    row = AcceptedRow(RowVerdict.UNDECIDED)
    for look in reached:  # the decision of an earlier look stands
        row = _judge_look(d[:look], look, len(looks), good_failed, slow_accepted)
        if row.verdict != RowVerdict.UNDECIDED:
            return row
    later = [look for look in looks if look > len(d) and row.needed and look >= row.needed]
    more = later[0] - len(d) if later else None
    return replace(row, why=Open.LOOK if later else Open.MOST, launches_more=more)


def _wait_for(least: int, launches: int) -> AcceptedRow:
    more = least - launches
    return AcceptedRow(RowVerdict.UNDECIDED, why=Open.LOOK, launches_more=more, needed=least)


def _judge_worst(d: NDArray[np.float64], least: int) -> AcceptedRow:
    if len(d) and d.max() > 0:
        return AcceptedRow(RowVerdict.MISSED, float(d.mean()), float(d.min()), float(d.max()))
    if len(d) < least:
        return _wait_for(least, len(d))
    return AcceptedRow(RowVerdict.MET, float(d.mean()), float(d.min()), float(d.max()))


def _judge_look(
    d: NDArray[np.float64], look: int, looks: int, good_failed: float, slow_accepted: float
) -> AcceptedRow:
    mean, error = float(d.mean()), float(d.std(ddof=1)) / math.sqrt(look)
    down, up = (
        float(scipy.special.stdtrit(look - 1, 1 - risk / looks)) for risk in (good_failed, slow_accepted)
    )
    lower, upper = mean - down * error, mean + up * error
    if upper <= 0:
        return AcceptedRow(RowVerdict.MET, mean, lower, upper)
    if lower > 0:
        return AcceptedRow(RowVerdict.MISSED, mean, lower, upper)
    factor = down if mean > 0 else up
    wanted = (factor * error * math.sqrt(look) / mean) ** 2 if mean else math.inf
    needed = math.ceil(wanted) if wanted < MOST_NEEDED else None
    return AcceptedRow(RowVerdict.UNDECIDED, mean, lower, upper, needed=needed)


@dataclass(frozen=True)
class OperatingCharacteristic:
    """How often a row is met, missed and undecided, by how much slower than committed a machine is."""

    slower: tuple[float, ...]  #: fractions of the commitment
    met: tuple[float, ...]
    missed: tuple[float, ...]
    launches: tuple[float, ...]  #: mean number until the decision


@cache
def simulate_characteristic(
    spread: float,
    tolerance: float,
    looks: tuple[int, ...],
    good_failed: float,
    slow_accepted: float,
    slower: tuple[float, ...],
) -> OperatingCharacteristic:
    """Simulate the rule with normal ln values from a fixed seed; cached per rule.

    :param spread: standard deviation of ln value between launches
    """
    noise = np.random.default_rng(SEED).normal(0.0, spread, (SIMULATED_ROWS, looks[-1]))
    met, missed, launches = [], [], []
    for fraction in slower:
        d = noise + math.log1p(fraction) - math.log1p(tolerance)
        verdicts, taken = _judge_many(d, looks, good_failed, slow_accepted)
        met.append(float(np.mean(verdicts < 0)))
        missed.append(float(np.mean(verdicts > 0)))
        launches.append(float(taken.mean()))
    return OperatingCharacteristic(slower, tuple(met), tuple(missed), tuple(launches))


def _judge_many(
    d: NDArray[np.float64], looks: Sequence[int], good_failed: float, slow_accepted: float
) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Judge many rows at once. Return -1 for met, 1 for missed, 0 for undecided, and the launches taken."""
    verdicts = np.zeros(len(d), dtype=int)
    taken = np.full(len(d), looks[-1])
    for look in looks:
        taken_so_far = d[:, :look]
        mean, error = taken_so_far.mean(axis=1), taken_so_far.std(axis=1, ddof=1) / math.sqrt(look)
        down, up = (
            scipy.special.stdtrit(look - 1, 1 - risk / len(looks)) for risk in (good_failed, slow_accepted)
        )
        now = np.where(mean + up * error <= 0, -1, np.where(mean - down * error > 0, 1, 0))
        decided = (verdicts == 0) & (now != 0)
        verdicts[decided], taken[decided] = now[decided], look
    return verdicts, taken
