"""The case is a key: unique, ordered, and free of what would break a table or a path."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.model.case import Case

CASE = Case(
    system="laptop",
    partition="cpu",
    environment="mpich-5.0.2",
    program="mpicost",
    routine="bcast",
    peer=0,
    cache="flush",
    sync="barrier",
    processes=4,
    per_node=2,
    bytes=8,
)
PINGPONG = replace(CASE, routine="pingpong", peer=3)
WORDS = st.from_regex(r"[A-Za-z0-9_.+-]{1,8}", fullmatch=True)
COUNTS = st.integers(min_value=0, max_value=10**9)
CASES = st.builds(
    Case,
    **{field.name: WORDS if field.type is str else COUNTS for field in fields(Case)}
    | {
        "cache": st.sampled_from(["flush", "warm"]),
        "sync": st.sampled_from(["dissemination", "barrier", "window"]),
    },
)


def test_names_of_a_case():
    assert CASE.variant == "flush-barrier"
    assert CASE.layout == "4x2"
    assert (CASE.label, PINGPONG.label) == ("bcast", "pingpong@3")
    assert (CASE.variable, PINGPONG.variable) == ("bcast_8", "pingpong@3_8")
    assert CASE.key == "laptop:cpu:mpich-5.0.2:mpicost:bcast:flush-barrier:4x2:8"
    assert PINGPONG.key == "laptop:cpu:mpich-5.0.2:mpicost:pingpong@3:flush-barrier:4x2:8"


@pytest.mark.parametrize("field", [field.name for field in fields(Case) if field.type is str])
@pytest.mark.parametrize("name", ["", "a b", "a:b", "a/b", "a\n", "a\t", "<b>", "ä", "a@1", '"'])
def test_a_name_is_a_name(field, name):
    with pytest.raises(ValueError, match=f"^{field} .* is not a name"):
        replace(CASE, **{field: name})


@pytest.mark.parametrize("field", [field.name for field in fields(Case) if field.type is int])
def test_a_count_is_not_negative(field):
    replace(CASE, **{field: 0})
    with pytest.raises(ValueError, match=f"^{field} -1 is negative"):
        replace(CASE, **{field: -1})


@given(CASES, st.sampled_from([field.name for field in fields(Case)]))
def test_every_field_is_part_of_the_key(case, name):
    value = getattr(case, name)
    changed = replace(case, **{name: value + 1 if isinstance(value, int) else value + "x"})
    assert changed.key != case.key
    assert changed != case


@given(CASES)
def test_a_case_is_found_by_its_key(case):
    assert Case.from_key(case.key) == case


@pytest.mark.parametrize("key", ["", "a:b", CASE.key + ":1", CASE.key.replace("4x2", "4y2"), PINGPONG.key[:-1]])
def test_what_is_no_key_is_refused(key: str):
    with pytest.raises(ValueError, match="not the key of a case"):
        Case.from_key(key)
