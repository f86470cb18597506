"""Spack below a work directory: its folders, calls and errors, and the recipes that an environment may use.

Only the packages of KNOWN can be in an environment, and only those of BUILT are ever compiled: a missing CMake
is an error, not an hour of compiling one. This also makes the first use quick: Spack indexes some 140 recipes
instead of 8500, and solves a problem a tenth as large, with the same result.
"""

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postprocess.base import files, strict_json
from site_configs.families import PACKAGES
from site_configs.programs.program import PRODUCTS

ERROR = re.compile(r"^==> Error: (.*)")
TELLING = ("error: ", "*** ")  #: marks of errors in messages of compilers, configure and make
FOLD = re.compile(r"\n {11}")  #: where Spack folds a long line in its extract of a log
NUMBER = re.compile(r"^\s*(?:>>)?\s*\d+\s+")  #: line number in Spack's extract of a log
ADDRESS = re.compile(r"\b(?:https?|ftp|file|ssh|git)://[^\s'\"]+[^\s'\":,.]")
UNFETCHED = "All fetchers failed"  #: Spack's words if no address has a source
UNSOLVED = "failed to concretize"  #: Spack's words if a request has no solution
CAUSES = (re.compile(r"errored with: (.+)"), re.compile(r"^fatal: (?:unable to access '[^']*': )?(.+)"))
NUMBERED = re.compile(r"^\s+\d+\. (.+)")
LOG = re.compile(r"^\s+(/\S+/spack-build-out\.txt)\s*$")
FIX = "./plumbline setup --mirror DIR takes it from a mirror"


class SpackEnvironmentError(Exception):
    """An environment cannot be made on this machine. The text is one line: what, and the fix."""


class SourceError(SpackEnvironmentError):
    """The source of a program cannot be fetched, so this machine has nothing to build it from."""


def extract_spack_error(output: str) -> SpackEnvironmentError:
    """Extract the reason of a failure in one line, with the fix if known; never empty.

    :returns: a ``SourceError`` if a source cannot be fetched.
    """
    lines = FOLD.sub("", output).splitlines()
    place = next((number for number, line in enumerate(lines) if ERROR.match(line)), None)
    if place is None:
        texts = [line.strip() for line in lines if line.strip()]
        return SpackEnvironmentError(texts[-1] if texts else "Spack ends without a word")
    if UNFETCHED in lines[place]:
        return SourceError(describe_fetch_failure(lines, place))
    return SpackEnvironmentError(describe_build_failure(lines, place))


def describe_build_failure(lines: list[str], place: int) -> str:
    """Describe why something cannot be solved or built, with the file that has all of it.

    :param place: index of the line with Spack's own reason
    """
    reason = ERROR.sub(r"\1", lines[place]).strip()
    after = lines[place + 1 :]
    if UNSOLVED in reason:
        numbered = (match[1] for line in after if (match := NUMBERED.match(line)))
        return f"cannot be solved: {next(numbered, reason)}"
    details = [NUMBER.sub("", line) for line in after if any(word in line for word in TELLING)]
    details += [line for line in after[:1] if line.startswith(" ")]
    detail = f": {details[0].strip()}" if details else ""
    log = next((f" (all of it: {match[1]})" for line in after if (match := LOG.match(line))), "")
    return f"{reason.rstrip(':')}{detail}{log}"


def describe_fetch_failure(lines: list[str], place: int) -> str:
    """Describe why a source cannot be fetched: the last address tried, its answer, and the fix."""
    addresses = ADDRESS.findall("\n".join(lines[place + 1 :]))
    causes = (cause for line in lines for pattern in CAUSES if (cause := pattern.search(line)))
    answer = next((cause[1].strip() for cause in causes), "no answer")
    address = addresses[-1] if addresses else "its source"
    return f"cannot be fetched from {address} ({answer}): {FIX}"


#: gnuconfig is a few scripts, for configure on CPUs other than x86.
BUILT = (*(product.package for product in PRODUCTS.values()), *("compiler-wrapper", "gcc-runtime", "gnuconfig"))
TOOLS = ("cmake", "ninja", "gmake")
EXTERNAL = ("gcc", "glibc", "musl", *TOOLS, *PACKAGES.values())
NAME_IN_A_STRING = re.compile(r"""["'^%]([a-z0-9][a-z0-9-]*)""")
VIRTUAL = re.compile(r"^    virtual = True", re.MULTILINE)


@dataclass(frozen=True)
class Recipes:
    """A closed set of recipes on disk. It never changes: other contents have another folder."""

    root: Path
    closed: tuple[str, ...]  #: packages that the known ones name, but that must not be built

    @property
    def builtin(self) -> Path:
        """Spack's repository ``builtin``, reduced."""
        return self.root / "spack_repo" / "builtin"

    @property
    def plumbline(self) -> Path:
        """A copy of our repository, so that Python leaves no cache in the sources."""
        return self.root / "spack_repo" / "plumbline"

    @property
    def index(self) -> Path:
        """Spack's index of these recipes. It is keyed by the names of repositories, so it cannot be shared."""
        return self.root / "index"


