"""The line on which a key of a TOML document stands."""

from __future__ import annotations

import pytest

from postprocess.base.documents.toml_files import find_line, parse_toml

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
