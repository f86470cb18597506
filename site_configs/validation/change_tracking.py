"""Find what a site file changed in the values that our functions had checked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from postprocess.base.strict_json import parse_json


def copy_plain(thing: Any) -> Any:
    """Copy a value down to plain lists, mappings, texts and numbers."""
    return parse_json(json.dumps(thing, default=str))


def find_changes(made: Any, now: Any, where: str = "") -> Iterator[str]:
    """Find the places at which something was changed or removed; an added key is none."""
    if isinstance(made, dict) and isinstance(now, dict):
        for key, value in made.items():
            place = f"{where}.{key}" if where else key
            yield from find_changes(value, now[key], place) if key in now else [place]
    elif isinstance(made, list) and isinstance(now, list) and len(made) == len(now):
        for number, pair in enumerate(zip(made, now, strict=True)):
            yield from find_changes(*pair, f"{where}[{number}]")
    elif made != now:
        yield where
