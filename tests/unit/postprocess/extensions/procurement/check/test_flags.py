"""Compiler flags: what is not known to leave a program as it was published is a change."""

from __future__ import annotations

import pytest

from postprocess.extensions.procurement.check.builds import find_changed_flags

USUAL = "-mtune=generic -march=x86-64 -O2 -frecord-gcc-switches -fasynchronous-unwind-tables"
TARGET = "-march=x86-64-v3 -mtune=generic -O2"


@pytest.mark.parametrize(
    ("program", "told", "by_spack", "wanted"),
    [
        ("mpicost", "-O3 -DNDEBUG -std=c11", False, []),
        ("mpicost", "-O3 -DNDEBUG -std=c11 -I/opt/include -g", False, []),
        ("mpicost", "-march=native -O3 -DNDEBUG -std=c11", False, ["-march=native"]),
        ("mpicost", "-O3 -O2 -std=c11", False, ["-O2"]),  # the last one holds
        ("osu", USUAL, True, []),
        ("osu", TARGET, True, []),  # Spack builds for the processor that it finds
        ("osu", TARGET, False, ["-march=x86-64-v3"]),
        ("osu", f"{USUAL}; {USUAL} -flto -ffast-math", True, ["-flto", "-ffast-math"]),
        ("osu", "-O2 -Wl,-z,now -Wl,--wrap=MPI_Send", True, ["-Wl,-z,now", "-Wl,--wrap=MPI_Send"]),
        ("imb", "-g", False, ["no -O"]),
        ("imb", "-DNDEBUG -O2 -DUSE_SHORTCUT", False, ["-DUSE_SHORTCUT"]),
        ("imb", "unknown", False, None),
        ("mpicost", " ", False, None),
    ],
)
def test_changed_flags_are_found(program, told, by_spack, wanted) -> None:
    assert find_changed_flags(program, told, by_spack) == wanted
