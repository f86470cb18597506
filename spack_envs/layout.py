"""Spack below a work directory: its folders, and how it is called on an environment there, as data."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postprocess.base import strict_json
from spack_envs.errors import SpackEnvironmentError
from spack_envs.recipes import Recipes

PACKAGE = "mpicost"


@dataclass(frozen=True)
class SpackLayout:
    """Folders below ``<work>/spack``."""

    work: Path

    @property
    def root(self) -> Path:
        """Everything of Spack that is not Spack itself."""
        return self.work / "spack"

    @property
    def environments(self) -> Path:
        """One folder per environment, and ``common``."""
        return self.root / "environments"

    @property
    def installed(self) -> Path:
        """What Spack has built."""
        return self.root / "installed"

    @property
    def facades(self) -> Path:
        """Prefixes of the MPIs that do not look as Spack expects."""
        return self.root / "facades"

    @property
    def recipes(self) -> Path:
        """Closed worlds of recipes."""
        return self.root / "recipes"

    @property
    def mirrored(self) -> Path:
        """What was unpacked from a mirror, and recipes of sources that it replaces."""
        return self.root / "mirrored"

    @property
    def user_cache(self) -> Path:
        """What Spack would keep in the home directory."""
        return self.root / "cache"

    def environment(self, name: str) -> Path:
        """Return the folder of one environment."""
        return self.environments / name

    def make_folders(self) -> None:
        """Spack makes its folders itself, except the one for links to stages."""
        (self.root / "links").mkdir(parents=True, exist_ok=True)

    def config(self, recipes: Recipes) -> dict[str, Any]:
        """Return Spack's section ``config``: every place that Spack writes to."""
        return {
            "install_tree": {"root": str(self.installed)},
            "build_stage": [str(self.root / "stage")],
            "test_stage": str(self.root / "test"),
            "source_cache": str(self.root / "sources"),
            "misc_cache": str(recipes.index),
            "environments_root": str(self.environments),
            "license_dir": str(self.root / "licenses"),
            "develop_stage_link": str(self.root / "links" / "{name}-{hash:7}"),
        }


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
