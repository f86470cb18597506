"""Words that are near to what somebody typed: what an error proposes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

NEAR = 0.6  #: of two words that are alike, as difflib counts it


def find_near_word(word: str, known: Iterable[str]) -> str:
    """Find the known word that is nearest to one, whatever its case; empty if none is near."""
    plain = {each.lower(): each for each in sorted(known)}
    near = difflib.get_close_matches(word.lower(), list(plain), n=1, cutoff=NEAR)
    return plain[near[0]] if near else ""


def propose_word(word: str, known: Iterable[str]) -> str:
    """Propose a known word in the form that errors have, ``did you mean X?``; empty if none is near."""
    near = find_near_word(word, known)
    return f"did you mean {near}?" if near else ""


def propose_or_list(word: str, known: Iterable[str]) -> str:
    """Propose a known word, or list the choice if none is near."""
    choice = sorted(known)
    return propose_word(word, choice) or f"choose from {', '.join(choice)}"
