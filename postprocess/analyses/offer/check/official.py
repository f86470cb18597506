"""The hash of the source of mpicost that comes with Plumbline: what tells the official program from another."""

from __future__ import annotations

import hashlib
from pathlib import Path

from postprocess.base import files

DIGITS = 16


def hash_own_source(source: Path) -> str:
    """Return the hash that mpicost built from this clone tells, as ``suite/cmake/source_hash.cmake`` has it."""
    suite = source / "suite"
    names = [f"src/{path.name}" for path in [*suite.glob("src/*.c"), *suite.glob("src/*.h")]]
    names += ["src/build_info.h.in", "CMakeLists.txt", "cmake/source_hash.cmake"]
    lines = (
        f"{hashlib.sha256(files.read_regular(suite / name)).hexdigest()}  {name}\n"
        for name in sorted(names)
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:DIGITS]
