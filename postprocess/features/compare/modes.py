"""Where the medians of both sides say one thing and the pairs of launches another: mostly two modes.

The median of each side ignores which launches belong together; the ratio does not. Where each launch takes one
of two times, the medians may be alike while most pairs differ. Both figures are right, and neither tells what
happened: the ratios of the pairs do.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from postprocess.base.formats import factor, format_signed, plural

LEAST = 2  #: pairs of a mode
SHARE = 0.4  #: of the whole range that lies between two modes, at least


@dataclass(frozen=True)
class PairMode:
    """Pairs of launches whose ratios lie together."""

    pairs: int
    ratio: float  #: the median of them


@dataclass(frozen=True)
class Contradiction:
    """What the medians of both sides say, and what the pairs do."""

    medians: float  #: of the new side over the old one; above 1 is worse in every unit
    ratio: float  #: by the pairs
    pairs: tuple[float, ...]  #: the ratio of each, the smallest first
    modes: tuple[PairMode, ...]  #: two, or none if the pairs merely scatter

    @property
    def name(self) -> str:
        """What stands in the place of a change."""
        return "two modes" if self.modes else "contradictory"

    @property
    def words(self) -> str:
        """The contradiction in a sentence."""
        medians, pairs = (format_signed(each - 1) for each in (self.medians, self.ratio))
        said = f"the medians differ by {medians}, the pairs by {pairs}"
        if self.modes:
            low, high = (
                f"{plural(each.pairs, 'pair')} about {factor(each.ratio)}" for each in self.modes
            )
            return f"two modes, {low} and {high} times: {said}"
        ends = f"{factor(self.pairs[0])} to {factor(self.pairs[-1])} times"
        return f"{said}: single pairs go from {ends}"


def find_contradiction(
    differences: Sequence[float], medians: float, center: float, margin: float
) -> Contradiction | None:
    """Find whether medians and pairs contradict each other by more than the margin; None if they agree.

    :param differences: ln(new / old) of each pair; above 0 is worse
    :param medians: the same of the medians of both sides
    :param center: the same as the pairs estimate it
    :param margin: on the logarithm
    """
    if len(differences) < LEAST or abs(medians - center) <= margin:
        return None
    ordered = sorted(differences)
    ratios = tuple(map(math.exp, ordered))
    return Contradiction(math.exp(medians), math.exp(center), ratios, split_modes(ordered, margin))


def split_modes(ordered: Sequence[float], margin: float) -> tuple[PairMode, ...]:
    """Split differences at their widest gap; none if it is narrow, or leaves too few on a side."""
    gaps = [after - before for before, after in pairwise(ordered)]
    widest = max(range(len(gaps)), key=gaps.__getitem__)
    halves = ordered[: widest + 1], ordered[widest + 1 :]
    far = gaps[widest] > max(margin, SHARE * (ordered[-1] - ordered[0]))
    if not far or min(map(len, halves)) < LEAST:
        return ()
    return tuple(PairMode(len(each), math.exp(statistics.median(each))) for each in halves)
