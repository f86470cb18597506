"""The JSON writer of the C program: whatever bytes come in, valid JSON goes out."""

import json
import math
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.mpicost import program, refuse


@pytest.fixture(scope="module")
def driver() -> Path:
    return program("mpich").build / "json_driver"


def written(driver: Path, text: bytes, number: float = 0.0) -> list:
    """What a strict reader gets back for a string and a number."""
    done = subprocess.run([driver, repr(number)], input=text, capture_output=True, check=True)
    return json.loads(done.stdout.decode("utf-8"), parse_constant=refuse)


@pytest.mark.parametrize(
    "text", ["", 'quo"te', "back\\slash", "tab\tnew\nline\r", "\x01\x1f\x7f", "ü€𝄞", "</script>"]
)
def test_text_comes_back(driver: Path, text: str) -> None:
    assert written(driver, text.encode())[0] == text


@pytest.mark.parametrize(
    "damaged",
    [
        b"\xff",
        b"\xc3",
        b"a\xe2\x82",
        b"\xc0\xaf",  # overlong
        b"\xe0\x80\x80",  # overlong
        b"\xed\xa0\x80",  # a surrogate
        b"\xf4\x90\x80\x80",  # above U+10FFFF
        b"\x80",
    ],
)
def test_bytes_that_are_no_utf8_are_replaced(driver: Path, damaged: bytes) -> None:
    text = written(driver, b"<" + damaged + b">")[0]
    assert text.startswith("<") and text.endswith(">")
    assert "\ufffd" in text


@settings(max_examples=100)
@given(text=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_any_text_comes_back(driver: Path, text: str) -> None:
    assert written(driver, text.encode())[0] == text


@settings(max_examples=100)
@given(text=st.binary())
def test_any_bytes_give_valid_json(driver: Path, text: bytes) -> None:
    assert isinstance(written(driver, text)[0], str)


@settings(max_examples=100)
@given(number=st.floats(allow_nan=False, allow_infinity=False))
def test_number_comes_back_exactly(driver: Path, number: float) -> None:
    assert written(driver, b"", number)[1] == number


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_number_that_json_has_not_is_null(driver: Path, number: float) -> None:
    assert written(driver, b"", number)[1] is None
