"""TOML read strictly, and the line on which a key stands."""

from __future__ import annotations

import re
import sys
from typing import Any

from postprocess.base.documents.strict_json import parse_number

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?")
STEP = re.compile(r"([^.\[\]]+)(?:\[(\d+)\])?")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a document with finite numbers. Raises ValueError, which names the line where it can."""
    try:
        return tomllib.loads(text, parse_float=parse_number)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("lists or tables are nested too deep") from None


def find_line(text: str, place: str) -> int:
    """Find the line of a key such as ``case[2].bytes``; of its table if the key is not there, 0 if nothing is.

    :param place: as :func:`postprocess.base.documents.records.parse_record` names it
    """
    steps = [(name, int(number or 0)) for name, number in STEP.findall(place)]
    if not steps:
        return 0
    lines = text.splitlines()
    own, key = [name for name, _ in steps], steps[-1][0]
    header, begin = ".".join(own[:-1]), 0
    if len(steps) > 1:
        begin = _find_header(lines, header, steps[-2][1])
        if not begin:
            return 0
    elif found := _find_header(lines, key, steps[0][1]):
        return found
    for number in range(begin, len(lines)):
        if HEADER.match(lines[number]):
            break
        if re.match(rf'\s*"?{re.escape(key)}"?\s*=', lines[number]):
            return number + 1
    return begin


def _find_header(lines: list[str], name: str, which: int) -> int:
    """Find the line of the n-th header of this name, from 0; 0 if there is none."""
    found = [
        number
        for number, line in enumerate(lines, 1)
        if (match := HEADER.match(line)) and match[2].replace('"', "") == name
    ]
    return found[which] if which < len(found) else 0
