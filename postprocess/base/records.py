"""Data classes read back from JSON, every field by the type that the class says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from itertools import repeat
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from postprocess.base import files
from postprocess.base.strict_json import format_external, parse_json

Record = TypeVar("Record")


def read_record(path: Path, kind: type[Record]) -> Record:
    """Read the object of a file that Plumbline wrote. Raises OSError, or ValueError for anything else in it."""
    return parse_record(parse_json(files.read_regular(path).decode()), kind)


def parse_record(value: Any, kind: type[Record], within: str = "") -> Record:
    """Parse an object that has the fields of a data class and no others; what has a default may be missing.

    :param within: keys that lead here, as in ``cases[0].``, for the ValueError ``key: what is wrong``
    """
    if type(value) is not dict:
        raise ValueError(f"{within.rstrip('.')}: {format_external(value)} is not an object")
    kinds = _field_types(kind)
    known = fields(kind)  # type: ignore[arg-type]
    if unknown := value.keys() - kinds.keys():
        raise ValueError(f"{within}{format_external(min(unknown))}: is not known")
    needed = [e.name for e in known if e.default is MISSING and e.default_factory is MISSING]
    if missing := [name for name in needed if name not in value]:
        raise ValueError(f"{within}{missing[0]}: is missing")
    return kind(
        **{name: parse_value(each, kinds[name], f"{within}{name}") for name, each in value.items()}
    )


def parse_value(value: Any, kind: Any, where: str) -> Any:
    """Parse a value of a type of the data classes here. Raises ValueError, ``where: what is wrong``."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin is UnionType:
        plain = next((each for each in inner if type(value) is each), None)
        other = next(each for each in inner if each is not NoneType)
        return value if plain else parse_value(value, other, where)
    if origin in (tuple, list) and type(value) is list:
        kinds = repeat(inner[0]) if origin is list or inner[-1] is ... else inner
        if isinstance(kinds, tuple) and len(kinds) != len(value):
            raise ValueError(f"{where}: has {len(value)} entries where {len(kinds)} are due")
        named = enumerate(zip(value, kinds, strict=False))
        return origin(parse_value(e, each, f"{where}[{n}]") for n, (e, each) in named)
    if origin in (dict, Mapping) and type(value) is dict:
        return {key: parse_value(each, inner[1], f"{where}.{key}") for key, each in value.items()}
    if is_dataclass(kind):
        return parse_record(value, kind, f"{where}.")
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _member(value, kind, where)
    if type(value) is kind or (kind is float and type(value) is int):
        return value
    raise ValueError(f"{where}: {format_external(value)} is not of type {_name(kind)}")


def _member(value: Any, kind: type[Enum], where: str) -> Enum:
    words = [each.value for each in kind]
    if value not in words:
        raise ValueError(f"{where}: {format_external(value)} is not one of {', '.join(words)}")
    return kind(value)


def _name(kind: Any) -> str:
    return getattr(get_origin(kind) or kind, "__name__", str(kind))


@cache
def _field_types(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)
