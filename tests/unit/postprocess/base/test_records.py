"""Data classes read from JSON: what their types say, or one line that names the place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from postprocess.base.records import Amount, Count, Text, find_line, parse_record, parse_toml, require_fields


@dataclass(frozen=True)
class Inner:
    count: Count
    pair: tuple[Amount, Amount] | None = None

    def __post_init__(self) -> None:
        if self.count == 13:
            raise ValueError("count 13 is unlucky")


@dataclass(frozen=True)
class Outer:
    name: Text
    flag: bool
    inner: tuple[Inner, ...]
    numbers: Mapping[str, Mapping[str, Amount]] = field(default_factory=dict)
    anything: Any = None


GOOD: dict[str, Any] = {
    "name": "x",
    "flag": True,
    "inner": [{"count": 0}, {"count": 2**63 - 1, "pair": [0, 1.5]}],
    "numbers": {"a.b": {"c": 1}, "d": {}},
    "anything": [{}],
}


def test_every_value_is_read_by_its_type():
    inner = (Inner(0), Inner(2**63 - 1, (0.0, 1.5)))
    read = parse_record(GOOD, Outer, exact=True)
    assert read == Outer("x", True, inner, {"a.b": {"c": 1.0}, "d": {}}, [{}])
    assert isinstance(read.numbers["a.b"]["c"], float)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": " "}, "name: "),
        ({"flag": 1}, "flag: Expected `bool`, got `int`"),
        ({"inner": {}}, "inner: Expected `array`, got `object`"),
        ({"inner": [{"count": 1.0}]}, "inner[0].count: "),
        ({"inner": [{"count": -1}]}, "inner[0].count: "),
        ({"inner": [{"count": 2**63}]}, "inner[0].count: "),
        ({"inner": [{"count": True}]}, "inner[0].count: "),
        ({"inner": [{"count": 1}, {}]}, "inner[1].count: is missing"),
        ({"inner": [{"count": 13}]}, "inner[0]: count 13 is unlucky"),
        ({"inner": [{"count": 1, "pair": [1]}]}, "inner[0].pair: "),
        ({"numbers": {"a": {}, "b.c": {"d": 1, "e": -1}}}, "numbers.b.c.e: "),
        ({"numbers": {"\n": {"x": "1"}}}, "numbers.\\n.x: Expected `float`, got `str`"),
        ({"colour": 1}, "colour: is not a known key"),
        ({"inner": [{"count": 1, "pear": 1}]}, "inner[0].pear: is not a known key"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_place(change: dict[str, Any], said: str):
    with pytest.raises(ValueError) as refused:
        parse_record(GOOD | change, Outer, exact=True)
    assert str(refused.value).startswith(said)
    assert str(refused.value).isprintable()


def test_the_key_of_the_first_of_two_faults_is_named():
    without = {key: value for key, value in GOOD.items() if key != "flag"}
    with pytest.raises(ValueError, match=r"^numbers\.b\.e: "):
        parse_record(without | {"numbers": {"a": {}, "b": {"d": 1, "e": -1}}}, Outer)


@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_what_is_no_object_is_refused(value: Any):
    with pytest.raises(ValueError, match="Expected `object`"):
        parse_record(value, Outer)


def test_further_keys_are_taken_unless_they_are_refused():
    assert parse_record(GOOD | {"colour": 1}, Outer) == parse_record(GOOD, Outer)


def test_a_field_that_must_be_there_may_not_be_left_out():
    without = {key: value for key, value in GOOD.items() if key not in ("numbers", "anything")}
    parse_record(without, Outer)
    with pytest.raises(ValueError, match="numbers: is missing"):
        require_fields(without, Outer)


TEXT = """\
title = "t"

[risk]
coverage = 0.9
[[case]]
name = "one"
[[case]]
# name = "not this"
name = "two"
"bytes" = [8]
[category.baseline]
text = "x"
"""


@pytest.mark.parametrize(
    ("place", "line"),
    [
        *(("title", 1), ("risk", 3), ("risk.coverage", 4), ("risk.confidence", 3)),
        *(("case[0].name", 6), ("case[1].name", 9), ("case[1].bytes[3]", 10), ("case[2].name", 0)),
        *(("category.baseline.text", 12), ("nothing", 0), ("", 0)),
    ],
)
def test_a_key_is_found_in_its_own_table(place: str, line: int) -> None:
    assert find_line(TEXT, place) == line


def test_what_is_no_toml_names_the_line() -> None:
    with pytest.raises(ValueError, match="line 2"):
        parse_toml('a = 1\na = "\n')
