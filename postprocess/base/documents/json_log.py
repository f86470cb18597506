"""Files of one JSON object a line, to which a long measurement adds, and which a kill may cut short."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from postprocess.base import files
from postprocess.base.errors import UsageError


def append_entry(path: Path, entry: Mapping[str, Any], fix: str) -> None:
    """Add a line, as :func:`append_entries` does."""
    append_entries(path, [entry], fix)


def append_entries(path: Path, entries: Iterable[Mapping[str, Any]], fix: str) -> None:
    """Add lines that belong together, and see them on the disk.

    :param fix: what helps where it cannot be written
    :raises UsageError: if it cannot be written
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write("".join(f"{json.dumps(entry, allow_nan=False)}\n" for entry in entries))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; {fix}") from None


def truncate_unfinished_line(path: Path) -> None:
    """Cut off a line that was interrupted while it was written. Raises OSError."""
    data = files.read_regular(path)
    end = data.rfind(b"\n") + 1
    if end < len(data):
        os.truncate(path, end)
