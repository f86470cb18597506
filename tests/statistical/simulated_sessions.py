"""False alarms and power where sessions differ by more than their launches, by simulation.

Usage: ``python -m tests.statistical.simulated_sessions [CALIBRATIONS [delay]]``; with ``delay``, fresh launches
at once beside those of which all but two are of another session.

1,000 cases; the median standard deviations between sessions and between the launches of one are those that a
virtual machine had with warm caches, or near those with evicted data (0.5 on the logarithm of either). A
calibration of one session has 20 launches, any
other one 5 of each session. A night has one value and six fresh launches in the same session. Limits, priors
and votes are the package's own functions.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from postprocess.stats.night_spread import add_night_spread, estimate_night_spread

from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.references.session_priors import load_session_priors
from postprocess.stats.band import LARGE_BYTES, compute_band, compute_call_limit
from postprocess.stats.confirmation_rule import PASSES
from postprocess.stats.session_prior import add_session_priors
from postprocess.stats.sessions import summarize_sessions
from postprocess.stats.shrinkage import SMALL_BYTES, add_priors
from tests.statistical.simulated_drift import normal
from tests.statistical.simulated_nights import measured
from tests.support.paths import DATA

CASES, SCATTER = 1_000, 0.5
#: Median spreads between sessions and between launches, by cache state
LEVELS = {"warm": (0.056, 0.033), "evict": (0.02, 0.02)}
#: Sessions of the calibration, and nights before
KNOWN = ((1, 0), (3, 0), (5, 0), (10, 0), (20, 0), (1, 20), (5, 20), (5, 60))
NIGHTS = 20  #: judged by each calibration
RESIDUALS = DATA / "session_residuals.csv"
Numbers = NDArray[np.float64]


@cache
def residuals() -> Numbers:
    """By case and session, as measured."""
    return np.loadtxt(RESIDUALS, delimiter=",")


def measured_sessions(random: np.random.Generator, shape: tuple[int, int]) -> Numbers:
    """Sessions of real cases, of unit variance; each case keeps to one of them."""
    rows = residuals()[random.integers(0, len(residuals()), shape[0])]
    return np.take_along_axis(rows, random.integers(0, rows.shape[1], shape), axis=1)


NOISES = {"normal": (normal, normal), "measured": (measured_sessions, measured)}


@dataclass(frozen=True)
class Machine:
    """How restless each case is, and the two sources of its noise."""

    between: Numbers
    within: Numbers
    noise: str

    def launches(
        self, random: np.random.Generator, sessions: int, launches: int
    ) -> NDArray[np.float64]:
        """Simulate ln headline by case, session and launch."""
        state, own = NOISES[self.noise]
        states = self.between[:, None] * state(random, (CASES, sessions))
        logs = self.within[:, None] * own(random, (CASES, sessions * launches))
        return states[:, :, None] + logs.reshape(CASES, sessions, launches)


def build_machine(random: np.random.Generator, noise: str, state: str) -> Machine:
    """Draw how restless the cases are."""
    between, within = (level * np.exp(random.normal(0, SCATTER, CASES)) for level in LEVELS[state])
    return Machine(between, within, noise)


def calibrate(
    logs: Numbers, state: str, past: Numbers | None = None
) -> tuple[list[Reference], list[Reference]]:
    """Make references of launches: those that know sessions, and those that take all launches alike.

    :param past: ln headline by case and night of one launch, which tell the first of the spread
    """
    sizes = (8, SMALL_BYTES, LARGE_BYTES)
    cases = [
        Case("s", "p", "e", "mpicost", f"r{n}", 0, state, "loop", 2, 2, sizes[n % 3])
        for n in range(CASES)
    ]
    numbers = np.repeat(np.arange(logs.shape[1]), logs.shape[2]).tolist()
    aware, plain = {}, {}
    for case, some in zip(cases, logs.reshape(CASES, -1), strict=True):
        told = summarize_sessions(np.exp(some).tolist(), numbers)
        one = Reference(case, math.exp(told.center), told.spread, some.size)
        aware[case] = replace(one, evidence=told.evidence)
        plain[case] = replace(one, spread=float(some.std(ddof=1)))
    known = add_priors(aware)
    for case, some in zip(cases, () if past is None else past, strict=False):
        told = estimate_night_spread(some.tolist(), [1] * len(some))
        known[case] = add_night_spread(known[case], told)
    knowing = add_session_priors(known, load_session_priors())
    return list(knowing.values()), list(add_priors(plain).values())


def limits_of(references: Sequence[Reference], nights: Sequence[int] = ()) -> Numbers:
    """Compute ln(limit): of a single launch, or the call limit of the mean of these nights."""
    return np.log(
        [
            compute_call_limit(each, values=nights) if nights else compute_band(each).upper
            for each in references
        ]
    )


@dataclass(frozen=True)
class Shares:
    """Shares of all cases and nights."""

    flat5: float
    flat10: float
    beyond_before: float  #: the band of all launches alike
    before: float  #: called by that band and five of six fresh launches
    beyond: float  #: the band that knows sessions
    suspect: float  #: and confirmed by fresh launches
    called: float  #: and beyond the call limit
    called_in_two: float  #: by the second night at the latest


def simulate(
    calibrations: int,
    noise: str,
    sessions: int,
    slower: Sequence[float] = (0.0,),
    state: str = "warm",
    nights: int = 0,
    delayed: bool = False,
) -> list[Shares]:
    """Simulate what the rules say of cases that are slower by such fractions since the first night.

    :param nights: well ones before the first, which tell of the spread between sessions
    :param delayed: whether the fresh launches but the first two are of another session
    """
    random = np.random.default_rng(1)
    found: list[list[Shares]] = [[] for _ in slower]
    for _ in range(calibrations):
        machine = build_machine(random, noise, state)
        logs = machine.launches(random, sessions, 20 if sessions == 1 else 5)
        past = machine.launches(random, nights, 1)[:, :, 0] if nights else None
        knowing, plain = calibrate(logs, state, past)
        limits = Limits.of(knowing, plain)
        healthy = machine.launches(random, NIGHTS, 1 + sum(PASSES))
        if delayed:
            later = machine.launches(random, NIGHTS, sum(PASSES[1:]))
            healthy = np.concatenate([healthy[:, :, : 1 + PASSES[0]], later], axis=2)
        for some, by in zip(found, slower, strict=True):
            some.append(judge(limits, healthy + math.log1p(by)))
    return [
        Shares(*np.mean([list(vars(each).values()) for each in some], axis=0)) for some in found
    ]


@dataclass(frozen=True)
class Limits:
    """ln(limit) of every case."""

    center: Numbers
    before: Numbers
    band: Numbers
    call: Numbers
    call_of_two: Numbers

    @classmethod
    def of(cls, knowing: Sequence[Reference], plain: Sequence[Reference]) -> Limits:
        """:param plain: the same, of all launches alike"""
        center = np.log([each.center for each in knowing])
        limits = (limits_of(plain), *(limits_of(knowing, nights) for nights in ((), (1,), (1, 1))))
        return cls(*(each[:, None] for each in (center, *limits)))


def judge(limits: Limits, nights: Numbers) -> Shares:
    """Judge nights: ln headline by case, night and launch, the first of which is the night's own."""
    first, fresh, middle = nights[:, :, 0], nights[:, :, 1:], np.median(nights, axis=2)

    def confirmed(limit: Numbers) -> NDArray[np.bool_]:
        return (first > limit) & (np.sum(fresh > limit[:, :, None], axis=2) >= 5)

    suspect = confirmed(limits.band)
    called = suspect & (middle > limits.call)
    mean = (middle[:, :-1] + middle[:, 1:]) / 2
    lasting = suspect[:, :-1] & suspect[:, 1:] & (mean > limits.call_of_two)
    said = (
        first > limits.center + math.log1p(0.05),
        first > limits.center + math.log1p(0.10),
        first > limits.before,
        confirmed(limits.before),
        first > limits.band,
        suspect,
        called,
        called[:, :-1] | called[:, 1:] | lasting,
    )
    return Shares(*(float(np.mean(each)) for each in said))


