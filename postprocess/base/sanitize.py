"""Sanitise text from outside (host names, library strings, reasons, commands) before it is shown.

Whatever is printed, drawn or written by the report goes through :func:`sanitize_line` first. HTML is then
escaped by jinja2, SVG by matplotlib, Markdown by ``markdown``; a terminal gets the text without markup.
"""

import os
import re
import shlex
import sys
from collections.abc import Iterable, Sequence

from postprocess.base.errors import UsageError

EXPANDED = "$`"  #: characters that ReFrame expands even in single quotes
CODED = EXPANDED + "\\'"


def quote_word(text: str) -> str:
    """Quote a text as one word that Bash reads back unchanged and in which ReFrame expands nothing.

    :raises ValueError: if it has a null character, which no word can hold.
    """
    if "\0" in text:
        raise ValueError(f"{text!r}: has a null character; take it out")
    if not any(char in EXPANDED for char in text):
        return shlex.quote(text)
    return "$'" + "".join(f"\\{ord(char):03o}" if char in CODED else char for char in text) + "'"


def quote_words(words: Iterable[object]) -> str:
    return " ".join(quote_word(str(word)) for word in words)


#: Characters in a path, with the program that misreads them. Each was tried in a nightly run.
MISREAD = {
    **dict.fromkeys("'\"%", "ReFrame"),
    **dict.fromkeys(";\\", "CMake"),
    **dict.fromkeys(EXPANDED, "a shell"),
    **dict.fromkeys(" \t\n", "the compiler script of an MPI"),
    ":": "a search path of libraries",
    ",": "a linker",
}


def check_texts(words: Sequence[str]) -> None:
    """Refuse a word or path that is not UTF-8 text, because no written file could name it.

    :raises UsageError: names the first one.
    """
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            shown = ascii(os.fsencode(word).decode(errors="backslashreplace"))
            raise UsageError(f"{shown}: is not UTF-8 text; rename it") from None


def check_folders(folders: Sequence[str]) -> None:
    """Refuse a folder whose name a program misreads; compiler scripts of MPIs, for example, do not quote it.

    :raises UsageError: names the folder and the character.
    """
    for folder in folders:
        if misread := next((char for char in folder if char in MISREAD), ""):
            what = f"has a {misread!r}, which {MISREAD[misread]} takes for something else"
            raise UsageError(f"{folder}: {what}; choose another folder (PLUMBLINE_HOME)")


LIMIT = 4000  #: characters of a text that are shown
SHOWN = 60  #: characters that are shown of a word longer than any path

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ACTIVE = re.compile(r"[\\`*\[\]{}#|!~$]")
_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_BLOCK_START = re.compile(r"^(\d+)([.)])(?=\s|$)|^([-+=])(?=[-+=\s]|$)")
_LONG_WORD = re.compile(r"\S{1000,}")
_BACKTICKS = re.compile(r"`+")


def sanitize_line(text: object) -> str:
    r"""Return the text on one line, with control and invisible characters spelled out (``\x1b``).

    The result is printable Unicode: no line break, no terminal sequence, no change of writing direction, no
    lone surrogate. A text longer than ``LIMIT`` is cut and says so.
    """
    plain = str(text)
    if len(plain) > LIMIT:
        plain = f"{plain[:LIMIT]}... ({len(plain)} characters)"
    if plain.isprintable():
        return plain
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in plain
    )


def shorten_words(text: str) -> str:
    """Shorten words too long to be written by a person, so that the rest of the text stays readable."""
    return _LONG_WORD.sub(lambda m: f"{m[0][:SHOWN]}... ({len(m[0])} characters)", text)


def show_error(text: object) -> None:
    """Print what is wrong as one harmless line on standard error."""
    print(sanitize_line(f"plumbline: {text}"), file=sys.stderr)


def sanitize_lines(text: object) -> list[str]:
    """Split a text that may have several lines, such as a library string, into harmless lines."""
    lines = (sanitize_line(" ".join(line.split())) for line in str(text)[: 2 * LIMIT].splitlines())
    return [line for line in lines if line]


def escape_markdown(text: object) -> str:
    """Escape a text so that Markdown (CommonMark with tables) shows it literally."""
    plain = sanitize_line(text).strip().translate(_ENTITIES)
    plain = _ACTIVE.sub(r"\\\g<0>", plain)
    plain = _UNDERSCORE.sub(r"\\_", plain)
    plain = _BLOCK_START.sub(lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"\\{m[3]}", plain)
    return plain.replace("://", "&#58;//").replace("www.", "www&#46;")


def choose_fence(text: str) -> str:
    """Return enough backticks to fence a code block that the text cannot close."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    return "`" * max(3, longest + 1)
