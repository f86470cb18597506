"""Acceptance of a row: launches of the delivered machine against a commitment, with both risks stated.

d = ln(how slow a launch was / how slow it may be), where the limit is the commitment times its tolerance.
After fixed numbers of launches, the looks, one looks at the one-sided confidence limits of the mean of d by
Student's t: below 0 with the upper one, the row is met; above 0 with the lower one, missed; else undecided, and
launches go on. Each of K looks spends a K-th of both risks (Bonferroni), so that in all a machine that is just
within the limit is missed, and one beyond it is met, with the stated probability at most, if ln values are
normal. The rule ``worst`` has no probability: each launch must be within.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

GROWTH = 2  #: times as many launches at each look
EXACT_TOLERANCE = 1e-9  #: of simulated time: rounding
SIMULATED_ROWS = 4000  #: behind each point of an operating characteristic
SEED = 20011122


class RowVerdict(str, Enum):
    """What acceptance says of a row."""

    MET = "met"
    MISSED = "missed"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class AcceptedRow:
    """A verdict with what it rests on, on the logarithm."""

    verdict: RowVerdict
    mean: float = math.nan
    lower: float = -math.inf
    upper: float = math.inf
    #: that would decide, as launches differ until now; None if nobody knows
    launches_more: int | None = None


def choose_acceptance_looks(least: int, most: int) -> tuple[int, ...]:
    """Choose after how many launches one looks: from the least, twice as many each time."""
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
        return AcceptedRow(RowVerdict.UNDECIDED, launches_more=looks[0] - len(d))
    found = AcceptedRow(RowVerdict.UNDECIDED)
    for look in reached:  # what was decided at an earlier look stays so
        found = _judge_look(d[:look], look, len(looks), good_failed, slow_accepted)
        if found.verdict != RowVerdict.UNDECIDED:
            break
    return found


def _judge_worst(d: NDArray[np.float64], least: int) -> AcceptedRow:
    if len(d) and d.max() > 0:
        return AcceptedRow(RowVerdict.MISSED, float(d.mean()), float(d.min()), float(d.max()))
    if len(d) < least:
        return AcceptedRow(RowVerdict.UNDECIDED, launches_more=least - len(d))
    return AcceptedRow(RowVerdict.MET, float(d.mean()), float(d.min()), float(d.max()))


def _judge_look(
    d: NDArray[np.float64], look: int, looks: int, good_failed: float, slow_accepted: float
) -> AcceptedRow:
    mean, error = float(d.mean()), float(d.std(ddof=1)) / math.sqrt(look)
    down, up = (float(stdtrit(look - 1, 1 - risk / looks)) for risk in (good_failed, slow_accepted))
    lower, upper = mean - down * error, mean + up * error
    if upper <= 0:
        return AcceptedRow(RowVerdict.MET, mean, lower, upper)
    if lower > 0:
        return AcceptedRow(RowVerdict.MISSED, mean, lower, upper)
    factor = down if mean > 0 else up
    needed = math.ceil((factor * error * math.sqrt(look) / mean) ** 2) if mean else None
    more = max(1, needed - look) if needed is not None and needed < 10**6 else None
    return AcceptedRow(RowVerdict.UNDECIDED, mean, lower, upper, more)


@dataclass(frozen=True)
class OperatingCharacteristic:
    """How often a row is met, missed and undecided, by how much slower than committed a machine is."""

    slower: tuple[float, ...]  #: as fractions of the commitment
    met: tuple[float, ...]
    missed: tuple[float, ...]
    launches: tuple[float, ...]  #: that it takes, on average


def simulate_characteristic(
    spread: float,
    tolerance: float,
    looks: Sequence[int],
    good_failed: float,
    slow_accepted: float,
    slower: Sequence[float],
) -> OperatingCharacteristic:
    """Simulate the rule with normal ln values, always the same ones.

    :param spread: standard deviation of ln value between launches
    """
    noise = np.random.default_rng(SEED).normal(0.0, spread, (SIMULATED_ROWS, looks[-1]))
    met, missed, launches = [], [], []
    for each in slower:
        d = noise + math.log1p(each) - math.log1p(tolerance)
        verdicts, taken = _judge_many(d, looks, good_failed, slow_accepted)
        met.append(float(np.mean(verdicts < 0)))
        missed.append(float(np.mean(verdicts > 0)))
        launches.append(float(taken.mean()))
    return OperatingCharacteristic(tuple(slower), tuple(met), tuple(missed), tuple(launches))


def _judge_many(
    d: NDArray[np.float64], looks: Sequence[int], good_failed: float, slow_accepted: float
) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Judge many rows at once, a row each: -1 met, 1 missed, 0 undecided; and the launches that it took."""
    verdicts = np.zeros(len(d), dtype=int)
    taken = np.full(len(d), looks[-1])
    for look in looks:
        some = d[:, :look]
        mean, error = some.mean(axis=1), some.std(axis=1, ddof=1) / math.sqrt(look)
        down, up = (
            stdtrit(look - 1, 1 - risk / len(looks)) for risk in (good_failed, slow_accepted)
        )
        now = np.where(mean + up * error <= 0, -1, np.where(mean - down * error > 0, 1, 0))
        decided = (verdicts == 0) & (now != 0)
        verdicts[decided], taken[decided] = now[decided], look
    return verdicts, taken
