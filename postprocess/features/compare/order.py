"""The order of the passes: blocks ABBA or BAAB, drawn, so that what drifts evenly favours no side."""

from __future__ import annotations

import random

from postprocess.features.compare.data import NEW, OLD

PAIRS_OF_BLOCK = 2
BLOCK = 4  #: passes


def draw_block(seed: int, number: int) -> tuple[str, str, str, str]:
    """Draw the sides of a block's passes. The same seed and number give the same.

    Blocks come in twos of either kind: over each two, a drift that is even favours neither side.

    :param number: from 1 on
    """
    generator = random.Random(f"{seed}:{(number - 1) // 2}")
    first = generator.random() < 0.5
    if number % 2 == 0:
        first = not first
    return (OLD, NEW, NEW, OLD) if first else (NEW, OLD, OLD, NEW)


def draw_sign(seed: int, number: int, side: str) -> int:
    """Draw which of the two launches of a side plays the new one in the control of unchanged cases."""
    return random.Random(f"{seed}:{number}:{side}").choice((-1, 1))
