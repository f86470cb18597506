"""An MPI built by Spack from its source: a git checkout, an unpacked release, or the tarball of one.

What is built is a copy of the source. A hash of all its files is in the name of its folder and in the prefix,
and so in every record of what runs on it. A source that has changed is another MPI, and built anew. Spack is
told of the copy as ``spack develop`` tells it. It takes the recipe of the MPI without patches, which are for
releases, and the user's own configuration: what is preferred of the MPI, and what it finds below it.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from postprocess.base import files
from site_configs.families import FAMILIES, PACKAGES
from spack_envs.install import Builder, hold_build_lock
from spack_envs.layout import Recipes, SpackEnvironmentError, SpackLayout
from spack_envs.machine import SAFE_PATH, VERSION, ExternalPackage, build_external_entry, find_toolchain
from spack_envs.mirror.manifest import describe_file
from spack_envs.provide import Spack

DIGITS = 12  #: of the hash of a source in names
BUILT = "prefix"  #: file with the configuration that the MPI was built by, and where it is installed

RECIPE = '''"""Written by Plumbline: a source is built as it is. Patches are for releases."""

from spack_repo.builtin.packages.{package}.package import {name} as Official


class {name}(Official):
    """The same recipe, for the source with the hash {digest}."""


{name}.patches = {{}}
'''


@dataclass(frozen=True)
class MpiSource:
    """A copy of an MPI's source, and what it is."""

    family: str
    version: str  #: as Spack is told
    digest: str  #: SHA-256 of all files, or of the tarball
    place: Path  #: with the copy in ``source``, and Spack's environment

    @property
    def copy(self) -> Path:
        return self.place / "source"

    @property
    def label(self) -> str:
        return f"{self.family}-{self.version}-source-{self.digest[:DIGITS]}"


def build_mpi(work: Path, spack: Spack, path: Path, say: Callable[[str], None]) -> tuple[Path, bool]:
    """Build the MPI of a source, unless just this source is built already.

    Returns its prefix, and whether it was built now.

    :param say: is told each line that Spack says
    :raises SpackEnvironmentError: in one line, if it is no source of a known MPI, or cannot be built.
    """
    try:
        source = take_source(path, SpackLayout(work).root / "mpis")
        with hold_build_lock(source.place):
            files.write_text(source.place / "spack.yaml", write_mpi_environment(work, spack, source))
            builder = Builder(work, spack.executable, source.place, say, users=True)
            configured = hash_configuration(builder)
            if found := find_built(source, configured):
                return found, False
            return install_mpi(builder, source, configured), True
    except OSError as error:
        raise SpackEnvironmentError(f"{error.filename or path}: {error.strerror}") from None


def take_source(path: Path, root: Path) -> MpiSource:
    """Copy a source below ``root``, unless it is there, and find out of which MPI it is."""
    names = [] if path.is_file() else sorted(list_files(path))
    digest = hash_source(path, names)
    place = root / digest[:DIGITS]
    if not (place / "source").is_dir():
        with files.new_folder(place / "source") as folder:
            unpack(path, folder) if path.is_file() else copy_files(path, names, folder)
            if (hash_source(path, names) if path.is_file() else hash_files(folder, names)) != digest:
                raise SpackEnvironmentError(f"{path}: was changed while it was copied; run the command again")
    family, version = identify_source(place / "source", path)
    return MpiSource(family, version, digest, place)


def hash_source(path: Path, names: Iterable[str]) -> str:
    return describe_file(path.parent, path.name).sha256 if path.is_file() else hash_files(path, names)


def list_files(folder: Path) -> Iterator[str]:
    """List the files and links of a source: of a checkout those that git does not ignore, else all."""
    if (folder / ".git").exists():
        found: Iterable[str] = list_git_files(folder)
    else:
        every = (
            os.path.join(where, name) for where, *names in os.walk(folder) for each in names for name in each
        )
        found = (os.path.relpath(path, folder) for path in every)
    return (name for name in found if (folder / name).is_symlink() or (folder / name).is_file())


def list_git_files(folder: Path) -> Iterator[str]:
    """List what git knows in a checkout and its submodules, and what it neither knows nor ignores."""
    each = ["submodule", "foreach", "--recursive", "--quiet", "printf '%s\\0' \"$displaypath\""]
    yield from ask_git(folder, "ls-files", "-z", "--cached", "--recurse-submodules")
    for module in ["", *ask_git(folder, *each)]:
        for name in ask_git(folder / module, "ls-files", "-z", "--others", "--exclude-standard"):
            yield os.path.join(module, name)


def ask_git(folder: Path, *words: str) -> list[str]:
    return [name for name in run(["git", "-C", str(folder), *words], folder).split("\0") if name]


def run(command: list[str], path: Path) -> str:
    """Run a tool on a source, and return what it prints.

    :raises SpackEnvironmentError: with the first line of its errors, if it fails.
    """
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="surrogateescape", check=False)
    if done.returncode != 0:
        why = next(iter(done.stderr.strip().splitlines()), f"{command[0]} failed")
        raise SpackEnvironmentError(f"{path}: {why}")
    return done.stdout


