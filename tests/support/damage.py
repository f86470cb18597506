"""Damage to files, as Hypothesis strategies: flipped bits, changed text, and other values where one stood."""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

#: What readers stumble over: other types, numbers that overflow, text that ends or nests something.
TOKENS = (
    *(b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"-1", b"0", b"1.5", b"9" * 30, b"1e-320"),
    *(b"[" * 2000, b'{"":' * 2000, b"{}", b"[]", b'""', b'"', b"\\", b",", b":"),
    *(b"\n", b"\r", b"\t", b"\0", b"\xff", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\x1b[31m"),
    *("\u0663".encode(), b"../..", b"a" * 5000),
)
#: In the place of a value of JSON.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 7.5, -7.5, 1e308, 1e-320, 2**63, 10**19, 10**30),
    *("", " ", "x", "\0", "\ud800", "a\nb", "../..", "2026-11-21T09:00:00Z", "1e999"),
    *([], [None], [[]], ["x", "x"], [1, "x"], {}, {"x": None}, {"": {}}, {"x": {"x": []}}),
)


@st.composite
def flipped(draw: st.DrawFn, data: bytes) -> bytes:
    """The same with one bit changed."""
    changed = bytearray(data)
    changed[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
    return bytes(changed)


@st.composite
def edited(draw: st.DrawFn, data: bytes) -> bytes:
    """The same after up to four edits: a piece is cut out, comes twice, or gives way to something else."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 40) | st.integers(0, len(data) + 1)))
        piece = draw(st.sampled_from((b"", data[start:end] * 2, *TOKENS)) | st.binary(max_size=8))
        data = data[:start] + piece + data[end:]
    return data


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value within a value of JSON, as keys and numbers."""
    yield above
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(each, (*above, key))


def changed(value: Any, way: tuple[Any, ...], new: Any) -> Any:
    """The same value of JSON with another one at the end of a way; without it where that is ``...``."""
    if not way:
        return new
    first, *rest = way
    copy = value.copy()
    if new is ... and not rest:
        del copy[first]
    else:
        copy[first] = changed(value[first], tuple(rest), new)
    return copy


@st.composite
def restructured(draw: st.DrawFn, data: bytes) -> bytes:
    """JSON, or JSON Lines, with one or two values exchanged, taken away, or put where others were."""
    lines = data.splitlines() if data.count(b"\n{") else [data]
    number = draw(st.integers(0, len(lines) - 1))
    value = json.loads(lines[number])
    for _ in range(draw(st.integers(1, 2))):
        ways = list(places(value))
        way, other = draw(st.sampled_from(ways)), draw(st.sampled_from(ways))
        new = draw(st.sampled_from((*VALUES, ...)) | st.just(look_up(value, other)))
        value = changed(value, way, {} if new is ... and not way else new)
    lines[number] = json.dumps(value).encode()
    return b"\n".join(lines) + b"\n" * data.endswith(b"\n")


def look_up(value: Any, way: tuple[Any, ...]) -> Any:
    for each in way:
        value = value[each]
    return value


@st.composite
def retyped(draw: st.DrawFn, data: bytes) -> bytes:
    """A table with another word in some of its cells."""
    rows = [line.split(b"\t") for line in data.split(b"\n")]
    for _ in range(draw(st.integers(1, 3))):
        row = draw(st.sampled_from(rows))
        words = st.sampled_from([word for each in rows for word in each])
        row[draw(st.integers(0, len(row) - 1))] = draw(st.sampled_from(TOKENS) | words)
    return b"\n".join(b"\t".join(row) for row in rows)


def damaged(data: bytes) -> st.SearchStrategy[bytes]:
    """The same after any damage that fits it."""
    kinds = [edited(data), flipped(data)]
    if data.startswith(b"{"):
        kinds = [restructured(data), *kinds]
    elif b"\t" in data:
        kinds = [retyped(data), *kinds]
    return st.one_of(kinds)
