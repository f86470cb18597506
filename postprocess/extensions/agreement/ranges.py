"""The expected ranges of the ratios of two programs: data, each range with its reason.

A ratio is of two programs' values for the same operation, bytes, MPI and processes: of mpicost the filtered
mean of the longest time of each trial, warm, with ``MPI_Barrier``; of OSU's and IMB's collective operations
``Max Latency`` and ``t_max``. README.md in ``suite``, "Three opinions", tells the experiments.
"""

from __future__ import annotations

from dataclasses import dataclass

from postprocess.model.routines.mpicost import ROUTINES

SMALL = 8192  #: bytes up to which a message costs latency; OSU has other counts of calls above, too
ANY = 2**62  #: bytes; no message is as large
MPICOST_AND_OTHER = (("mpicost", "osu"), ("mpicost", "imb"))
OSU_AND_IMB = (("osu", "imb"),)
IN_PAIRS = tuple(each.name for each in ROUTINES if each.in_pairs)
ROOTED = tuple(each.name for each in ROUTINES if each.rooted)


@dataclass(frozen=True)
class ExpectedRange:
    """The range of a ratio; outside of it one of the two programs is wrong."""

    low: float
    high: float
    reason: str


@dataclass(frozen=True)
class Rule:
    """A range, and the ratios that it holds for; ``None`` for the routines means any."""

    pairs: tuple[tuple[str, str], ...]
    routines: tuple[str, ...] | None
    most_bytes: int
    expected: ExpectedRange

    def applies_to(self, over: str, under: str, routine: str, size: int) -> bool:
        """Return whether it is of this ratio."""
        known = self.routines is None or routine in self.routines
        return (over, under) in self.pairs and known and size <= self.most_bytes


RULES = (
    Rule(
        MPICOST_AND_OTHER,
        IN_PAIRS,
        SMALL,
        ExpectedRange(
            0.6,
            2.0,
            "OSU and IMB loop; mpicost has a barrier before each round trip, which one rank leaves first, and "
            "takes the longer of both ranks' times (Open MPI, 1 KiB: 1.2)",
        ),
    ),
    Rule(
        MPICOST_AND_OTHER,
        ROOTED,
        SMALL,
        ExpectedRange(
            0.5,
            2.0,
            "the root and the others do not wait for each other; the result depends on who leaves the barrier "
            "first (MPICH, bcast of 8 B: 0.66)",
        ),
    ),
    Rule(
        MPICOST_AND_OTHER,
        None,
        SMALL,
        ExpectedRange(
            0.6,
            1.67,
            "same calls, one barrier between; barrier exit and clock readings matter below 1 us (Open MPI, "
            "barrier: 1.3; MPICH, allreduce of 1 KiB: 0.74)",
        ),
    ),
    Rule(
        MPICOST_AND_OTHER,
        None,
        ANY,
        ExpectedRange(
            0.75,
            1.33,
            "same calls, one barrier between; buffer placement and the data type of reductions (double, "
            "float) remain (measured: 0.93 to 1.03 in eight of ten cases)",
        ),
    ),
    Rule(
        OSU_AND_IMB,
        None,
        SMALL,
        ExpectedRange(
            0.6,
            1.67,
            "same statistic; IMB times the barrier in a loop, OSU every call (Intel MPI: 1.3), and slow first "
            "calls can leave a trace",
        ),
    ),
    Rule(
        OSU_AND_IMB,
        None,
        ANY,
        ExpectedRange(
            0.75,
            1.33,
            "same calls, same statistic (measured: 0.94 to 1.01 in eight of ten cases)",
        ),
    ),
)


def find_expected_range(over: str, under: str, routine: str, size: int) -> ExpectedRange:
    """Find the range of one program's value over another's: that of the first rule which fits.

    :raises ValueError: for two programs that are not compared.
    """
    for rule in RULES:
        if rule.applies_to(over, under, routine, size):
            return rule.expected
    raise ValueError(f"no range is stated for {over} over {under}")