def build_closed_recipes(folder: Path, packages: Path, ours: Path) -> Recipes:
    """Make the closed set of recipes below ``folder``, or find it there.

    :param packages: checkout of Spack's package recipes
    :param ours: our repository, ``spack_envs/spack_repo/plumbline``
    :raises SpackEnvironmentError: if ``packages`` lacks the needed recipes.
    """
    builtin = packages / "repos" / "spack_repo" / "builtin"
    try:
        named = packages_named(builtin)
        root = folder / compute_fingerprint(builtin, named, ours)
        if not root.is_dir():
            write_closed_recipes(root, builtin, named, ours)
    except OSError as error:
        raise SpackEnvironmentError(f"{error.filename}: {error.strerror}") from None
    closed = {path.name.lstrip("_").replace("_", "-") for path in named if not is_virtual(path)}
    return Recipes(root, tuple(sorted(closed - {*BUILT, *EXTERNAL})))


def packages_named(builtin: Path) -> list[Path]:
    """Return the folders of all packages that a known recipe, or its build system, names in a string.

    These are more than it depends on, never fewer; Spack must know all of them to read the recipe.
    """
    folders = {entry.name for entry in os.scandir(builtin / "packages")}
    recipe_names = [name.replace("-", "_") for name in (*BUILT, *EXTERNAL) if name != "mpicost"]
    texts = [builtin / "packages" / name / "package.py" for name in recipe_names]
    texts += sorted((builtin / "build_systems").glob("*.py"))
    names = {name for path in texts for name in NAME_IN_A_STRING.findall(files.read_text(path))}
    named = {name.replace("-", "_") for name in names} & folders
    return [builtin / "packages" / name for name in sorted(named | set(recipe_names))]


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
    """Build a line for the end of a recipe's class that changes with all of our code that it may import.

    Spack's hash of a package covers only its own ``package.py``: without this line, programs would not be
    rebuilt when their flags change elsewhere.
    """
    digest = hashlib.sha256()
    for path in sorted([*ours.glob("*.py"), *ours.glob(f"packages/{folder}/*.py")]):
        digest.update(str(path.relative_to(ours)).encode() + b"\0" + files.read_regular(path) + b"\0")
    return f"\n    recipes_of_plumbline = {digest.hexdigest()!r}\n"


def write_closed_recipes(root: Path, builtin: Path, named: Iterable[Path], ours: Path) -> None:
    with files.new_folder(root) as folder:
        repository = folder / "spack_repo" / "builtin"
        (repository / "packages").mkdir(parents=True)
        for path in (builtin / "repo.yaml", builtin / "build_systems"):
            (repository / path.name).symlink_to(path)
        for path in named:
            (repository / "packages" / path.name).symlink_to(path)
        copy = folder / "spack_repo" / ours.name
        shutil.copytree(ours, copy, ignore=shutil.ignore_patterns("__*"))
        for recipe in copy.glob("packages/*/package.py"):
            with recipe.open("a", encoding="utf-8") as file:
                file.write(build_attribute(ours, recipe.parent.name))


PACKAGE = "mpicost"


@dataclass(frozen=True)
class SpackLayout:
    """Folders below ``<work>/spack``."""

    work: Path

    @property
    def root(self) -> Path:
        return self.work / "spack"

    @property
    def environments(self) -> Path:
        """One folder per environment, and ``common``."""
        return self.root / "environments"

    @property
    def installed(self) -> Path:
        return self.root / "installed"

    @property
    def facades(self) -> Path:
        """Prefixes for MPIs that do not look as Spack expects."""
        return self.root / "facades"

    @property
    def recipes(self) -> Path:
        return self.root / "recipes"

    @property
    def mirrored(self) -> Path:
        """Unpacked parts of a mirror, and recipes of sources that it replaces."""
        return self.root / "mirrored"

    @property
    def user_cache(self) -> Path:
        """What Spack would otherwise keep in the home directory."""
        return self.root / "cache"

    def environment(self, name: str) -> Path:
        return self.environments / name

    def config(self, recipes: Recipes) -> dict[str, Any]:
        """Return Spack's section ``config``, with every place that Spack writes to."""
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
    """Return the variables under which Spack writes only below ``work``.

    The Python of this process has the solver, which Spack would otherwise download.
    """
    return {
        "SPACK_PYTHON": sys.executable,
        "SPACK_DISABLE_LOCAL_CONFIG": "1",
        "SPACK_USER_CACHE_PATH": str(SpackLayout(work).user_cache),
        "PATH": os.pathsep.join([str(executable.parent), environ.get("PATH", os.defpath)]),
    }


def read_locked_hash(directory: Path, package: str = PACKAGE) -> str:
    """Read the hash of a package in an environment's solution, without starting Spack.

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