def hash_files(folder: Path, names: Iterable[str]) -> str:
    """Hash files by name, contents, and whether they can be run; a link by where it leads."""
    digest = hashlib.sha256()
    for name in names:
        path = folder / name
        content = f"link {os.readlink(path)}" if path.is_symlink() else describe_file(folder, name).sha256
        digest.update(os.fsencode(f"{name}\0{content} {os.access(path, os.X_OK)}\0"))
    return digest.hexdigest()


def copy_files(folder: Path, names: Iterable[str], target: Path) -> None:
    """Copy files with their times, by which ``make`` knows what is up to date."""
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(folder / name, target / name, follow_symlinks=False)


def unpack(archive: Path, target: Path) -> None:
    """Unpack a tarball without the folder that all is in."""
    run(["tar", "-xf", str(archive), "--strip-components=1", "--no-same-owner", "-C", str(target)], archive)


def identify_source(folder: Path, path: Path) -> tuple[str, str]:
    """Find out family and version of a source.

    :param path: what the user calls it
    :raises SpackEnvironmentError: if it is of no MPI that is known, or Spack would misread its version.
    """
    known = {family.name: family.source for family in FAMILIES.values() if family.source}
    for family, source in known.items():
        file = folder / source.file
        match = source.pattern.search(files.read_text(file, "replace")) if file.is_file() else None
        if not match:
            continue
        version = ".".join(match.groups()) if (folder / "configure").exists() else source.unreleased
        if version != source.unreleased and not VERSION.fullmatch(version):
            raise SpackEnvironmentError(f"{path}: {version!r} is not a version number")
        return family, version
    raise SpackEnvironmentError(f"{path}: is not the source of {' or '.join(known)}")


def hash_configuration(builder: Builder) -> str:
    """Hash what Spack is told of packages, the user's own configuration included."""
    silent = replace(builder, say=lambda _: None)
    return hashlib.sha256(silent.call(builder.directory, "config", "get", "packages").encode()).hexdigest()


def find_built(source: MpiSource, configured: str) -> Path | None:
    """Find the prefix of what was built of a source by this configuration; None if it is not there."""
    try:
        known, prefix = files.read_text(source.place / BUILT).splitlines()
    except (OSError, ValueError):
        return None
    return Path(prefix) if known == configured and (Path(prefix) / "bin" / "mpicc").exists() else None


def install_mpi(builder: Builder, source: MpiSource, configured: str) -> Path:
    """Let Spack solve and build a source, and keep where it is.

    :raises SpackEnvironmentError: if it fails, or Spack takes another MPI, such as an external one
    """
    package = PACKAGES[source.family]
    builder.say("Spack finds out what it depends on")
    builder.call(source.place, "concretize", "--force")
    builder.call(source.place, "install")
    prefix = builder.call(source.place, "location", "-i", package).split()[-1]
    if source.label not in prefix:
        fix = f"remove the externals of {package} from Spack's configuration"
        raise SpackEnvironmentError(f"Spack took {prefix}, which is not built from this source; {fix}")
    files.write_text(source.place / BUILT, f"{configured}\n{prefix}\n")
    return Path(prefix)


def write_mpi_environment(work: Path, spack: Spack, source: MpiSource) -> str:
    """Write the recipe, and return Spack's environment. What it leaves open is the user's."""
    layout = SpackLayout(work)
    if not SAFE_PATH.fullmatch(str(work)):
        raise SpackEnvironmentError(f"{str(work)!r}: Spack needs a path of letters, digits and _ + . - only")
    package = PACKAGES[source.family]
    spec = f"{package}@={source.version}"
    name = f"source_{source.digest[:DIGITS]}"  # Spack's index goes by the names of repositories
    repository = source.place / "spack_repo" / name
    files.write_text(repository / "repo.yaml", f"repo:\n  namespace: {name}\n  api: v2.0\n")
    recipe = RECIPE.format(package=package, name=package.capitalize(), digest=source.digest)
    files.write_text(repository / "packages" / package / "package.py", recipe)
    builtin = spack.packages / "repos" / "spack_repo" / "builtin"
    config = layout.config(Recipes(layout.recipes / "all", ()))
    del config["environments_root"]  # an environment must not say it of itself
    config["install_tree"] |= {"projections": {package: f"{source.label}/{{hash:7}}"}}
    settings: dict[str, Any] = {
        "specs": [spec],
        "view": False,
        "concretizer": {"unify": True, "static_analysis": True, "targets": {"granularity": "generic"}},
        "repos:": {name: str(repository), "builtin": str(builtin)},
        "develop": {package: {"spec": spec, "path": str(source.copy)}},
        "config": config,
        "packages": {tool.package: describe_tool(tool) for tool in find_toolchain()},
    }
    return yaml.safe_dump({"spack": settings}, sort_keys=False, width=1000)


def describe_tool(tool: ExternalPackage) -> dict[str, Any]:
    """Describe a compiler or tool of this machine; the user's configuration may have others beside it."""
    return {"externals": build_external_entry(tool)["externals"]}