def main(calibrations: int) -> None:
    """Print the table."""
    print(f"{calibrations} calibrations of {CASES} cases, {NIGHTS} nights each; per 1,000 cases.")
    names = [each.name for each in fields(Shares)]
    print(
        f"{'cache':6}{'noise':10}{'sessions':>9}{'nights':>7}{'slower':>8}"
        + "".join(f"{name:>15}" for name in names)
    )
    for state, noise, (sessions, nights) in product(LEVELS, NOISES, KNOWN):
        shifts = (0.0, 0.1, 0.2, 0.5)
        told = simulate(calibrations, noise, sessions, shifts, state, nights)
        for slower, shares in zip(shifts, told, strict=True):
            cells = "".join(f"{1000 * share:15.2f}" for share in vars(shares).values())
            print(f"{state:6}{noise:10}{sessions:9}{nights:7}{slower:8.0%}{cells}", flush=True)


def compare_delays(calibrations: int) -> None:
    """Print what fresh launches in another session change, per 1,000 cases and night."""
    known = ((1, 0), (1, 20), (5, 60))
    print("state, sessions, nights, delayed: suspect, called; +20%: suspect, called; +50%: called")
    for state, (sessions, nights), delayed in product(LEVELS, known, (False, True)):
        shifts = (0.0, 0.2, 0.5)
        told = simulate(calibrations, "measured", sessions, shifts, state, nights, delayed)
        well, fifth, half = told
        shares = (well.suspect, well.called, fifth.suspect, fifth.called, half.called)
        cells = "".join(f"{1000 * share:10.2f}" for share in shares)
        print(f"{state:6}{sessions:3}{nights:4}{delayed!s:>6}{cells}", flush=True)


if __name__ == "__main__":
    run = compare_delays if sys.argv[2:] == ["delay"] else main
    run(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
