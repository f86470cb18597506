"""UsageError: an error that the user can correct, shown as one line without a traceback."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class UsageError(Exception):
    """Wrong use or configuration. The text is one line: the file, key or row, and the fix.

    The command line prints it and exits with status 2.
    """


@contextmanager
def explaining(place: Path | str, fix: str, kind: type[UsageError] = UsageError) -> Iterator[None]:
    """Turn an OSError in the block into an error that the user can correct: place, reason, fix."""
    try:
        yield
    except OSError as error:
        raise kind(f"{place}: {error.strerror}; {fix}") from None


#: What an error says when variables are set for an environment that was not chosen.
NOT_CHOSEN = "is not among those of --environment"
NEAR = 0.6  #: similarity of two words, as difflib computes it


def find_near_word(word: str, known: Iterable[str], near: float = NEAR) -> str:
    """Find the known word that is nearest to ``word``, ignoring case; empty if none is near."""
    plain = {name.lower(): name for name in sorted(known)}
    matches = difflib.get_close_matches(word.lower(), list(plain), n=1, cutoff=near)
    return plain[matches[0]] if matches else ""


def propose_word(word: str, known: Iterable[str]) -> str:
    """Propose a known word as errors do: ``did you mean X?``; empty if none is near."""
    near = find_near_word(word, known)
    return f"did you mean {near}?" if near else ""


def propose_or_list(word: str, known: Iterable[str]) -> str:
    """Propose a known word, or list all of them if none is near."""
    choice = sorted(known)
    return propose_word(word, choice) or f"choose from {', '.join(choice)}"


def may_name_one(one: str, other: str) -> bool:
    """Return whether two words may name the same environment: they are equal, or one begins the other."""
    return one == other or one.startswith(f"{other}-") or other.startswith(f"{one}-")


def choose_environment(option: str, word: str, known: Sequence[str]) -> str:
    """Choose the environment that a word means: its full name, or a prefix that only one environment has.

    :raises UsageError: if it matches none or several
    """
    meant = [name for name in known if name == word] or [name for name in known if name.startswith(f"{word}-")]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise UsageError(f"{option} {word}: may be each of {', '.join(meant)}; name one in full")
    families = {name.rpartition("-")[0]: name for name in known}
    near = find_near_word(word, known) or families.get(find_near_word(word, families), "")
    fix = f"did you mean {near}?" if near else f"choose from {', '.join(known)}"
    raise UsageError(f"{option} {word}: is not an environment here; {fix}")
