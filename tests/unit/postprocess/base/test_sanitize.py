"""Text from outside: on one line, visible, and without effect in Markdown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from postprocess.base import sanitize

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates included
MARKDOWN = MarkdownIt("gfm-like", {"linkify": False, "html": True})
MARKS = st.text(st.sampled_from("ab1 \\`*_{}[]()#+-.!|<>&~=$:/\n@"), max_size=30)


@given(ANY_TEXT)
def test_one_line_is_printable_utf8(text):
    line = sanitize.sanitize_line(text)
    assert line.isprintable()
    line.encode("utf-8")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, Zürich", "plain text, Zürich"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x1b[31m\x07\x00", r"\x1b[31m\x07\x00"),
        ("a\u202eb\u2066c\u200bd", r"a\u202eb\u2066c\u200bd"),
        ("\u2028\x85", r"\u2028\x85"),
        ("\ud800", r"\ud800"),
        (None, "None"),
    ],
)
def test_control_and_invisible_characters_are_spelled_out(text, shown):
    assert sanitize.sanitize_line(text) == shown


def test_a_long_text_is_cut_and_says_so():
    line = sanitize.sanitize_line("x" * 1_000_000)
    assert line == "x" * sanitize.LIMIT + "... (1000000 characters)"


def test_lines_of_a_library_string():
    text = "MPICH Version:      5.0.2\nMPICH ABI:\t18:2:6\n\n\x1b[2J"
    expected = ["MPICH Version: 5.0.2", "MPICH ABI: 18:2:6", r"\x1b[2J"]
    assert sanitize.sanitize_lines(text) == expected


def inline_text(rendered: str) -> str:
    """The text that Markdown shows in a paragraph, provided that it shows nothing but text."""
    paragraph, inline, end = MARKDOWN.parse(rendered)
    assert (paragraph.type, inline.type, end.type) == ("paragraph_open", "inline", "paragraph_close")
    children = inline.children or []
    assert {child.type for child in children} <= {"text", "text_special"}, rendered
    return "".join(child.content for child in children)


@given(MARKS)
def test_markdown_shows_the_text_and_obeys_none_of_it(text):
    expected = sanitize.sanitize_line(text).strip()
    rendered = sanitize.escape_markdown(text)
    assert not expected or inline_text(rendered) == expected


@given(MARKS)
def test_a_cell_of_a_table_stays_one_cell(text):
    table = f"| a | b |\n|---|---|\n| {sanitize.escape_markdown(text)} | end |\n"
    tokens = [token.type for token in MARKDOWN.parse(table)]
    assert tokens.count("td_open") == 2
    assert MARKDOWN.parse(table)[tokens.index("tbody_close") - 3].content == "end"


def test_addresses_are_no_links():
    assert "://" not in sanitize.escape_markdown("see https://e.example")
    assert "www." not in sanitize.escape_markdown("see www.e.example")


@given(st.text(st.sampled_from("`a\n ")))
def test_no_text_closes_its_fence(text):
    fence = sanitize.choose_fence(text)
    assert len(fence) >= 3
    assert fence not in text
