"""False alarms and power of the nightly verdict, by simulation.

Usage: ``python -m tests.statistical.simulated_nights [NIGHTS]``.

1,000 cases whose spreads between launches have a median of 2% (0.5 on the logarithm of the spread), and an
effect of each night of 1%, common to all of its launches, fresh ones too. Prior, limits and votes are the
package's own functions; beside its rule stand those of the field, on the very same launches.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from postprocess.stats import confirmation_rule
from postprocess.stats.band import LARGE_FLOOR, SLOW_ALPHA, SMALL_FLOOR, compute_prediction_distance
from postprocess.stats.shrinkage import fit_prior
from tests.statistical.simulated_drift import Noise, heavy, normal
from tests.support.paths import DATA

CASES, MEDIAN, SCATTER, NIGHT_EFFECT = 1_000, 0.02, 0.5, 0.01
CALIBRATIONS = (5, 10, 20, 30)  #: launches
RESIDUALS = DATA / "launch_residuals.csv"
Numbers = NDArray[np.float64]
Booleans = NDArray[np.bool_]
#: What a rule says of the cases of a night: which are regressed, and how many fresh launches it took of each.
Verdicts = tuple[Booleans, NDArray[np.int64]]


def skewed(random: np.random.Generator, shape: tuple[int, int]) -> Numbers:
    """Normal, but one launch in twenty is slow by two to six standard deviations more: 1.35 in all."""
    late = random.random(shape) < 0.05
    return random.normal(size=shape) + late * random.uniform(2, 6, size=shape)


def measured(random: np.random.Generator, shape: tuple[int, int]) -> Numbers:
    """Launches of real cases, whose residuals are of unit variance; each case keeps to one of them."""
    rows = residuals()[random.integers(0, len(residuals()), shape[0])]
    return np.take_along_axis(rows, random.integers(0, rows.shape[1], shape), axis=1)


@cache
def residuals() -> Numbers:
    """By case and launch, as measured."""
    return np.loadtxt(RESIDUALS, delimiter=",")


NOISES: dict[str, Noise] = {"normal": normal, "t4": heavy, "skewed": skewed, "measured": measured}


@dataclass(frozen=True)
class Calibration:
    """What the launches of a calibration say of all cases, on the logarithm."""

    center: Numbers
    spread: Numbers  #: shared among kin
    degrees: float
    launches: int

    @classmethod
    def of(cls, logs: Numbers) -> Calibration:
        """:param logs: ln headline by case and launch"""
        launches = logs.shape[1]
        own = logs.std(axis=1, ddof=1)
        prior = fit_prior(own, np.full(len(logs), launches - 1.0))
        return cls(logs.mean(axis=1), *prior.moderate(own, launches - 1), launches)

    def limit(self, alpha: float, floor: float, median_of: int = 1) -> Numbers:
        """The upper limit of each case, of the median of some launches."""
        width = compute_prediction_distance(
            self.spread, self.degrees, self.launches, alpha, median_of
        )
        return self.center + np.maximum(width, math.log1p(floor))


@dataclass(frozen=True)
class Night:
    """One value of every case, and the fresh values that could follow. Each is the median of some launches."""

    first: Numbers  #: ln headline by case
    fresh: Numbers  #: and fresh value
    median_of: int = 1  #: launches


def flat(share: float) -> Callable[[Calibration, Night], Verdicts]:
    """The field's rule: one launch, and so many percent above the center."""

    def rule(known: Calibration, night: Night) -> Verdicts:
        slow = night.first > known.center + math.log1p(share)
        return slow, np.zeros(len(slow), dtype=int)

    return rule


def screen(known: Calibration, night: Night) -> Verdicts:
    """The launch of the night alone, above the one percent prediction limit."""
    slow = night.first > known.limit(0.01, 0.0)
    return slow, np.zeros(len(slow), dtype=int)


def two_of_three(known: Calibration, night: Night) -> Verdicts:
    """The same, repeated by two of three fresh launches whose median is 3% above the center."""
    limit, (slow, _) = known.limit(0.01, 0.0), screen(known, night)
    again = night.fresh[:, :3]
    repeated = np.sum(again > limit[:, None], axis=1) >= 2
    large = np.median(again, axis=1) > known.center + math.log1p(0.03)
    return slow & repeated & large, 3 * slow


