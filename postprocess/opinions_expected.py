"""Between what the ratio of two programs must lie, and why: data, each line with its reason.

A ratio is of two programs' values for the same operation, bytes, MPI and processes: of mpicost the filtered
mean of the longest time of each trial, warm, with ``MPI_Barrier``; of OSU's and IMB's collective operations
``Max Latency`` and ``t_max``. README.md in ``suite``, "Three opinions", tells the experiments.
"""

from __future__ import annotations

from dataclasses import dataclass

SMALL = 8192  #: bytes up to which a message costs latency; OSU has other counts of calls above, too
ANY = 2**62  #: bytes that nothing has
MPICOST_AND_OTHER = (("mpicost", "osu"), ("mpicost", "imb"))
OSU_AND_IMB = (("osu", "imb"),)


@dataclass(frozen=True)
class Expected:
    """The range of a ratio; outside of it one of the two programs is wrong."""

    low: float
    high: float
    reason: str


@dataclass(frozen=True)
class Rule:
    """A range, and of which ratios it is. ``None`` for the routines is any."""

    pairs: tuple[tuple[str, str], ...]
    routines: tuple[str, ...] | None
    most_bytes: int
    expected: Expected

    def fits(self, over: str, under: str, routine: str, size: int) -> bool:
        """Whether it is of this ratio."""
        known = self.routines is None or routine in self.routines
        return (over, under) in self.pairs and known and size <= self.most_bytes


RULES = (
    Rule(
        MPICOST_AND_OTHER,
        ("pingpong",),
        SMALL,
        Expected(
            0.67,
            3.0,
            "OSU and IMB play ping-pong in a loop; before each round trip of mpicost is a barrier, which one "
            "rank leaves later than the other, and the first message waits for it",
        ),
    ),
    Rule(
        MPICOST_AND_OTHER,
        None,
        SMALL,
        Expected(
            0.6,
            1.67,
            "the same calls with one barrier between; mpicost averages the slowest rank of each call, the "
            "others the calls of each rank; at this size a barrier's exit and a clock's reading count",
        ),
    ),
    Rule(
        MPICOST_AND_OTHER,
        None,
        ANY,
        Expected(
            0.75,
            1.33,
            "the same calls with one barrier between: what is left is doubles for floats in reductions, and "
            "where the buffers lie",
        ),
    ),
    Rule(
        OSU_AND_IMB,
        ("barrier",),
        ANY,
        Expected(
            0.67,
            1.8,
            "IMB times the whole loop, OSU every call: its two readings of the clock count",
        ),
    ),
    Rule(
        OSU_AND_IMB,
        None,
        SMALL,
        Expected(
            0.6,
            1.67,
            "the same statistic; OSU warms up longer, and at this size a barrier's exit counts",
        ),
    ),
    Rule(
        OSU_AND_IMB,
        None,
        ANY,
        Expected(0.75, 1.33, "the same calls and the same statistic"),
    ),
)


def expected(over: str, under: str, routine: str, size: int) -> Expected:
    """The range of one program's value over another's: that of the first rule which fits.

    :raises ValueError: for two programs that are not compared.
    """
    for rule in RULES:
        if rule.fits(over, under, routine, size):
            return rule.expected
    raise ValueError(f"no range is stated for {over} over {under}")
