"""Files that appear whole or not at all, whatever happens to the writer.

Everything is written to hidden ``.tmp`` files beside their targets first; a writer that is killed
leaves such files at worst, and never half a target. Missing folders are made. OSError as met.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Mapping
from pathlib import Path


def create(path: Path, data: bytes) -> None:
    """Write a file that is not there yet. Raises FileExistsError, and changes nothing, if it is."""
    temporary = _beside(path)
    try:
        _write(temporary, data)
        _publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def replace(files: Mapping[Path, bytes]) -> None:
    """Write files that belong together, in place of earlier ones.

    None gets its name before all are on disk, so that a full disk changes none of them.
    """
    temporaries = {path: _beside(path) for path in files}
    try:
        for path, data in files.items():
            _write(temporaries[path], data)
        for path, temporary in temporaries.items():
            os.replace(temporary, path)
    finally:
        for temporary in temporaries.values():
            temporary.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    """A name for a temporary file that no other writer takes."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, "its folder is a file", str(path)) from None
    return path.parent / f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp"


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _publish(temporary: Path, path: Path) -> None:
    """Give the file its name, unless that is taken: a link, unlike a rename, replaces nothing."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: check and rename is the next best
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "is there already", str(path)) from None
        os.replace(temporary, path)
