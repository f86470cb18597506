"""JSON that is taken at its word only where it keeps it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.base.strict_json import LARGEST, JsonObject, format_external, parse_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**64), max_value=2**64)
    | st.floats(-LARGEST, LARGEST)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_reads_what_json_can_say(value):
    assert parse_json(json.dumps(value)) == value


@pytest.mark.parametrize(
    "text", ["NaN", "Infinity", "-Infinity", "nan", "-nan", "-nan(0x7)", "inf", "-inf", "INF", "1e999"]
)
@pytest.mark.parametrize("frame", ["%s", "[1.0, %s]", '{"a": %s}', '{"a": [%s, 1]}'])
def test_a_number_is_finite(text, frame):
    with pytest.raises(ValueError, match="is not a finite number") as caught:
        parse_json(frame % text)
    assert not isinstance(caught.value, json.JSONDecodeError)


TOO_LARGE = r"is larger than any number here \(1e\+150\)"
TWICE = "'a': the key is there twice"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, TOO_LARGE) for text in ("1e151", "-1.7e308", '{"a": [1e200]}')),
        *((text, TWICE) for text in ('{"a": 1, "a": 1}', '{"b": 1, "a": 2, "c": 3, "a": 4}')),
        ('[{"b": {"a": 1, "c": 2, "a": 3}}]', TWICE),
        *((text, None) for text in ("", "{", "[1,", '"abc', '{"a" 1}', "nope", "[1] [2]", "info")),
        *((text, None) for text in ("1" * 21, "-" + "1" * 21, "1" * 5000, "[" * 100_000)),
    ],
)
def test_what_is_not_json_or_twice_or_too_much_says_so(text, said):
    with pytest.raises(ValueError, match=said):
        parse_json(text)


def test_cut_off_text_is_a_decode_error():
    with pytest.raises(json.JSONDecodeError):
        parse_json('{"t_max": [1.0, 2.')


def test_nan_inside_a_string_is_text():
    assert parse_json('{"name": "nan inf NaN"}') == {"name": "nan inf NaN"}


def test_what_is_shown_is_short_and_on_one_line():
    assert format_external("a\nb\x1b[31m") == "'a\\nb\\x1b[31m'"
    assert len(format_external("x" * 1000)) < 70


ENTRY = JsonObject(
    {"true": True, "one": 1, "half": 0.5, "minus": -1, "huge": 2**63, "text": "word"}
    | {"blank": "  ", "none": None, "object": {"a": 1}, "objects": [{"a": 1}], "empty": []}
    | {"mixed": [{"a": 1}, 2], "series": [0, 0.5, 2], "bits": [0, 1, 1]}
)


def test_fields_of_the_right_type():
    assert ENTRY.flag("true") is True
    assert ENTRY.integer("one", least=1) == 1
    assert ENTRY.number("one") == 1.0
    assert ENTRY.number("half", least=0.5) == 0.5
    assert ENTRY.text("text") == "word"
    assert ENTRY.word("text", ("a", "word")) == "word"
    assert ENTRY.object("object").integer("a") == 1
    assert ENTRY.objects("objects")[0].integer("a") == 1
    assert ENTRY.series("series", 3).tolist() == [0.0, 0.5, 2.0]
    assert ENTRY.bits("bits", 3).tolist() == [False, True, True]
    assert ENTRY.get("none", type(None), str) is None


@pytest.mark.parametrize(
    ("ask", "key", "fault"),
    [
        (JsonObject.integer, "nothing", "is missing"),
        (JsonObject.integer, "true", "not of type int"),
        (JsonObject.integer, "half", "not of type int"),
        (JsonObject.integer, "text", "not of type int"),
        (JsonObject.integer, "minus", "not an integer of 0 or more"),
        (JsonObject.integer, "huge", "not an integer of 0 or more"),
        (lambda entry, key: entry.integer(key, least=2), "one", "not an integer of 2 or more"),
        (JsonObject.number, "true", "not of type int or float"),
        (JsonObject.number, "text", "not of type int or float"),
        (JsonObject.number, "none", "not of type int or float"),
        (JsonObject.number, "minus", "less than 0"),
        (JsonObject.flag, "one", "not of type bool"),
        (JsonObject.flag, "text", "not of type bool"),
        (JsonObject.text, "blank", "is empty"),
        (JsonObject.text, "one", "not of type str"),
        (lambda entry, key: entry.word(key, ("a", "b")), "text", "not one of a, b"),
        (JsonObject.objects, "empty", "not a list of objects"),
        (JsonObject.objects, "mixed", "not a list of objects"),
        (JsonObject.objects, "text", "not of type list"),
        (JsonObject.object, "objects", "not of type dict"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(ask, key, fault):
    with pytest.raises(ValueError, match=rf"^{key}: .*{fault}"):
        ask(ENTRY, key)


def test_a_field_inside_another_is_named_by_both_keys():
    outer = JsonObject({"outer": {"middle": [{"inner": -1}]}})
    with pytest.raises(ValueError, match=r"^outer\.middle\.inner: -1 is"):
        outer.object("outer").objects("middle")[0].integer("inner")


@pytest.mark.parametrize(
    ("values", "zero", "fault"),
    [
        ([1, 2], True, "has 2 entries where 3 are due"),
        ([1, 2, 3, 4], True, "has 4 entries where 3 are due"),
        ([], True, "has 0 entries"),
        ([1.0, -1e-9, 1.0], True, "trial 2 is -1e-09, not zero or more"),
        ([1.0, 1.0, 0.0], False, "trial 3 is 0.0, not more than zero"),
        ([True, 1.0, 1.0], True, "trial 1 is True"),
        ([1.0, "1.0", 1.0], True, "trial 2 is '1.0'"),
        ([1.0, None, 1.0], True, "trial 2 is None"),
        ("123", True, "not of type list"),
    ],
)
def test_a_series_is_of_times(values, zero, fault):
    with pytest.raises(ValueError, match=f"^t: .*{fault}"):
        JsonObject({"t": values}).series("t", 3, zero=zero)


@pytest.mark.parametrize("value", [2, -1, True, 1.0, "0", None])
def test_a_bit_is_0_or_1(value):
    with pytest.raises(ValueError, match=r"^late: trial 2 is .*, not 0 or 1"):
        JsonObject({"late": [0, value]}).bits("late", 2)
    with pytest.raises(ValueError, match="has 2 entries"):
        JsonObject({"late": [0, 1]}).bits("late", 3)
