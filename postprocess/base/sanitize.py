"""Sanitise text from outside (host names, library strings, reasons, commands) before it is shown.

Whatever is printed, drawn or written by the report goes through ``one_line`` first; HTML is then
escaped by jinja2, SVG by matplotlib, Markdown by ``markdown``; a terminal gets it without markup.
"""

from __future__ import annotations

import re
import sys

LIMIT = 4000  #: characters of one text that are shown
SHOWN = 60  #: characters of a word that is longer than any path

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ACTIVE = re.compile(r"[\\`*\[\]{}#|!~$]")
_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_BLOCK_START = re.compile(r"^(\d+)([.)])(?=\s|$)|^([-+=])(?=[-+=\s]|$)")
_LONG_WORD = re.compile(r"\S{1000,}")
_BACKTICKS = re.compile(r"`+")


def sanitize_line(text: object) -> str:
    r"""Return the text on one line, with control and invisible characters spelled out (``\x1b``).

    What is left is printable Unicode: no line break, no terminal sequence, no change of the
    direction of writing, no lone surrogate. A text longer than ``LIMIT`` is cut and says so.
    """
    plain = str(text)
    if len(plain) > LIMIT:
        plain = f"{plain[:LIMIT]}... ({len(plain)} characters)"
    if plain.isprintable():
        return plain
    return "".join(char if char.isprintable() else _spelled_out(char) for char in plain)


def shorten_words(text: str) -> str:
    """Shorten words that no person has written: what is said of one must not drown in it."""
    return _LONG_WORD.sub(lambda m: f"{m[0][:SHOWN]}... ({len(m[0])} characters)", text)


def show_line(text: object, error: bool = False) -> None:
    """Print a text from outside as one harmless line, on standard output or standard error."""
    print(sanitize_line(text), file=sys.stderr if error else sys.stdout)


def sanitize_lines(text: object) -> list[str]:
    """Split a text that may have several lines, such as a library string, into harmless ones."""
    found = (sanitize_line(" ".join(line.split())) for line in str(text)[: 2 * LIMIT].splitlines())
    return [line for line in found if line]


def escape_markdown(text: object) -> str:
    """Return the text so that Markdown (CommonMark with tables) shows it and obeys none of it."""
    plain = sanitize_line(text).strip().translate(_ENTITIES)
    plain = _ACTIVE.sub(r"\\\g<0>", plain)
    plain = _UNDERSCORE.sub(r"\\_", plain)
    plain = _BLOCK_START.sub(lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"\\{m[3]}", plain)
    return plain.replace("://", "&#58;//").replace("www.", "www&#46;")


def choose_fence(text: str) -> str:
    """Return the run of backticks that opens a code block which the text cannot close."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    return "`" * max(3, longest + 1)


def _spelled_out(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
