"""Where the programs are that were built for each environment, and from what."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from postprocess import atomic
from postprocess.errors import UsageError

PROGRAMS = ("mpicost", "osu", "imb")  #: Plumbline's own, and the reference benchmarks
UNKNOWN = "unknown"  #: what a program does not tell of its build


@dataclass(frozen=True)
class Program:
    """A benchmark program of one environment, and how it was compiled, as far as it tells."""

    environment: str
    name: str
    path: str  #: of the executable, or of the folder with the executables
    spec: str  #: Spack's package with its hash; ``cmake``, ``site`` or ``wheel`` where it is not Spack's
    version: str = UNKNOWN
    compiler: str = UNKNOWN
    flags: str = UNKNOWN
    source: str = "official"  #: or what a mirror has in its place


def program_file(work: Path, environment: str, name: str) -> Path:
    """Where it is kept what was built for an environment."""
    return work / "programs" / environment / f"{name}.json"


def write_program(work: Path, program: Program) -> None:
    """Keep where a program is."""
    path = program_file(work, program.environment, program.name)
    atomic.replace({path: json.dumps(asdict(program), indent=1).encode()})


def read_program(work: Path, environment: str, name: str) -> Program:
    """What was built for an environment.

    :raises UsageError: if nothing was built yet.
    """
    path = program_file(work, environment, name)
    try:
        return Program(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        known = sorted(each.parent.name for each in work.glob(f"programs/*/{name}.json"))
        others = f" (built for {', '.join(known)})" if set(known) - {environment} else ""
        fix = f"./plumbline run --environment {environment} builds it{others}"
        raise UsageError(f"{path}: {name} is not built for {environment} yet: {fix}") from None
