"""False alarms and power of the sequential test over sessions, by simulation.

Usage: ``python -m tests.statistical.simulated_sessions [MACHINES]``

1,000 cases of one machine, whose spreads between sessions and between launches scatter by 0.3 on the logarithm
about the median of their class. A reference has sessions of ten launches; a night is the median of five. Noise
is normal, or that of real sessions and launches. ``days``: each session is of a day of its own, which brings as
much variance as the sessions of a day differ by; else all are of one day. Priors, limits and rules are the
package's own functions.
"""

import math
import sys
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.references.reference_file import load_session_priors
from postprocess.stats.band import compute_band
from postprocess.stats.detection import LEAST_SESSIONS, LONGEST_RUN, compute_gross_distance, compute_run_limit
from postprocess.stats.priors import SMALL_BYTES, add_priors, add_session_priors
from postprocess.stats.sessions import DAY_SHARE, SessionValue, summarize_sessions
from tests.statistical.noise import NOISES, measured_sessions, normal

CASES, SCATTER = 1_000, 0.3
#: Median spreads between sessions and between launches
LEVELS = {"large": (0.015, 0.02), "small": (0.025, 0.03), "restless": (0.04, 0.04)}
LAUNCHES, NIGHT = 10, 5  #: of a session behind a reference, and of a night
NIGHTS = 20  #: judged by each reference, one after the other
SESSIONS = (1, 3, 5, 10)  #: behind the reference
SLOWER = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
Numbers = NDArray[np.float64]
STATES = {"normal": normal, "measured": measured_sessions}


@dataclass(frozen=True)
class Machine:
    """How restless each case is, and the sources of its noise."""

    between: Numbers
    within: Numbers
    noise: str
    days: bool

    def launches(self, random: np.random.Generator, sessions: int, launches: int) -> Numbers:
        """Simulate ln value by case, session and launch."""
        state, own = STATES[self.noise], NOISES[self.noise]
        states = self.between[:, None] * state(random, (CASES, sessions))
        if self.days:
            day = math.sqrt(DAY_SHARE) * self.between
            states = states + day[:, None] * random.normal(size=(CASES, sessions))
        logs = self.within[:, None] * own(random, (CASES, sessions * launches))
        return states[:, :, None] + logs.reshape(CASES, sessions, launches)


@dataclass(frozen=True)
class Shares:
    """Shares of all cases: by night, or within so many sessions of a slowdown."""

    beyond: float  #: beyond the band, by night
    called: float  #: by night
    tonight: float
    in_three: float
    in_ten: float


def calibrate(logs: Numbers, days: bool) -> list[Reference]:
    """Make references of launches, by case, session and launch."""
    sizes = (8, SMALL_BYTES, 10_000)
    cases = [
        Case("s", "p", "e", "mpicost", f"r{n}", 0, "evict", "loop", 2, 2, sizes[n % 3]) for n in range(CASES)
    ]
    numbers = np.repeat(np.arange(logs.shape[1]), logs.shape[2]).tolist()
    told = numbers if days else [0] * len(numbers)
    found = {}
    for case, some in zip(cases, logs.reshape(CASES, -1), strict=True):
        means = summarize_sessions(np.exp(some).tolist(), numbers, told)
        one = Reference(case, math.exp(means.center), means.spread, some.size)
        found[case] = replace(one, evidence=means.evidence)
    return list(add_session_priors(add_priors(found), load_session_priors()).values())


@dataclass(frozen=True)
class Limits:
    """The limits of all cases, as arrays."""

    band: Numbers
    gross: Numbers
    runs: dict[int, Numbers]  #: of each of so many sessions


def find_limits(references: list[Reference], days: bool) -> Limits:
    """Find the limits of nights that are each of another day, or all of the reference's."""

    def some(number: int) -> list[SessionValue]:
        return [SessionValue(0.0, NIGHT, 100 + n if days else 0) for n in range(number)]

    return Limits(
        np.array([math.log(compute_band(r, median_of=NIGHT).upper / r.center) for r in references]),
        np.array([compute_gross_distance(r, NIGHT) for r in references]),
        {
            number: np.array([compute_run_limit(r, some(number)) for r in references])
            for number in range(LEAST_SESSIONS, LONGEST_RUN + 1)
        },
    )


def judge(logs: Numbers, limits: Limits) -> Numbers:
    """Judge nights, by case and night: which are called."""
    called = logs > limits.gross[:, None]
    for number, limit in limits.runs.items():
        for night in range(number - 1, logs.shape[1]):
            least = logs[:, night - number + 1 : night + 1].min(axis=1)
            called[:, night] |= least > limit
    return called


def simulate(
    machines: int, level: str, noise: str, sessions: int, slower: float, days: bool, seed: int = 1
) -> Shares:
    """Simulate what the rule says of cases that are slower by a fraction from the first night on."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(machines):
        between, within = (value * np.exp(random.normal(0, SCATTER, CASES)) for value in LEVELS[level])
        machine = Machine(between, within, noise, days)
        references = calibrate(machine.launches(random, sessions, LAUNCHES), days)
        centers = np.log([reference.center for reference in references])
        limits = find_limits(references, days)
        nights = np.median(machine.launches(random, NIGHTS, NIGHT), axis=2)
        logs = nights + math.log1p(slower) - centers[:, None]
        called = judge(logs, limits)
        shares = [logs[:, 0] > limits.band, called, called[:, 0]]
        shares += [called[:, :3].any(axis=1), called[:, :10].any(axis=1)]
        found.append([float(share.mean()) for share in shares])
    return Shares(*np.mean(found, axis=0))


def main(machines: int) -> None:
    """Print a table row for each machine and reference."""
    for level, noise, days, sessions in product(LEVELS, STATES, (False, True), SESSIONS):
        rows = {by: simulate(machines, level, noise, sessions, by, days) for by in SLOWER}
        healthy = rows.pop(0.0)
        spreads = ", ".join(f"{value:.1%}" for value in LEVELS[level])
        seen = " | ".join(f"{row.tonight:.0%} {row.in_three:.0%} {row.in_ten:.0%}" for row in rows.values())
        what = f"{spreads} | {noise} | {'days' if days else 'one day'} | {sessions}"
        print(f"| {what} | {1000 * healthy.beyond:.0f} | {1000 * healthy.called:.2f} | {seen} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
