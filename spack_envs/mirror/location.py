"""Which mirror the user has named: in this call, in the environment, or in an earlier call.

Standard library only: the script ``plumbline`` asks before any package is installed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.files import read_text

VARIABLE = "PLUMBLINE_MIRROR"
FORGET = "none"  #: named in the place of a directory
COMMANDS = ("setup", "doctor")  #: that have the option


def read_mirror_option(words: Sequence[str]) -> str | None:
    """Read the value of ``--mirror`` among the words of a command line, before they are parsed."""
    value = None
    for number, word in enumerate(words if words and words[0] in COMMANDS else ()):
        if word.startswith("--mirror="):
            value = word.partition("=")[2]
        elif word == "--mirror":
            value = "".join(words[number + 1 : number + 2])
    return value


def find_named_mirror(
    work: Path, asked: str | None = None, environ: Mapping[str, str] = os.environ
) -> Path | None:
    """Find the mirror that is to be used without a network; None if there is none.

    :param work: work directory, which remembers
    :param asked: of this call: a directory, or ``none`` for no mirror
    :raises UsageError: if the option is there and names nothing; it would mean the network.
    """
    if asked == "":
        raise UsageError(f"--mirror: names nothing; name a directory, or {FORGET}")
    name = asked or environ.get(VARIABLE) or read_remembered_mirror(work)
    return Path(name).absolute() if name and name != FORGET else None


def locate_memory(work: Path) -> Path:
    """Locate the file in which a work directory remembers its mirror."""
    return work / "mirror"


def read_remembered_mirror(work: Path) -> str:
    """Read the mirror of an earlier call; empty if there is none."""
    try:
        return read_text(locate_memory(work)).strip()
    except FileNotFoundError:
        return ""
