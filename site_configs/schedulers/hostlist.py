"""Host names as schedulers write them: ``n[001-003,007],login1`` and back to single names."""

from __future__ import annotations

import re
from itertools import product

MOST = 1_000_000  #: hosts of one list; more is a misunderstanding
PIECE = re.compile(r"[^\[\],\s]+|\[[^\[\]]*\]")
WORD = r"(?:[^\[\],\s]|\[[^\[\]]*\])+"
LIST = re.compile(rf"{WORD}(?:\s*,\s*{WORD})*")
RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)


def expand(text: str) -> list[str]:
    """Expand a host list into its names, in order.

    :raises ValueError: if it cannot be understood.
    """
    text = text.strip()
    if text and not LIST.fullmatch(text):
        raise ValueError(f"cannot read the host list {text[:80]!r}")
    found: list[str] = []
    for word in re.findall(WORD, text):
        pieces = PIECE.findall(word)
        choices = [numbers(piece) if piece[0] == "[" else [piece] for piece in pieces]
        for names in product(*choices):
            found.append("".join(names))
            if len(found) > MOST:
                raise ValueError(f"more than {MOST} hosts in {text[:80]!r}")
    return found


def numbers(brackets: str) -> list[str]:
    """Return the numbers in brackets, with the zeros before them: ``[08-10]`` is 08, 09, 10."""
    found: list[str] = []
    for part in brackets[1:-1].split(","):
        match = RANGE.fullmatch(part)
        if not match:
            raise ValueError(f"cannot read {brackets[:80]!r} in a host list")
        first, last = match[1], match[2] or match[1]
        if int(last) - int(first) >= MOST:
            raise ValueError(f"more than {MOST} hosts in {brackets[:80]!r}")
        found += [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
    return found
