"""Files and links that are touched only if they change, so that nothing is rebuilt for nothing."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def differs(path: Path, text: str) -> bool:
    """Whether ``path`` is not a file with just this text."""
    try:
        return path.read_text(encoding="utf-8") != text
    except (OSError, UnicodeDecodeError):
        return True


def write_text(path: Path, text: str, mode: int = 0o644) -> bool:
    """Make ``path`` a file with this text, whole or not at all. Returns whether it changed.

    Raises OSError if it cannot be written.
    """
    if not differs(path, text):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path)
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.chmod(mode)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return True


def link(path: Path, target: Path) -> bool:
    """Make ``path`` a symbolic link to ``target``. Returns whether it changed.

    Raises OSError if it cannot be made.
    """
    if path.is_symlink() and Path(os.readlink(path)) == target:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path)
    try:
        temporary.symlink_to(target)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return True


def _beside(path: Path) -> Path:
    """A name in the same folder that no other process uses."""
    return path.parent / f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
