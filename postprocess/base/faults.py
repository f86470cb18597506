"""Faults of Plumbline itself: the whole trace is kept in a file, and people see one line."""

from __future__ import annotations

import os
import traceback
from datetime import datetime, timezone
from pathlib import Path

from postprocess.base import files

FOLDER = "faults"  #: of the work directory


def keep_trace(folder: Path, error: BaseException) -> Path | None:
    """Keep the trace of an error in a new file of a folder; where it is, or None if it cannot be written."""
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%fZ")
    path = folder / f"{stamp}-{os.getpid()}.txt"
    text = "".join(traceback.format_exception(error))
    try:
        files.create_file(path, text.encode(errors="backslashreplace"))
    except OSError:
        return None
    return path


def describe_fault(error: BaseException) -> str:
    """Describe an error in a few words: its kind, and what it says."""
    return f"{type(error).__name__}: {error}".rstrip(": ")
