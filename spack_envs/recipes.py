"""The recipes that an environment may use: a closed set, copied from the package repository.

Only the packages of KNOWN can end up in an environment, and only those of BUILT are ever compiled: a
missing CMake is an error, not an hour of compiling one. It also is what makes the first use quick: Spack
indexes some 140 recipes instead of 8500, and solves a problem a tenth as large, with the same answer.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from postprocess.base import files
from site_configs.mpi.family import PACKAGES
from site_configs.programs.program import PRODUCTS
from spack_envs.errors import SpackEnvironmentError

#: gnuconfig is a few scripts, for configure on other CPUs than x86.
BUILT = (*(product.package for product in PRODUCTS.values()), *("compiler-wrapper", "gcc-runtime", "gnuconfig"))
TOOLS = ("cmake", "ninja", "gmake")
EXTERNAL = ("gcc", "glibc", "musl", *TOOLS, *(package for package, _ in PACKAGES.values()))
NAME_IN_A_STRING = re.compile(r"""["'^%]([a-z0-9][a-z0-9-]*)""")
VIRTUAL = re.compile(r"^    virtual = True", re.MULTILINE)


@dataclass(frozen=True)
class Recipes:
    """A closed set of recipes on disk. It never changes: other contents have another folder."""

    root: Path
    closed: tuple[str, ...]  #: packages that are named by the known ones, but must not be built

    @property
    def builtin(self) -> Path:
        """Spack's repository ``builtin``, cut down."""
        return self.root / "spack_repo" / "builtin"

    @property
    def plumbline(self) -> Path:
        """A copy of our repository, so that Python leaves no cache in the sources."""
        return self.root / "spack_repo" / "plumbline"

    @property
    def index(self) -> Path:
        """Spack's index of these recipes. It goes by the names of repositories, so it cannot be shared."""
        return self.root / "index"


def build_closed_recipes(folder: Path, packages: Path, ours: Path) -> Recipes:
    """Make the closed set of recipes below ``folder``, or find it there.

    :param packages: checkout of Spack's package recipes
    :param ours: our repository, ``spack_envs/spack_repo/plumbline``
    :raises SpackEnvironmentError: if ``packages`` has not the recipes that are needed.
    """
    builtin = packages / "repos" / "spack_repo" / "builtin"
    try:
        named = packages_named(builtin)
        root = folder / compute_fingerprint(builtin, named, ours)
        if not root.is_dir():
            write_closed_recipes(root, builtin, named, ours)
    except OSError as error:
        raise SpackEnvironmentError(f"{error.filename}: {error.strerror}") from None
    closed = {package_name(path.name) for path in named if not is_virtual(path)}
    return Recipes(root, tuple(sorted(closed - {*BUILT, *EXTERNAL})))


def packages_named(builtin: Path) -> list[Path]:
    """Return the folders of all packages that the recipe of a package, or its build system, names in a string.

    These are more than it depends on, never fewer; Spack must know each to read the recipe.
    """
    folders = {entry.name for entry in os.scandir(builtin / "packages")}
    known = [name.replace("-", "_") for name in (*BUILT, *EXTERNAL) if name != "mpicost"]
    texts = [builtin / "packages" / name / "package.py" for name in known]
    texts += sorted((builtin / "build_systems").glob("*.py"))
    names = {name for path in texts for name in NAME_IN_A_STRING.findall(files.read_text(path))}
    named = {name.replace("-", "_") for name in names} & folders
    return [builtin / "packages" / name for name in sorted(named | set(known))]


def package_name(folder: str) -> str:
    """Return the package that has this folder in a repository."""
    return folder.lstrip("_").replace("_", "-")


def is_virtual(package: Path) -> bool:
    """Return whether a package is an interface, such as ``mpi``, that others provide."""
    return bool(VIRTUAL.search(files.read_text(package / "package.py")))


def compute_fingerprint(builtin: Path, named: Iterable[Path], ours: Path) -> str:
    """Compute sixteen hexadecimal digits that change with any recipe's text or place."""
    digest = hashlib.sha256(str(builtin).encode() + build_attribute(ours, "*").encode())
    for path in sorted([*(package / "package.py" for package in named), ours / "repo.yaml"]):
        digest.update(str(path).encode() + b"\0" + files.read_regular(path))
    return digest.hexdigest()[:16]


def build_attribute(ours: Path, folder: str) -> str:
    """Build a line for the end of a recipe's class that changes with all code of ours that it may import.

    Spack's hash of a package sees no more than its own ``package.py``: without this line, programs would not be
    built again when their flags are changed elsewhere.

    :param folder: of the package
    """
    digest = hashlib.sha256()
    for path in sorted([*ours.glob("*.py"), *ours.glob(f"packages/{folder}/*.py")]):
        digest.update(str(path.relative_to(ours)).encode() + b"\0" + files.read_regular(path) + b"\0")
    return f"\n    recipes_of_plumbline = {digest.hexdigest()!r}\n"


def write_closed_recipes(root: Path, builtin: Path, named: Iterable[Path], ours: Path) -> None:
    """Make the world beside its place and move it there, whole."""
    root.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".incoming-", dir=root.parent))
    try:
        repository = temporary / "spack_repo" / "builtin"
        (repository / "packages").mkdir(parents=True)
        for path in (builtin / "repo.yaml", builtin / "build_systems"):
            (repository / path.name).symlink_to(path)
        for path in named:
            (repository / "packages" / path.name).symlink_to(path)
        own = temporary / "spack_repo" / ours.name
        shutil.copytree(ours, own, ignore=shutil.ignore_patterns("__*"))
        for recipe in own.glob("packages/*/package.py"):
            with recipe.open("a", encoding="utf-8") as file:
                file.write(build_attribute(ours, recipe.parent.name))
        temporary.chmod(0o755)
        temporary.rename(root)
    except OSError:
        if not root.is_dir():
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
