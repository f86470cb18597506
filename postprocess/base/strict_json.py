"""Parse strict JSON: no NaN, no duplicate keys, and every field read by its type."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from postprocess.base import files
from postprocess.base.formats import parse_utc

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NOT_FINITE = re.compile(r"[-+]?(nan|inf)", re.IGNORECASE)
LARGEST = 1e150  #: largest number with a point; a product of larger ones may overflow
INTEGER_DIGITS = 20  #: enough for 64 bits, without the sign
INTEGER_LIMIT = 2**63
SHOWN = 60  #: characters of a wrong value that an error quotes


def parse_json(text: str) -> Any:
    """Parse one value by RFC 8259, with finite numbers and unique keys only.

    Raises json.JSONDecodeError if the text is not JSON, and a plain ValueError if it breaks one of the two
    further rules, also for a number that a C library spells NaN.
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse,
            parse_float=parse_number,
            parse_int=_integer,
        )
    except json.JSONDecodeError as error:
        if NOT_FINITE.match(text, error.pos):
            raise _not_finite(text[error.pos :]) from None
        raise
    except RecursionError:
        raise ValueError("lists or objects are nested too deep") from None


def read_json(path: Path) -> Any:
    """Read a file that holds one JSON value, as :func:`parse_json` does. Raises OSError or ValueError."""
    return parse_json(files.read_text(path))


def format_external(value: object) -> str:
    """Format a value from outside for an error line: escaped and shortened."""
    text = repr(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


@dataclass(frozen=True)
class JsonObject:
    """One JSON object, whose fields are read by type. A wrong field raises ValueError.

    The text of the error is ``key: what is wrong with it``.
    """

    fields: Mapping[str, Any]
    within: str = ""  #: path of this object, as in ``timer.``

    def get(self, key: str, *kinds: type) -> Any:
        """Return the field, whose type must be exactly one of ``kinds``: true is not an integer."""
        if key not in self.fields:
            raise ValueError(f"{self.within}{key}: is missing")
        value = self.fields[key]
        if type(value) not in kinds:
            names = " or ".join(kind.__name__ for kind in kinds)
            raise ValueError(f"{self.within}{key}: {format_external(value)} is not of type {names}")
        return value

    def text(self, key: str) -> str:
        value = self.get(key, str)
        if not value.strip():
            raise ValueError(f"{self.within}{key}: is empty")
        return value

    def moment(self, key: str) -> datetime:
        """Return a date in UTC."""
        text = self.text(key)
        try:
            return parse_utc(text)
        except ValueError as error:
            raise ValueError(f"{self.within}{key}: {error}") from None

    def word(self, key: str, words: tuple[str, ...]) -> str:
        value = self.get(key, str)
        if value not in words:
            raise ValueError(f"{self.within}{key}: {format_external(value)} is not one of {', '.join(words)}")
        return value

    def integer(self, key: str, least: int = 0) -> int:
        """Return a 64-bit integer of at least ``least``."""
        value = self.get(key, int)
        if not least <= value < INTEGER_LIMIT:
            raise ValueError(
                f"{self.within}{key}: {format_external(value)} is not an integer of {least} or more"
            )
        return value

    def number(self, key: str, least: float = 0.0) -> float:
        value = float(self.get(key, int, float))
        if not value >= least:
            raise ValueError(f"{self.within}{key}: {format_external(value)} is less than {least:g}")
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean; numbers and strings are refused."""
        return self.get(key, bool)

    def object(self, key: str) -> JsonObject:
        """Return a nested object, whose errors name ``key.inner``."""
        return JsonObject(self.get(key, dict), f"{self.within}{key}.")

    def objects(self, key: str) -> list[JsonObject]:
        """Return a list of objects, which must not be empty."""
        values = self.get(key, list)
        if not values or any(type(value) is not dict for value in values):
            raise ValueError(f"{self.within}{key}: is not a list of objects")
        return [JsonObject(value, f"{self.within}{key}.") for value in values]

    def texts(self, key: str) -> list[str]:
        """Return a list of strings, none of them empty."""
        values = self.get(key, list)
        if any(type(value) is not str or not value.strip() for value in values):
            raise ValueError(f"{self.within}{key}: is not a list of names")
        return values

    def series(self, key: str, length: int, zero: bool = True) -> NDArray[np.float64]:
        """Return an array of ``length`` numbers, none negative and, unless ``zero``, none zero."""
        values = self._list(key, length)
        for number, value in enumerate(values, 1):
            if type(value) not in (int, float) or value < 0 or (value == 0 and not zero):
                kind = "zero or more" if zero else "more than zero"
                raise ValueError(f"{self.within}{key}: trial {number} is {format_external(value)}, not {kind}")
        return _build_array(values, "float64")

    def sparse_series(self, key: str, length: int, bounds: tuple[float, float]) -> list[float | None]:
        """Return ``length`` numbers within ``bounds``, with None for null."""
        values, (least, most) = self._list(key, length), bounds
        for number, value in enumerate(values, 1):
            if value is not None and not (type(value) in (int, float) and least <= value <= most):
                what = f"number {number} is {format_external(value)}"
                raise ValueError(f"{self.within}{key}: {what}, not {least:g} to {most:g}")
        return values

    def bits(self, key: str, length: int) -> NDArray[np.bool_]:
        """Return ``length`` integers 0 or 1, as a boolean array."""
        values = self._list(key, length)
        for number, value in enumerate(values, 1):
            if type(value) is not int or value not in (0, 1):
                raise ValueError(f"{self.within}{key}: trial {number} is {format_external(value)}, not 0 or 1")
        return _build_array(values, "bool")

    def _list(self, key: str, length: int) -> list[Any]:
        values = self.get(key, list)
        if len(values) != length:
            raise ValueError(f"{self.within}{key}: has {len(values)} entries where {length} are due")
        return values


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"{format_external(twice)}: the key is there twice")
    return fields


def _not_finite(text: str) -> ValueError:
    return ValueError(f"{format_external(text[:12])} is not a finite number")


def _refuse(text: str) -> float:
    raise _not_finite(text)


def parse_number(text: str) -> float:
    """Parse a number with a point or an exponent. Raises ValueError if it is not finite, or too large."""
    value = float(text)
    if not math.isfinite(value):
        raise _not_finite(text)
    if abs(value) > LARGEST:
        raise ValueError(f"{format_external(text[:12])} is larger than any number here ({LARGEST:g})")
    return value


def _integer(text: str) -> int:
    if len(text.lstrip("-")) > INTEGER_DIGITS:
        raise ValueError(f"{format_external(text[:12])}... has more digits than any integer here")
    return int(text)


def _build_array(values: list[Any], kind: str) -> NDArray[Any]:
    import numpy  # imported here, so that readers of site files do not wait for it

    return numpy.array(values, dtype=kind)
