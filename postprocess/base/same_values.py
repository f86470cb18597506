"""What was computed and kept, held against what is computed anew: the same but for the rounding of numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from postprocess.base.formats import parse_decimal

ROUNDING = 1e-9  #: relative, between processors
NAMES = re.compile(r'(?<=\bid=")[^"]+|(?<=href="#)[^"]+|(?<=url\(#)[^)]+')
#: Of a picture: a coordinate may be rounded otherwise
PICTURE = re.compile(r"<svg .*?</svg>", re.S)
COORDINATE = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
NEAR = 0.11  #: of two coordinates, which have one decimal


def is_same(ours: Any, theirs: Any) -> bool:
    """Return whether two values are the same but for the rounding of numbers, also of those in texts."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        return ours.keys() == theirs.keys() and all(is_same(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(is_same, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float | int) and not isinstance(theirs, bool):
        return math.isclose(ours, theirs, rel_tol=ROUNDING)
    if isinstance(ours, str) and isinstance(theirs, str) and ours != theirs:
        try:
            return is_same(parse_decimal(ours), parse_decimal(theirs))
        except ValueError:
            return False
    return type(ours) is type(theirs) and ours == theirs


def is_same_page(ours: str, theirs: str) -> bool:
    """Return whether two pages say the same: all but names and rounding within pictures."""
    here, there = (PICTURE.split(each) for each in (ours, theirs))
    pictures = [PICTURE.findall(each) for each in (ours, theirs)]
    return here == there and all(map(_is_same_picture, *pictures))


def _is_same_picture(ours: str, theirs: str) -> bool:
    one, two = _rename(ours), _rename(theirs)
    if COORDINATE.split(one) != COORDINATE.split(two):
        return False
    numbers = zip(COORDINATE.findall(one), COORDINATE.findall(two), strict=True)
    return all(a == b or ("." in a + b and abs(float(a) - float(b)) < NEAR) for a, b in numbers)


def _rename(picture: str) -> str:
    """Name the parts of a picture by their order: each drawing gives them other names."""
    known: dict[str, str] = {}
    return NAMES.sub(lambda name: known.setdefault(name[0], f"part{len(known)}"), picture)
