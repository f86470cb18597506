"""Kinds of noise of launches and sessions, of unit variance, for simulations."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tests.statistical.simulated_drift import heavy, normal
from tests.support.paths import DATA

Numbers = NDArray[np.float64]
Noise = Callable[[np.random.Generator, tuple[int, int]], Numbers]
LAUNCH_RESIDUALS = DATA / "launch_residuals.csv"
SESSION_RESIDUALS = DATA / "session_residuals.csv"


def skewed(random: np.random.Generator, shape: tuple[int, int]) -> Numbers:
    """Normal, but one launch in twenty is slow by two to six standard deviations more: 1.35 in all."""
    late = random.random(shape) < 0.05
    return random.normal(size=shape) + late * random.uniform(2, 6, size=shape)


def measured(random: np.random.Generator, shape: tuple[int, int]) -> Numbers:
    """Launches of real cases, whose residuals are of unit variance; each case keeps to one of them."""
    rows = launch_residuals()[random.integers(0, len(launch_residuals()), shape[0])]
    return np.take_along_axis(rows, random.integers(0, rows.shape[1], shape), axis=1)


@cache
def launch_residuals() -> Numbers:
    """By case and launch, as measured."""
    return np.loadtxt(LAUNCH_RESIDUALS, delimiter=",")


def measured_sessions(random: np.random.Generator, shape: tuple[int, int]) -> Numbers:
    """Sessions of real cases; each case keeps to one of them."""
    rows = session_residuals()[random.integers(0, len(session_residuals()), shape[0])]
    return np.take_along_axis(rows, random.integers(0, rows.shape[1], shape), axis=1)


@cache
def session_residuals() -> Numbers:
    """By case and session, as measured."""
    return np.loadtxt(SESSION_RESIDUALS, delimiter=",")


NOISES: dict[str, Noise] = {"normal": normal, "t4": heavy, "skewed": skewed, "measured": measured}
