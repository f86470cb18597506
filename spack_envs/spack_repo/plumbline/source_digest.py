"""What of mpicost's sources decides whether it must be built anew: their contents, not their dates."""

import hashlib
import os
import pathlib


def is_source_folder(path: pathlib.Path) -> bool:
    """Not hidden, not Python's cache, not somebody's build folder."""
    ours = not path.name.startswith(".") and path.name != "__pycache__"
    return ours and not (path / "CMakeCache.txt").exists()


def is_source(name: str) -> bool:
    """Not hidden, and not a text for people."""
    return not name.startswith(".") and not name.endswith(".md")


def source_digest(root: pathlib.Path) -> str:
    """SHA-256 over names and contents of all source files below ``root``."""
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if is_source_folder(pathlib.Path(folder, name)))
        for name in sorted(filter(is_source, files)):
            path = pathlib.Path(folder, name)
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(root).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()
