"""Where the programs are that were built for each environment, and from what."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.records import read_record
from site_configs.programs.program import PRODUCTS, find_product
from spack_envs.installation import Installation

FOLDER = "programs"  #: folder of the records, in a work directory or a session
UNKNOWN = "unknown"  #: what a program does not tell of its build


@dataclass(frozen=True)
class BuiltBinary:
    """A benchmark program of one environment, and how it was compiled, as far as it tells."""

    environment: str
    name: str
    path: str  #: of the executable, or of the folder with the executables
    spec: str  #: Spack's package with its hash; ``cmake``, ``site`` or ``wheel`` where it is not Spack's
    version: str = UNKNOWN
    compiler: str = UNKNOWN
    flags: str = UNKNOWN
    source: str = "official"  #: or what a mirror has in its place


def locate_program_file(work: Path, environment: str, name: str) -> Path:
    """Locate the record of what was built for an environment."""
    return work / FOLDER / environment / f"{find_product(name)}.json"


def write_program(work: Path, program: BuiltBinary) -> None:
    """Keep where a program is."""
    path = locate_program_file(work, program.environment, program.name)
    files.replace_files({path: json.dumps(asdict(program), indent=1).encode()})


def read_program(work: Path, environment: str, name: str) -> BuiltBinary:
    """Read the record of what was built for an environment.

    :raises UsageError: if nothing was built yet.
    """
    path = locate_program_file(work, environment, name)
    try:
        return read_record(path, BuiltBinary)
    except (OSError, ValueError):
        known = sorted(each.parent.name for each in work.glob(f"{FOLDER}/*/{name}.json"))
        others = f" (built for {', '.join(known)})" if set(known) - {environment} else ""
        fix = f"./plumbline run --environment {environment} builds it{others}"
        raise UsageError(f"{path}: {name} is not built for {environment} yet: {fix}") from None


def find_mpicost_prefix(work: Path, environment: str) -> Path:
    """Find the prefix in which an environment's mpicost is installed.

    :raises UsageError: if it was not built yet.
    """
    return Path(read_program(work, environment, "mpicost").path).parent.parent


def keep_installed(root: Path, environment: str, done: Installation) -> BuiltBinary:
    """Keep where a program is that Spack has built, how it was compiled, and Spack's whole solution.

    :param root: a work directory, or that of a session
    :raises SpackEnvironmentError: if the installation does not tell.
    """
    told = done.record
    path = done.folder / PRODUCTS[done.program].single
    facts = {key: told.get(key, "unknown") for key in ("version", "compiler", "flags")}
    source = told.get("source", "official")
    program = BuiltBinary(environment, done.program, str(path), done.spec, **facts, source=source)
    lock = locate_program_file(root, environment, done.program).with_suffix(".lock")
    files.replace_files({lock: files.read_regular(done.lock)})
    write_program(root, program)
    return program
