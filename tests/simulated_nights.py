"""False alarms and power of the nightly verdict, by simulation: ``python -m tests.simulated_nights``.

1,000 cases whose spreads between launches have a median of 2% (0.5 on the logarithm of the spread), and an
effect of each night of 1%, common to all of its launches, reruns too. Prior and limits are the package's own.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from postprocess.bands import SLOW_ALPHA, SMALL_FLOOR
from postprocess.confirmation import NEEDED
from postprocess.moderation import fitted

CASES, MEDIAN, SCATTER, NIGHT_EFFECT = 1_000, 0.02, 0.5, 0.01
Noise = Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.float64]]


def normal(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Of unit variance."""
    return random.normal(size=shape)


def heavy(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Student's t of four degrees of freedom, scaled to unit variance."""
    return random.standard_t(4, size=shape) / math.sqrt(2)


def skewed(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Normal, but one launch in twenty is slow by two to six standard deviations more."""
    late = random.random(shape) < 0.05
    return random.normal(size=shape) + late * random.uniform(2, 6, size=shape)


NOISES: dict[str, Noise] = {"normal": normal, "t4": heavy, "skewed": skewed}


@dataclass(frozen=True)
class Shares:
    """Of the cases of a night: how many each rule calls slow."""

    flat_5: float
    flat_10: float
    screened: float
    regressed: float
    typical: float  #: regressed, of the cases whose spread is about the median
    launches: float  #: fresh ones, per case


def limits(logs: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centers and upper limits of all cases on the logarithm.

    :param logs: ln headline by case and launch
    """
    launches = logs.shape[1]
    own = logs.std(axis=1, ddof=1)
    degrees = np.full(len(logs), launches - 1.0)
    spread, worth = fitted(own, degrees).moderate(own, launches - 1)
    width = stdtrit(worth, 1 - SLOW_ALPHA) * spread * math.sqrt(1 + 1 / launches)
    center = logs.mean(axis=1)
    return center, center + np.maximum(width, math.log1p(SMALL_FLOOR))


def night(random: np.random.Generator, noise: Noise, launches: int, slower: float) -> Shares:
    """One calibration over as many nights as launches, and one night in which all are slower."""
    spread = MEDIAN * np.exp(random.normal(0, SCATTER, CASES))[:, None]
    effects = random.normal(0, NIGHT_EFFECT, launches)
    center, upper = limits(effects + spread * noise(random, (CASES, launches)))
    tonight = math.log1p(slower) + random.normal(0, NIGHT_EFFECT)
    first, *fresh = (tonight + spread * noise(random, (CASES, 2 * NEEDED))).T
    screened = first > upper
    slow, launches = votes([values > upper for values in fresh])
    confirmed, typical = screened & slow, np.abs(spread[:, 0] / MEDIAN - 1) < 0.05
    return Shares(
        flat_5=float(np.mean(first - center > math.log(1.05))),
        flat_10=float(np.mean(first - center > math.log(1.10))),
        screened=float(screened.mean()),
        regressed=float(confirmed.mean()),
        typical=float(confirmed[typical].mean()),
        launches=float(np.mean(launches * screened)),
    )


def votes(beyond: list[NDArray[np.bool_]]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which cases NEEDED fresh launches call slow before as many do not, and how many were made of each."""
    slow = np.zeros(len(beyond[0]), dtype=int)
    fine, made = slow.copy(), slow.copy()
    for each in beyond:
        undecided = np.maximum(slow, fine) < NEEDED
        slow, fine, made = slow + (undecided & each), fine + (undecided & ~each), made + undecided
    return slow >= NEEDED, made


def mean(nights: int, noise: Noise, launches: int, slower: float = 0.0) -> Shares:
    """The average of many nights, each after a calibration of its own."""
    random = np.random.default_rng(20261121)
    found = [night(random, noise, launches, slower) for _ in range(nights)]
    names = Shares.__annotations__
    return Shares(
        **{name: float(np.mean([getattr(each, name) for each in found])) for name in names}
    )


def main(nights: int) -> None:
    """Print the table."""
    print(f"{nights} nights of {CASES} cases; false alarms per 1,000 cases and night")
    print(
        "+10%* is the power at +10% for cases whose spread is 2%; launches are fresh ones per 1,000 cases"
    )
    names = ("noise", "calibration", "flat 5%", "flat 10%", "screened", "regressed", "launches")
    print("".join(f"{name:>12}" for name in (*names, "+5%", "+10%", "+20%", "+10%*")))
    for name, noise in NOISES.items():
        for launches in (5, 10, 20, 30):
            none = mean(nights, noise, launches)
            shares = (none.flat_5, none.flat_10, none.screened, none.regressed, none.launches)
            slow = [mean(max(nights // 10, 1), noise, launches, by) for by in (0.05, 0.1, 0.2)]
            power = [*(each.regressed for each in slow), slow[1].typical]
            alarms = [f"{1000 * each:.3f}" for each in shares]
            print(
                "".join(
                    f"{word:>12}"
                    for word in (name, launches, *alarms, *(f"{p:.3f}" for p in power))
                )
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
