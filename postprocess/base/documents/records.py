"""Data classes read from JSON, every value by the type that its class says: nothing is converted to fit.

msgspec checks. It knows nothing of keys that stand twice, so the text is parsed by ``strict_json`` first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from postprocess.base.documents.strict_json import format_external, read_json

Record = TypeVar("Record")
Text = Annotated[str, msgspec.Meta(pattern=r"\S")]  #: that is not empty
#: Of a file or folder, below one that is known: it leads nowhere else.
FileName = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9_][A-Za-z0-9_.+-]{0,200}\Z")]
Amount = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
#: Of a time in seconds or a rate in MB/s: no machine has one beyond, and no ratio of two such overflows.
LEAST_MEASURED, MOST_MEASURED = 1e-12, 1e12
Measured = Annotated[float, msgspec.Meta(ge=LEAST_MEASURED, le=MOST_MEASURED)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

PLACE = re.compile(r" - at (?:`key` in )?`\$\.?(.*)`$", re.DOTALL)
LACKING = re.compile(r"Object missing required field `(.*?)`")
ANY_KEY = "[...]"  #: in a place of msgspec's, in the place of a key of a mapping


def read_record(path: Path, kind: type[Record], exact: bool = True) -> Record:
    """Read a file that holds one record, as :func:`parse_record` does. Raises OSError or ValueError."""
    return parse_record(read_json(path), kind, exact)


def parse_record(value: Any, kind: type[Record], exact: bool = False) -> Record:
    """Parse a value of JSON as a data class, or as another type. What has a default may be missing.

    :param exact: whether to refuse keys that a data class has not
    :raises ValueError: ``cases[3].bytes: what is wrong with it``
    """
    try:
        return _convert(value, kind, exact)
    except RecursionError:
        raise ValueError("lists or objects are nested too deep") from None


def _convert(value: Any, kind: type[Record], exact: bool) -> Record:
    try:
        record = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(_explain(value, kind, str(error))) from None
    if exact:
        refuse_unknown_keys(value, msgspec.to_builtins(record))
    return record


def _explain(value: Any, kind: Any, said: str) -> str:
    """Return an error of msgspec's as ``place: what is wrong``, keys of mappings by their names."""
    found = PLACE.search(said)
    place = found[1] if found else ""
    if ANY_KEY in place:
        place = _name_keys(value, kind, place)
    said = PLACE.sub("", said)
    if lacking := LACKING.fullmatch(said):
        place, said = f"{place}.{lacking[1]}".lstrip("."), "is missing"
    return f"{place}: {said}" if place else said


def _name_keys(value: Any, kind: Any, place: str) -> str:
    """Name the keys of mappings in which the fault is: without all others the fault is still there."""
    copy = node = deepcopy(value)
    named = ""
    for number, name in re.findall(r"\[(\d+|\.\.\.)\]|([^.\[]+)", place):
        key = int(number) if number.isdigit() else name
        if number == "...":
            whole = dict(node)
            for key in whole:
                node.clear()
                node[key] = whole[key]
                if _is_faulty(copy, kind):
                    break
        named += f"[{key}]" if number.isdigit() else f".{format_external(key)[1:-1]}"
        node = node[key]
    return named.removeprefix(".")


def _is_faulty(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return True
    return False


def find_other_field(one: object, two: object, names: Iterable[str]) -> str:
    """Find the first of some fields in which two records differ; empty if there is none."""
    return next((name for name in names if getattr(one, name) != getattr(two, name)), "")


def is_measurable(value: float) -> bool:
    """Return whether a number can be a time in seconds or a rate in MB/s."""
    return LEAST_MEASURED <= value <= MOST_MEASURED


def require_fields(value: Mapping[str, Any], kind: type, but: Collection[str] = ()) -> None:
    """Refuse an object without a field of a data class, also one with a default. Raises ValueError.

    :param but: fields that came later
    """
    for each in fields(kind):
        if each.name not in value and each.name not in but:
            raise ValueError(f"{each.name}: is missing")


def refuse_unknown_keys(value: Any, known: Any, place: str = "") -> None:
    """Refuse keys that are not in ``known``, which has the same structure. Raises ValueError."""
    if isinstance(value, dict):
        if unknown := value.keys() - known.keys():
            raise ValueError(f"{place}{format_external(min(unknown))[1:-1]}: is not a known key")
        for key, each in value.items():
            refuse_unknown_keys(each, known[key], f"{place}{key}.")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            refuse_unknown_keys(each, known[number], f"{place.removesuffix('.')}[{number}].")