def package(known: Calibration, night: Night, floor: float = SMALL_FLOOR) -> Verdicts:
    """The package's own, with fresh launches made in passes as it makes them."""
    limit = known.limit(SLOW_ALPHA, floor, night.median_of)
    suspects = night.first > limit
    slow, fine, made = (np.zeros(len(limit), dtype=int) for _ in range(3))
    for number in confirmation_rule.PASSES:
        open_ = suspects & ~confirmation_rule.is_decided(slow, fine)
        for _ in range(number):
            beyond = night.fresh[np.arange(len(limit)), made] > limit
            slow, fine, made = slow + (open_ & beyond), fine + (open_ & ~beyond), made + open_
    return suspects & ~confirmation_rule.is_cleared(fine), made


RULES: Mapping[str, Callable[[Calibration, Night], Verdicts]] = {
    "flat 5%": flat(0.05),
    "flat 10%": flat(0.10),
    "screen 1%": screen,
    "2 of 3": two_of_three,
    "plumbline": package,
    ".. large": partial(package, floor=LARGE_FLOOR),
}


@dataclass(frozen=True)
class Shares:
    """Of all cases, averaged over nights, what a rule says."""

    regressed: float
    typical: float  #: regressed, of the cases whose spread is about the median
    launches: float  #: fresh ones, per case


def simulated(
    random: np.random.Generator,
    noise: Noise,
    launches: int,
    slower: float,
    effect: float,
    median_of: int = 1,
) -> tuple[Calibration, Night, Booleans]:
    """A calibration over as many nights as launches, a night in which all are slower, and who is typical."""
    spread = MEDIAN * np.exp(random.normal(0, SCATTER, CASES))
    values = 1 + sum(confirmation_rule.PASSES)
    logs = spread[:, None] * noise(random, (CASES, launches + values * median_of))
    known = Calibration.of(random.normal(0, effect, launches) + logs[:, :launches])
    own = np.median(logs[:, launches:].reshape(CASES, values, median_of), axis=2)
    tonight = own + math.log1p(slower) + random.normal(0, effect)
    night = Night(tonight[:, 0], tonight[:, 1:], median_of)
    return known, night, np.abs(spread / MEDIAN - 1) < 0.05


def mean(
    nights: int,
    noise: Noise,
    launches: int,
    slower: float = 0.0,
    effect: float = NIGHT_EFFECT,
    median_of: int = 1,
) -> dict[str, Shares]:
    """What each rule says on the average of many nights, each after a calibration of its own."""
    random = np.random.default_rng(20261121)
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in RULES}
    for _ in range(nights):
        known, night, typical = simulated(random, noise, launches, slower, effect, median_of)
        for name, rule in RULES.items():
            slow, made = rule(known, night)
            found[name].append((slow.mean(), slow[typical].mean(), made.mean()))
    return {name: Shares(*map(float, np.mean(each, axis=0))) for name, each in found.items()}


def main(nights: int) -> None:
    """Print the table."""
    print(
        f"{nights} nights of {CASES} cases. 'false': regressed per 1,000 healthy cases and night."
    )
    print("'launches': fresh ones per 1,000 healthy cases. +10%*: cases whose spread is 2%.")
    print("'large': the package's rule for large messages, whose bands may be narrower.")
    heads = ("false", "launches", "+5%", "+10%", "+20%", "+10%*")
    print(
        f"{'noise':10}{'calibration':>12}  {'rule':10}" + "".join(f"{name:>10}" for name in heads)
    )
    for name in NOISES:
        for launches in CALIBRATIONS:
            rows(nights, name, launches, NIGHT_EFFECT)
    print("without an effect of the night:")
    for name in NOISES:
        rows(nights, name, 20, 0.0)


def rows(nights: int, name: str, launches: int, effect: float) -> None:
    """Print what each rule says after calibrations of so many launches."""
    shifts = (0.0, 0.05, 0.1, 0.2)
    none, *slow = (mean(nights, NOISES[name], launches, by, effect) for by in shifts)
    for rule in RULES:
        power = [*(each[rule].regressed for each in slow), slow[1][rule].typical]
        numbers = [1000 * none[rule].regressed, 1000 * none[rule].launches, *power]
        cells = "".join(f"{number:10.3f}" for number in numbers)
        print(f"{name:10}{launches:12}  {rule:10}{cells}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
