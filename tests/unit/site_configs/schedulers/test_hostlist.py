"""Host lists as schedulers write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from site_configs.schedulers.hostlist import expand


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08-10,12],login1", ["n08", "n09", "n10", "n12", "login1"]),
        ("r[1-2]c[1-2]", ["r1c1", "r1c2", "r2c1", "r2c2"]),
        ("n[1-2]-ib.site", ["n1-ib.site", "n2-ib.site"]),
        (" a , b ", ["a", "b"]),
    ],
)
def test_lists(text: str, names: list[str]):
    assert expand(text) == names


@given(st.integers(0, 10**6), st.integers(0, 300), st.integers(1, 8))
def test_a_range_is_as_many_names_of_one_width(first: int, more: int, width: int):
    names = expand(f"n[{first:0{width}d}-{first + more}]")
    assert [int(name[1:]) for name in names] == list(range(first, first + more + 1))
    assert all(len(name) > width for name in names)


@pytest.mark.parametrize(
    "text", ["n[1-", "n]1[", "n[a-b]", "n[1-2", "n[[1]]", "n[]", "n[1-99999999]", "r[1-9999]n[1-9999]"]
)
def test_what_cannot_be_read_says_so(text: str):
    with pytest.raises(ValueError):
        expand(text)


@given(st.text(max_size=40))
def test_no_text_does_worse_than_be_refused(text: str):
    try:
        assert all(isinstance(name, str) for name in expand(text))
    except ValueError as refused:
        assert str(refused)
