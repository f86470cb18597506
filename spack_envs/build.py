"""How Spack is called on an environment: variables and command lines, as data."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from postprocess.base.documents import strict_json
from spack_envs.errors import SpackEnvironmentError
from spack_envs.layout import SpackLayout

PACKAGE = "mpicost"


def spack_environment_variables(
    work: Path, executable: Path, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the variables under which Spack writes below ``work`` only.

    The Python of this process has the solver, which Spack would otherwise download.
    """
    return {
        "SPACK_PYTHON": sys.executable,
        "SPACK_DISABLE_LOCAL_CONFIG": "1",
        "SPACK_USER_CACHE_PATH": str(SpackLayout(work).user_cache),
        "PATH": os.pathsep.join([str(executable.parent), environ.get("PATH", os.defpath)]),
    }


@dataclass(frozen=True)
class SpackCommands:
    """Command lines for one environment. ``install`` also solves it if there is no solution yet."""

    directory: Path
    executable: str = "spack"

    @property
    def concretize(self) -> list[str]:
        """Solve the environment. Writes spack.lock."""
        return self._spack("concretize")

    @property
    def install(self) -> list[str]:
        """Build what is missing or changed."""
        return self._spack("install")

    def install_of(self, package: str) -> list[str]:
        """Build one package, and what it needs, if it is missing or changed."""
        return self._spack("install", package)

    def location_of(self, package: str) -> list[str]:
        """Print the prefix of a package."""
        return self._spack("location", "-i", package)

    def python(self, script: Path) -> list[str]:
        """Run a script in Spack's own Python."""
        return self._spack("python", str(script))

    def mirror(self, folder: Path, leave_out: Sequence[str]) -> list[str]:
        """Put the sources of all that is built into a source mirror."""
        words = ["mirror", "create", "--all", "--directory", str(folder)]
        return self._spack(*words, "--exclude-specs", " ".join([PACKAGE, *leave_out]))

    def _spack(self, *arguments: str) -> list[str]:
        return [self.executable, "-e", str(self.directory), *arguments]


def read_locked_hash(directory: Path, package: str = PACKAGE) -> str:
    """Read the hash of a package in an environment's solution; without starting Spack.

    :raises SpackEnvironmentError: if there is no solution, or none with the package.
    """
    path = directory / "spack.lock"
    try:
        roots = strict_json.read_json(path)["roots"]
        hashes = [root["hash"] for root in roots if root["spec"].split("@")[0] == package]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        hashes = []
    if len(hashes) != 1 or not isinstance(hashes[0], str):
        raise SpackEnvironmentError(f"{path}: no solution for {package}; spack -e {directory} install makes it")
    return hashes[0]
