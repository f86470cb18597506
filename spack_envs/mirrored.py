"""What Spack takes from a mirror: its own release and recipes, unpacked, and sources with their checksums."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from postprocess.base import files
from spack_envs.errors import SpackEnvironmentError
from spack_envs.recipes import build_attribute

RECIPE = '''"""Written by Plumbline: this source is not the official one, and so has another checksum."""

from spack.package import version
from spack_repo.{namespace}.packages.{folder}.package import {name} as Official


class {name}(Official):
    """The same recipe with the source of the mirror."""

    replaced_source = {origin!r}
    version({version!r}, sha256={sha256!r})
{inherited}'''


@dataclass(frozen=True)
class Substitute:
    """A source that a mirror has in the place of the official one."""

    package: str
    version: str
    origin: str
    sha256: str


@dataclass(frozen=True)
class MirroredSources:
    """The sources of a mirror, in Spack's layout of a source mirror."""

    folder: Path
    substitutes: tuple[Substitute, ...] = ()

    @property
    def entry(self) -> dict[str, object]:
        """The entry of the mirror in Spack's section ``mirrors``."""
        return {"url": f"file://{self.folder}", "source": True, "binary": False}


def unpack_release(archive: Path, sha256: str, root: Path) -> Path:
    """Unpack a release's archive below ``root`` once, and return its folder.

    :raises SpackEnvironmentError: if the archive is not the one with this checksum or cannot be unpacked.
    """
    target = root / f"{archive.name.removesuffix('.tar.gz')}-{sha256[:16]}"
    if target.is_dir():
        return target
    try:
        data = files.read_regular(archive)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise SpackEnvironmentError(f"{archive}: is damaged; ./plumbline mirror create mends it")
        root.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".incoming-", dir=root))
        try:
            extract_archive(data, archive, temporary)
            temporary.chmod(0o755)
            temporary.rename(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        if not target.is_dir():  # another process was quicker
            raise SpackEnvironmentError(f"{error.filename}: {error.strerror}") from None
    return target


def extract_archive(data: bytes, archive: Path, folder: Path) -> None:
    """Unpack what was verified, and not what the file may have become meanwhile."""
    command = ["tar", "-xzf", "-", "--strip-components=1", "--no-same-owner", "-C", str(folder)]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["tar failed"]
        raise SpackEnvironmentError(f"{archive}: cannot be unpacked: {said[0]}")


def write_repository(root: Path, ours: Path, substitutes: Sequence[Substitute]) -> dict[str, str]:
    """Write a package repository with the checksums of substitutes; return its name and path, or nothing.

    Spack's own test of a checksum stays on, against another checksum. The hash of a spec goes with
    it, so that what was built from another source is never taken for the official one.

    :param ours: our repository; the recipes inherit from its own or, where it has none, from Spack's
    """
    if not substitutes:
        return {}
    texts = {substitute.package: write_recipe(substitute, ours) for substitute in substitutes}
    digest = hashlib.sha256("\0".join(texts.values()).encode()).hexdigest()[:8]
    name = f"mirror_{digest}"  # Spack's index goes by the names of repositories
    repository = root / name / "spack_repo" / name
    files.write_text(repository / "repo.yaml", f"repo:\n  namespace: {name}\n  api: v2.0\n")
    for package, text in texts.items():
        files.write_text(repository / "packages" / find_package_folder(package) / "package.py", text)
    return {name: str(repository)}


def write_recipe(substitute: Substitute, ours: Path) -> str:
    """Write the recipe of a package whose source is replaced, derived from its usual recipe."""
    folder = find_package_folder(substitute.package)
    has_own = (ours / "packages" / folder / "package.py").exists()
    return RECIPE.format(
        namespace="plumbline" if has_own else "builtin",
        folder=folder,
        name="".join(word.capitalize() for word in substitute.package.split("-")),
        origin=substitute.origin,
        version=substitute.version,
        sha256=substitute.sha256,
        inherited=build_attribute(ours, folder),
    )


def find_package_folder(package: str) -> str:
    """Find the folder of a package in a repository."""
    return package.replace("-", "_")
