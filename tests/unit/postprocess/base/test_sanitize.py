"""Text from outside: on one line, visible, and without effect in Markdown."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from reframe.utility import osext

from postprocess.base import sanitize
from postprocess.base.sanitize import quote_word, quote_words

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


META = "$`'\"\\(){}[]*?~!#&|;<>= \t\n%^:,-aé"
texts = st.text(st.sampled_from(META), max_size=30) | st.text(
    st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=20
)


def read_by_bash(word: str) -> bytes:
    """What a script has that exports a variable, as ReFrame writes it, and gives a program the word."""
    script = f"export TOLD={word}\nprintf '%s|%s' \"$TOLD\" {word}"
    return subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout


@settings(max_examples=150, deadline=None)
@given(text=texts)
def test_bash_reads_a_word_back_and_reframe_expands_nothing(text: str) -> None:
    word = quote_word(text)
    assert read_by_bash(word) == f"{text}|{text}".encode()
    assert osext.expandvars(word) == word


@pytest.mark.parametrize("attack", ["$(touch {})", "`touch {}`", "${{X:=$(touch {})}}", "'$(touch {})'"])
def test_no_reader_runs_a_command(attack: str, tmp_path: Path) -> None:
    file = tmp_path / "run"
    word = quote_word(attack.format(file))
    osext.expandvars(word)
    read_by_bash(word)
    assert not file.exists()


def test_several_words_stay_several() -> None:
    assert quote_words(["a b", Path("/c"), 3]) == "'a b' /c 3"


def test_a_null_character_is_refused() -> None:
    with pytest.raises(ValueError, match="null character; take it out"):
        quote_word("a\0b")
