"""Check a site file against the annotations of the classes that declare its parts.

msgspec decides whether a value is right. The message on a wrong one has its place, the value, and what to write
instead, which is the description of its annotation.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

#: Descriptions of types whose annotation has none.
PLAIN = {str: "a text, in quotes", bool: "True or False", Sequence: "a list", Mapping: "{'name': value}"}


def whole(pattern: str) -> str:
    """Return a regular expression that matches whole texts, in Python and in a JSON schema alike."""
    return rf"^(?:{pattern})(?!\n)$"


def one_of(words: Iterable[str]) -> Meta:
    """Return the constraint that a text is one of these words."""
    return Meta(pattern=whole("|".join(words)), description=f"one of {', '.join(words)}")


def from_least(least: int, unit: str = "number") -> Meta:
    """Return the constraint of a whole number with a least value, and its unit."""
    of = "" if unit == "number" else f" of {unit}"
    return Meta(ge=least, description=f"a whole number{of}, {least} or more")


def find_fault(value: Any, kind: Any) -> str:
    """Find the innermost part of a value that its type refuses: ``place: part: write what``; empty if none."""
    try:
        msgspec.convert(value, kind)
        right = not isinstance(value, set | frozenset)  # msgspec takes a set for a list, but it has no order
    except (msgspec.ValidationError, RecursionError):
        right = False
    for name, part, its_kind in _list_parts(value, _strip(kind)):
        if fault := find_fault(part, its_kind):
            return f"{name}: {fault}" if name else fault
    shown = list(value) if isinstance(value, tuple) else value
    return "" if right else f"{shown!r}: write {_describe(kind)}"


def check_fields(piece: Any) -> None:
    """Check the fields of an object that a site file constructs itself.

    :raises ValueError: names class, field, value and what to write.
    """
    for name, kind in get_type_hints(type(piece), include_extras=True).items():
        if fault := find_fault(getattr(piece, name), kind):
            raise ValueError(f"{type(piece).__name__}: {name}: {fault}")


def _list_parts(value: Any, kind: Any) -> Iterator[tuple[str, Any, Any]]:
    """List the parts of a value with their names, if they have any, and the types that they must have."""
    kinds = get_args(kind)
    if isinstance(value, Mapping) and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind, include_extras=True)
        for key, part in value.items():
            yield "", key, Annotated[str, one_of(hints)]
            yield key, part, hints[key]
    elif isinstance(value, Mapping) and get_origin(kind) is Mapping:
        for key, part in value.items():
            yield "", key, kinds[0]
            yield str(key), part, kinds[1]
    elif isinstance(value, list | tuple) and get_origin(kind) is Sequence:
        yield from (("", part, kinds[0]) for part in value)


def _strip(kind: Any) -> Any:
    """Strip a type of its annotations and of an alternative None."""
    if get_origin(kind) is Annotated:
        return _strip(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        first, *others = get_args(kind)
        return _strip(first) if others in ([type(None)], [msgspec.UnsetType]) else kind
    return kind


def _describe(kind: Any) -> str:
    """Describe what to write for a type."""
    if get_origin(kind) in (Union, UnionType):  # the first one stands for all
        return _describe(get_args(kind)[0])
    descriptions = [meta.description for meta in getattr(kind, "__metadata__", ()) if meta.description]
    if descriptions:
        return descriptions[-1]
    bare = _strip(kind)
    return PLAIN.get(get_origin(bare) or bare) or f"{bare.__name__}(...)"
