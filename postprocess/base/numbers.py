"""Numbers that people type, strictly: digits 0 to 9, a point, an exponent, and nothing else.

``int`` and ``float`` also take digits of other scripts, underscores, signs and blanks around them. What looks
like no number to a reader must be none here.
"""

from __future__ import annotations

import math
import re

WHOLE = re.compile(r"[0-9]{1,30}")
DECIMAL = re.compile(r"-?[0-9]{1,30}(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,4})?")


def parse_whole(text: str) -> int:
    """Parse a whole number of zero or more. Raises ValueError if it is none."""
    if not WHOLE.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a whole number in digits 0 to 9")
    return int(text)


def parse_decimal(text: str) -> float:
    """Parse a finite number, with a point or without. Raises ValueError if it is none."""
    if not DECIMAL.fullmatch(text) or not math.isfinite(value := float(text)):
        raise ValueError(f"{text[:40]!r} is not a number such as 2.5")
    return value
