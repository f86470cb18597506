r"""Text as words of a shell: the one way by which paths, settings and names reach a shell or ReFrame.

Two readers expand what they are given. A shell does so outside of single quotes. ReFrame does so in each value
that it exports, whatever the quotes are: it runs ``$(...)`` and what is between backquotes, and puts in
``$NAME``. So no word that is made here has a backquote, or a dollar sign that either would take for one of
these; Bash reads their octal codes (``$'\044'``).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

EXPANDED = "$`"  #: by ReFrame even in single quotes
CODED = EXPANDED + "\\'"


def quote_word(text: str) -> str:
    """Quote a text as one word that Bash reads back as it is, and in which ReFrame expands nothing.

    :raises ValueError: if it has a null character, which no word can hold.
    """
    if "\0" in text:
        raise ValueError(f"{text!r}: has a null character; take it out")
    if not any(each in EXPANDED for each in text):
        return shlex.quote(text)
    return "$'" + "".join(f"\\{ord(each):03o}" if each in CODED else each for each in text) + "'"


def quote_words(words: Iterable[object]) -> str:
    """Quote several words as a part of a command line."""
    return " ".join(quote_word(str(each)) for each in words)
