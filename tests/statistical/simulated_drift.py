"""False alarms and power of the drift alarm, by simulation: ``python -m tests.statistical.simulated_drift``.

Series of 60 nights with a spread of 2% between nights; their references come from 20 launches of that noise.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from postprocess.analyses import drift

NIGHTS, SPREAD, LAUNCHES = 60, 0.02, 20
LONG = 4_000  #: nights that are waited for the first false alarm of a cumulative sum
PERSISTENCE = 0.5  #: of the noise that comes and goes: correlation of a night with the next
Noise = Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.float64]]


def normal(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Of unit variance."""
    return random.normal(size=shape)


def heavy(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Student's t of four degrees of freedom, scaled to unit variance."""
    return random.standard_t(4, size=shape) / math.sqrt(2)


def lasting(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Of unit variance, each night like the one before by ``PERSISTENCE``."""
    series = random.normal(size=shape)
    for night in range(1, shape[1]):
        fresh = math.sqrt(1 - PERSISTENCE**2) * series[:, night]
        series[:, night] = PERSISTENCE * series[:, night - 1] + fresh
    return series


NOISES: dict[str, Noise] = {"normal": normal, "t4": heavy, "lasting": lasting}


@dataclass(frozen=True)
class Shares:
    """Of the series: how many show a slowdown that lasts, by each method and by one or the other."""

    step: float
    creep: float
    either: float


def shares(noise: Noise, series: int, change: float = 0.0, nights: int = NIGHTS) -> Shares:
    """Of so many series of which the last ``nights`` are slower by ``change``."""
    random = np.random.default_rng(20261121)
    logs = SPREAD * noise(random, (series, NIGHTS))
    logs -= SPREAD * noise(random, (series, LAUNCHES)).mean(axis=1)[:, None]
    logs[:, NIGHTS - nights :] += math.log1p(change)
    kinds = [{finding.kind for finding in found} for found in told(list(logs))]
    return Shares(
        step=sum(drift.STEP in kind for kind in kinds) / series,
        creep=sum(drift.CREEP in kind for kind in kinds) / series,
        either=sum(map(bool, kinds)) / series,
    )


def told(logs: list[NDArray[np.float64]]) -> list[list[drift.DriftFinding]]:
    """The slowdowns that last, of each series."""
    spreads = [drift.estimate_robust_spread(log) for log in logs]
    sums = zip(
        drift.compute_cusums(logs, spreads), drift.compute_cusums([-log for log in logs], spreads), strict=True
    )
    together = zip(logs, drift.find_change_points(logs, spreads), spreads, sums, strict=True)
    found = [drift.find_drift(*each, math.log1p(drift.LEAST)) for each in together]
    return [[finding for finding in some if finding.slow and finding.lasts] for some in found]


def run_length(noise: Noise, series: int, shift: float = 0.0) -> float:
    """Mean nights to the first alarm of the bare cumulative sum, of spread and reference that are known.

    :param shift: of all nights, in spreads. Of an exponential run length, also where not all have alarmed.
    """
    random = np.random.default_rng(20261121)
    logs = shift + noise(random, (series, LONG))
    height, alarmed = np.zeros(series), np.zeros(series, dtype=bool)
    waited = 0
    for row in np.minimum(logs, drift.MOST_OF_A_NIGHT).T:
        waited += int((~alarmed).sum())
        height = np.maximum(height + row - drift.ALLOWANCE, 0.0)
        alarmed |= height > drift.LIMIT
    return waited / max(1, int(alarmed.sum()))


def main(series: int) -> None:
    """Print the table."""
    print(f"{series} series of {NIGHTS} nights, spread {SPREAD:.0%}; alarms per 1,000 healthy series,")
    print("and share of the series found so many nights after all became slower")
    later = [(0.05, 5), (0.05, 7), (0.05, 10), (0.05, 20), (0.1, 5), (0.1, 7)]
    heads = [f"{change:+.0%} {nights:>2}" for change, nights in later]
    print("".join(f"{head:>11}" for head in ("noise", "alarm by", "false", *heads)))
    for name, noise in NOISES.items():
        none = shares(noise, series)
        some = [shares(noise, series, change, nights) for change, nights in later]
        for by in Shares.__annotations__:
            power = "".join(f"{getattr(each, by):11.3f}" for each in some)
            print(f"{name:>11}{by:>11}{1000 * getattr(none, by):11.2f}{power}")
    print("\nMean nights to an alarm of the cumulative sum alone, at a shift of 0, 1 and 2 spreads:")
    for name, noise in NOISES.items():
        lengths = [run_length(noise, series, shift) for shift in (0.0, 1.0, 2.0)]
        print(f"{name:>11}" + "".join(f"{length:11.4g}" for length in lengths))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
