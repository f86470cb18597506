"""What an executable that somebody else has built tells of itself: its version, compiler and flags.

It is not started. The texts are in the file: the benchmark's own header, the section ``.comment`` that
compilers write, and in a file with debug information the whole line of options (``DW_AT_producer``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from postprocess.base import files
from site_configs.programs.program import PROGRAMS

UNKNOWN = "unknown"
MOST_BYTES = 64_000_000
VERSIONS = [re.compile(program.version) for program in PROGRAMS.values() if program.version]
#: The compiler that made the benchmark comes before GCC, which made the start-up code of every program.
COMPILERS = (
    re.compile(rb"Intel\(R\) oneAPI DPC\+\+/C\+\+ Compiler \d[\w.]*"),
    re.compile(rb"clang version \d[\w.]*"),
    re.compile(rb"GCC: \([^)\0]{0,60}\) (?P<version>\d[\w.]*)"),
)
PRODUCER = re.compile(rb"GNU C(?:\+\+)?\d+ (?P<version>\d[\w.]*) (?P<flags>-[^\0]{0,2000})")


@dataclass(frozen=True)
class ExecutableFacts:
    """The facts of one executable; ``unknown`` if it does not tell."""

    version: str = UNKNOWN
    compiler: str = UNKNOWN
    flags: str = UNKNOWN


def read_facts(executable: Path) -> ExecutableFacts:
    """Read the facts of an executable; all unknown if it cannot be read."""
    try:
        with files.open_regular(executable) as file:
            return parse_facts(file.read(MOST_BYTES))
    except OSError:
        return ExecutableFacts()


def parse_facts(data: bytes) -> ExecutableFacts:
    """Parse the facts in the bytes of an executable."""
    version = next((match[1] for each in VERSIONS if (match := each.search(data))), None)
    if producer := PRODUCER.search(data):
        compiler, flags = (f"gcc {decode_text(producer['version'])}", decode_text(producer["flags"]).strip())
    else:
        found = next((match for each in COMPILERS if (match := each.search(data))), None)
        compiler, flags = format_compiler(found), UNKNOWN
    return ExecutableFacts(decode_text(version) if version else UNKNOWN, compiler, flags)


def format_compiler(found: re.Match[bytes] | None) -> str:
    """Format a compiler's name and version as people write them."""
    if not found:
        return UNKNOWN
    return f"gcc {decode_text(found['version'])}" if found.groupdict() else decode_text(found[0])


def decode_text(data: bytes) -> str:
    """Decode bytes of an executable as text."""
    return data.decode("ascii", "replace")
