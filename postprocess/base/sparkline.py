"""A row of numbers as a row of characters, one for each."""

from __future__ import annotations

import math
from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.-=+*%#"  #: where the encoding has no blocks
GAP = " "  #: for a missing number
LEAST_SPAN = 0.2  #: of the logarithm: smaller changes do not fill the whole height


def draw_sparkline(values: Sequence[float | None], encoding: str = "utf-8") -> str:
    """Draw positive numbers by their logarithm, the smallest lowest; a change of a fifth stays small."""
    known = [math.log(value) for value in values if value is not None and value > 0]
    if not known:
        return GAP * len(values)
    levels = BLOCKS if can_encode(BLOCKS, encoding) else PLAIN
    middle = (min(known) + max(known)) / 2
    span = max(max(known) - min(known), LEAST_SPAN)
    return "".join(
        GAP if value is None or value <= 0 else levels[find_level(math.log(value), middle, span)]
        for value in values
    )


def find_level(value: float, middle: float, span: float) -> int:
    """Find the level of a value, from 0 on, in a span about the middle."""
    share = (value - middle) / span + 0.5
    return min(max(int(share * len(BLOCKS)), 0), len(BLOCKS) - 1)


def can_encode(text: str, encoding: str) -> bool:
    """Return whether an encoding has all characters of a text."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
