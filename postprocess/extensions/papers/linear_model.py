"""The three-parameter model of a message-passing operation, its metrics, and what composition is faster.

Of Taboada et al.: T(n, p) = t0 + tb n + ti tb n / (t0 + tb n) seconds for n bytes. t0 is the time of an empty
message; tb and ti are slope and intercept of the regression of T - t0 on n, for long messages. ``n`` is what
their tables take. For bcast, reductions and scan it is the vector; for scatter, gather and allgather the sum
over all processes; for alltoall the whole send buffer of one process.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

#: What a model may grow with, by the form in print
TERMS: dict[str, Callable[[int], float]] = {
    "": lambda p: 1.0,
    "p": float,
    "ceil(log2 p)": lambda p: math.ceil(math.log2(p)),
    "ceil(log2 2p)": lambda p: math.ceil(math.log2(2 * p)),
}
TERM = re.compile(
    r"([+-]?)(?:([0-9]+(?:\.[0-9]+)?)?\*?(p|ceil\(log2 p\)|ceil\(log2 2p\))|([0-9]+(?:\.[0-9]+)?))"
)
#: How many times n bytes cross from one process to another, for a model's n bytes
FACTORS: dict[str, Callable[[int], float]] = {
    "send": lambda p: 1,
    "barrier": lambda p: p - 1,
    "bcast": lambda p: p - 1,
    "alltoall": lambda p: p - 1,
    "reduce_sum": lambda p: p - 1,
    "scan_sum": lambda p: p - 1,
    "scatter": lambda p: (p - 1) / p,
    "gather": lambda p: (p - 1) / p,
    "allreduce_sum": lambda p: 2 * (p - 1),
    "allgather": lambda p: (p - 1) * (p + 1) / p,
    "reduce_scatter_sum": lambda p: (p - 1) * (p + 1) / p,
}
#: What may replace an operation; each step moves the same n
COMPOSITIONS: dict[str, tuple[str, ...]] = {
    "bcast": ("scatter", "allgather"),
    "allgather": ("gather", "bcast"),
    "allreduce_sum": ("reduce_sum", "bcast"),
}
SIZES = tuple(2.0 ** (k / 8) for k in range(8 * 30 + 1))  #: among which crossovers are looked for: to 1 GiB
PRECISION = 1e-9  #: relative, of a crossover


@dataclass(frozen=True)
class Growth:
    """A number that grows with the processes: a sum of terms, each a factor and one of ``TERMS``."""

    text: str  #: as printed
    terms: tuple[tuple[float, str], ...]

    @classmethod
    def parse(cls, text: str) -> Growth:
        """Parse what is printed, as in ``-3+16*ceil(log2 p)``. Raises ValueError for anything else."""
        found, at = [], 0
        while match := TERM.match(text, at):
            if at and not match[1]:
                break
            factor = float(match[2] or match[4] or 1)
            found.append((-factor if match[1] == "-" else factor, match[3] or ""))
            at = match.end()
        if not text or at < len(text):
            raise ValueError(f"{text!r} is not a sum of numbers, p and ceil(log2 p); write 3+8*ceil(log2 p)")
        return cls(text, tuple(found))

    def at(self, processes: int) -> float:
        """Compute the number at a count of processes."""
        return sum(factor * TERMS[name](processes) for factor, name in self.terms)

    def scaled(self, by: float) -> Growth:
        """Return this in another unit."""
        return Growth(self.text, tuple((factor * by, name) for factor, name in self.terms))


class TimeModel(Protocol):
    """What tells a time in seconds of a size in bytes at a count of processes."""

    def time(self, size: float, processes: int) -> float:
        """Compute the time of ``size`` bytes in seconds."""


@dataclass(frozen=True)
class LinearModel:
    """t0(p) and ti(p) in seconds, tb(p) in seconds per byte."""

    t0: Growth
    ti: Growth
    tb: Growth

    def time(self, size: float, processes: int) -> float:
        """Compute the time of ``size`` bytes in seconds."""
        start, moving = self.t0.at(processes), self.tb.at(processes) * size
        return start + moving + self.ti.at(processes) * moving / (start + moving)


def compute_peak_startup(model: LinearModel, routine: str, counts: Sequence[int]) -> float:
    """Compute the largest aggregated specific performance F(p) / t0(p), in bytes/s."""
    return max(FACTORS[routine](p) / model.t0.at(p) for p in counts)


def compute_peak_bandwidth(model: LinearModel, routine: str, counts: Sequence[int]) -> float:
    """Compute the largest aggregated asymptotic bandwidth F(p) / tb(p), in bytes/s."""
    return max(FACTORS[routine](p) / model.tb.at(p) for p in counts)


def list_powers_of_two(least: int, most: int) -> list[int]:
    """List the powers of two from ``least`` to ``most``: the counts over which the paper takes a peak."""
    return [2**k for k in range(most.bit_length()) if least <= 2**k <= most]


def find_crossovers(models: Mapping[str, TimeModel], routine: str, processes: int) -> list[tuple[float, str]]:
    """Find where a composition begins to replace an operation, and where it no longer does.

    Each is a size in bytes and the side, ``above`` or ``below``, on which the composition is faster.
    """

    def gain(size: float) -> float:  # seconds that the composition saves
        steps = (models[step].time(size, processes) for step in COMPOSITIONS[routine])
        return models[routine].time(size, processes) - sum(steps)

    found = []
    for low, high in pairwise(SIZES):
        if (gain(low) > 0) != (gain(high) > 0):
            side = "above" if gain(high) > 0 else "below"
            found.append((_bisect(gain, low, high), side))
    return found


def _bisect(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function changes its sign between two sizes; where it jumps, the size before."""
    positive = function(low) > 0
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        low, high = (middle, high) if (function(middle) > 0) == positive else (low, middle)
    return low
