"""Data classes are read back from JSON by the types that they say, or not at all."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

import pytest

from postprocess.base.records import parse_record


class Colour(str, Enum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    number: int


@dataclass(frozen=True)
class Outer:
    text: str
    share: float
    inner: Inner
    several: tuple[Inner, ...] = ()
    pair: tuple[str, int] = ("a", 1)
    perhaps: tuple[int, ...] | None = None
    either: list[str | int] = field(default_factory=list)
    named: dict[str, Inner] = field(default_factory=dict)
    anything: Any = None
    colour: Colour = Colour.RED


WHOLE = Outer(
    "a", 1.5, Inner(1), (Inner(2), Inner(3)), ("b", 2), (4,), ["c", 5], {"d": Inner(6)}, [7]
)
LEAST = {"text": "a", "share": 1, "inner": {"number": 1}}


@pytest.mark.parametrize("record", [WHOLE, Outer("a", 1.5, Inner(1))])
def test_what_is_written_is_read(record: Outer):
    assert parse_record(json.loads(json.dumps(asdict(record))), Outer) == record


def test_what_has_a_default_may_be_missing():
    assert parse_record(LEAST, Outer) == Outer("a", 1, Inner(1))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"text": 1}, "text: 1 is not of type str"),
        ({"share": True}, "share: True is not of type float"),
        ({"inner": {"number": 1.0}}, "inner.number: 1.0 is not of type int"),
        ({"inner": []}, r"inner: \[\] is not an object"),
        ({"inner": {}}, "inner.number: is missing"),
        ({"several": [{"number": 1}, {}]}, r"several\[1\].number: is missing"),
        ({"several": {}}, "several: {} is not of type tuple"),
        ({"pair": ["a"]}, "pair: has 1 entries where 2 are due"),
        ({"perhaps": ["a"]}, r"perhaps\[0\]: 'a' is not of type int"),
        ({"named": {"d": 1}}, "named.d: 1 is not an object"),
        ({"colour": "blue"}, "colour: 'blue' is not one of red"),
        ({"colour": []}, r"colour: \[\] is not one of red"),
        ({"shape": 1}, "'shape': is not known"),
    ],
)
def test_what_is_not_of_its_type_is_named(change: dict, said: str):
    with pytest.raises(ValueError, match=f"^{said}$"):
        parse_record(LEAST | change, Outer)
