"""What goes to a shell or to ReFrame arrives as it is, whatever characters it has."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reframe.utility import osext

from postprocess.base.sanitize import quote_word, quote_words

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
