"""Records of installations: stamps beside their solutions, and where the programs are.

For a build in a separate process, its failure is recorded too.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.records import read_record
from site_configs.programs.program import PRODUCTS, find_product
from spack_envs.layout import SourceError, SpackEnvironmentError

DIGEST = Path("share", "mpicost", "sources.sha256")  #: digest in an installed mpicost
RECORD = Path("share", "plumbline", "build.json")
FAILURE = "failure.json"  #: file in the folder of a failed build: a :class:`BuildFailure`


@dataclass(frozen=True)
class Installation:
    program: str
    prefix: str
    spec: str  #: package and hash
    place: str  #: folder of the environment whose solution it was built by
    key: str  #: hash of everything it was built with; see :func:`compute_key`

    @property
    def folder(self) -> Path:
        """The folder with the executables, or with subfolders of them."""
        return Path(self.prefix, PRODUCTS[self.program].folder)

    @property
    def lock(self) -> Path:
        """Spack's solution that it was built by."""
        return Path(self.place, "spack.lock")

    @property
    def record(self) -> dict[str, str]:
        """The record of how the executables were compiled.

        :raises SpackEnvironmentError: if it is missing.
        """
        path = Path(self.prefix) / RECORD
        try:
            return read_record(path, dict[str, str])
        except (OSError, ValueError):
            raise SpackEnvironmentError(f"{path}: the installation is damaged") from None


def locate_stamp(place: Path, program: str) -> Path:
    return place / ".plumbline" / f"{program}.json"


def write_stamp(done: Installation) -> None:
    """Record an installation. Raises OSError if that fails."""
    path = locate_stamp(Path(done.place), done.program)
    files.write_text(path, json.dumps(asdict(done), indent=1))


def read_stamp(place: Path, program: str) -> Installation | None:
    """Read the record of an installation; None if there is none that can be read."""
    try:
        return read_record(locate_stamp(place, program), Installation)
    except (OSError, ValueError):
        return None


@dataclass(frozen=True)
class BuildFailure:
    """Why a build in a separate process failed."""

    reason: str  #: one line
    without_source: bool  #: whether its source cannot be fetched


def write_failure(folder: Path, error: SpackEnvironmentError) -> None:
    """Record why a build failed. Raises OSError if that fails."""
    entry = BuildFailure(str(error), isinstance(error, SourceError))
    files.write_text(folder / FAILURE, json.dumps(asdict(entry)))


def read_failure(folder: Path) -> BuildFailure | None:
    """Read why the build of this folder failed; None if nothing tells."""
    try:
        return read_record(folder / FAILURE, BuildFailure)
    except (OSError, ValueError):
        return None


def compute_key(directory: Path, place: Path) -> str:
    """Compute the key of an environment, from all of Spack's inputs and its solution.

    ``machine.yaml`` names the MPI, the compiler, and the recipes by a digest of their contents.
    """
    paths = [directory / "spack.yaml", directory / "machine.yaml", place / "spack.lock"]
    digest = hashlib.sha256()
    for path in [*paths, *sorted((directory.parent / "common").glob("*.yaml"))]:
        content = files.read_regular(path) if path.is_file() else b"none"
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


def is_present(found: Installation) -> bool:
    """Return whether an installation has not been removed."""
    return found.folder.is_dir() and (Path(found.prefix) / RECORD).is_file()


FOLDER = "programs"  #: folder of the records, in a work directory or a session
UNKNOWN = "unknown"  #: stands for facts of a build that a program does not record


@dataclass(frozen=True)
class BuiltBinary:
    """A benchmark program of one environment, and how it was compiled, as far as recorded."""

    environment: str
    name: str
    path: str  #: path of the executable, or of the folder with the executables
    spec: str  #: Spack's package with its hash; ``cmake``, ``site`` or ``wheel`` for other sources
    version: str = UNKNOWN
    compiler: str = UNKNOWN
    flags: str = UNKNOWN
    source: str = "official"  #: or the substitute of a mirror


def locate_program_file(work: Path, environment: str, name: str) -> Path:
    return work / FOLDER / environment / f"{find_product(name)}.json"


def write_program(work: Path, program: BuiltBinary) -> None:
    path = locate_program_file(work, program.environment, program.name)
    files.replace_files({path: json.dumps(asdict(program), indent=1).encode()})


def read_program(work: Path, environment: str, name: str) -> BuiltBinary:
    """Read the record of a program built for an environment. Raises UsageError if it was not built yet."""
    path = locate_program_file(work, environment, name)
    try:
        return read_record(path, BuiltBinary)
    except (OSError, ValueError):
        environments = sorted(path.parent.name for path in work.glob(f"{FOLDER}/*/{name}.json"))
        others = f" (built for {', '.join(environments)})" if set(environments) - {environment} else ""
        fix = f"./plumbline run --environment {environment} builds it{others}"
        raise UsageError(f"{path}: {name} is not built for {environment} yet: {fix}") from None


def find_mpicost_prefix(work: Path, environment: str) -> Path:
    """Find the prefix in which an environment's mpicost is installed.

    :raises UsageError: if it was not built yet.
    """
    return Path(read_program(work, environment, "mpicost").path).parent.parent


def keep_installed(root: Path, environment: str, done: Installation) -> BuiltBinary:
    """Record where a program built by Spack is, how it was compiled, and Spack's whole solution.

    :param root: a work directory, or that of a session
    :raises SpackEnvironmentError: if the installation has no record.
    """
    record = done.record
    path = done.folder / PRODUCTS[done.program].single
    facts = {key: record.get(key, "unknown") for key in ("version", "compiler", "flags")}
    source = record.get("source", "official")
    program = BuiltBinary(environment, done.program, str(path), done.spec, **facts, source=source)
    lock = locate_program_file(root, environment, done.program).with_suffix(".lock")
    files.replace_files({lock: files.read_regular(done.lock)})
    write_program(root, program)
    return program
