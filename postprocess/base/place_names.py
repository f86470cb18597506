"""Names of places that something on the way would misread. Standard library only: the front door asks first."""

from __future__ import annotations

import os
from collections.abc import Sequence

from postprocess.base.errors import UsageError
from postprocess.base.shell_words import EXPANDED

#: In a path, with what takes them for something else. Each was tried with a night.
MISREAD = {
    **dict.fromkeys("'\"%", "ReFrame"),
    **dict.fromkeys(";\\", "CMake"),
    **dict.fromkeys(EXPANDED, "a shell"),
    **dict.fromkeys(" \t\n", "the compiler script of an MPI"),
    ":": "a search path of libraries",
    ",": "a linker",
}


def check_texts(words: Sequence[str]) -> None:
    """Refuse a word or a path that is no UTF-8 text: no file that is written could name it.

    :raises UsageError: naming the first one.
    """
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            shown = ascii(os.fsencode(word).decode(errors="backslashreplace"))
            raise UsageError(f"{shown}: is not UTF-8 text; rename it") from None


def check_folders(folders: Sequence[str]) -> None:
    """Refuse a folder whose name is misread: compiler scripts of MPIs, for one, do not quote where they are.

    :raises UsageError: naming the folder and the character.
    """
    for folder in folders:
        if found := next((each for each in folder if each in MISREAD), ""):
            what = f"has a {found!r}, which {MISREAD[found]} takes for something else"
            raise UsageError(f"{folder}: {what}; choose another folder (PLUMBLINE_HOME)")
