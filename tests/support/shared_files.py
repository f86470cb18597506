"""What the tests of one session build: each file once, by the first process that asks for it.

``./plumbline test`` names the folder, or else the process that hands tests out.
"""

import fcntl
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from postprocess.commands.tests import SHARED as VARIABLE


@cache
def open_folder() -> tempfile.TemporaryDirectory[str] | None:
    """Make the folder, which is gone with this process; None where another process has made it."""
    if VARIABLE in os.environ:
        return None
    folder = tempfile.TemporaryDirectory(prefix="plumbline-tests-")
    os.environ[VARIABLE] = folder.name
    return folder


def make_once(name: str, make: Callable[[Path], object]) -> Path:
    """The path of this name in the folder, which ``make`` has filled. Others wait until it is whole."""
    open_folder()
    path = Path(os.environ[VARIABLE], name)
    done = path.with_name(f"{name}.made")
    with path.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            make(path)
            done.touch()
    return path
