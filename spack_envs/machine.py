"""The Spack environment of one MPI on this machine: its prefix, the compiler and tools, and the file.

Spack builds with ``PREFIX/bin/mpicc`` and looks for ``PREFIX/include/mpi.h``. Debian's MPIs share the prefix
/usr, where ``mpicc`` is the default one of them: without a facade the wrong one is silently used. Intel's
recipe needs the layout of oneAPI, ``PREFIX/mpi/VERSION/bin``, which the wheels do not have.

The environment is a copy of ``spack_envs/<family>/spack.yaml`` with a ``machine.yaml`` beside it. Nothing is
written to the sources. Unchanged files are not touched; if something has changed, the old solution
(``spack.lock``) is removed, because Spack would otherwise use it forever.
"""

import hashlib
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import yaml

from postprocess.base import files
from site_configs.families import PACKAGES, find_family
from spack_envs.layout import BUILT, TOOLS, Recipes, SpackEnvironmentError, SpackLayout, build_closed_recipes
from spack_envs.provide import MirroredSources, Spack, write_repository

WRAPPERS = ("mpicc", "mpicxx", "mpic++", "mpif77", "mpif90", "mpifort", "mpiexec", "mpirun")
SHARED_PREFIXES = (Path("/"), Path("/usr"), Path("/usr/local"))
INTEL_FOLDERS = ("bin", "lib", "include", "etc", "env", "opt", "share")


class FacadeMpi(Protocol):
    """An MPI that was found, or that a site file declares, with the modules that it needs."""

    @property
    def name(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def prefix(self) -> str: ...
    @property
    def mpicc(self) -> str: ...
    @property
    def mpiexec(self) -> str: ...
    @property
    def modules(self) -> Sequence[str]: ...


def prefix_for_spack(mpi: FacadeMpi, facades: Path) -> Path:
    """Return the prefix for Spack. A substitute prefix is made below ``facades``.

    An MPI at another place has another facade, because Spack distinguishes installations by the prefix of their
    MPI. Raises OSError if it cannot be made.
    """
    in_component = find_family(mpi.family).in_component_folder
    if not in_component and is_own_prefix(Path(mpi.prefix), Path(mpi.mpicc)):
        return Path(mpi.prefix)
    place = "\0".join((mpi.prefix, mpi.mpicc, mpi.mpiexec))
    facade = facades / f"{mpi.name}-{hashlib.sha256(place.encode()).hexdigest()[:8]}"
    if in_component:
        make_intel_facade(Path(mpi.prefix), mpi.version, facade)
    else:
        make_bin_facade(Path(mpi.mpicc), Path(mpi.mpiexec), facade)
    return facade


def is_own_prefix(prefix: Path, mpicc: Path) -> bool:
    """Return whether ``prefix`` belongs to this MPI alone, with wrapper and header where Spack looks."""
    whole = mpicc == prefix / "bin" / "mpicc" and (prefix / "include" / "mpi.h").exists()
    return whole and prefix not in SHARED_PREFIXES


def make_intel_facade(prefix: Path, version: str, facade: Path) -> None:
    """Make ``facade/mpi/VERSION/...`` with links to the folders of ``prefix``."""
    component = facade / "mpi" / format_component_version(version)
    for name in INTEL_FOLDERS:
        if (prefix / name).is_dir():
            files.make_symlink(component / name, prefix / name)


def format_component_version(version: str) -> str:
    """Format oneAPI's folder name for a version: two numbers from 2021.11 on, all of them before."""
    year, _, rest = version.partition(".")
    release = re.match(r"\d+", rest)
    numbers = (int(year) if year.isdecimal() else 0, int(release.group()) if release else 0)
    return ".".join(version.split(".")[:2]) if numbers >= (2021, 11) else version


def make_bin_facade(mpicc: Path, mpiexec: Path, facade: Path) -> None:
    """Make ``facade/bin/TOOL`` for the tools beside ``mpicc`` with the same suffix, and ``include``.

    They are scripts, not links, because several MPIs find their files by the name they are called with.
    """
    ending = mpicc.name.removeprefix("mpicc")
    targets = {tool: mpicc.with_name(tool + ending) for tool in WRAPPERS}
    targets = {tool: path for tool, path in targets.items() if path.exists()}
    targets |= {"mpicc": mpicc, "mpiexec": mpiexec}
    if include := find_header_folder(mpicc):
        files.make_symlink(facade / "include", include)
    for tool, path in targets.items():
        script = f'#!/bin/sh\nexec {shlex.quote(str(path))} "$@"\n'
        files.write_text(facade / "bin" / tool, script, mode=0o755)


def find_header_folder(mpicc: Path) -> Path | None:
    """Find the folder with ``mpi.h`` among the include folders of a wrapper."""
    try:
        done = subprocess.run([mpicc, "-show"], capture_output=True, text=True, timeout=60, check=True)
        words = shlex.split(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    folders = [Path(word[2:]) for word in words if word.startswith("-I")]
    return next((folder for folder in folders if (folder / "mpi.h").exists()), None)


NUMBER = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True)
class ExternalPackage:
    """A package that Spack uses as it is. ``compilers`` maps languages to executables."""

    package: str
    spec: str
    prefix: str
    compilers: dict[str, str] = field(default_factory=dict)
    modules: tuple[str, ...] = ()  #: modules that Spack loads when it builds with it


def find_toolchain(folders: Sequence[Path] | None = None) -> tuple[ExternalPackage, ...]:
    """Find GCC, CMake, Ninja and, if it is there, GNU Make, which mpicost does without.

    :param folders: where to look; by default beside this Python (the wheels), then PATH.
    :raises SpackEnvironmentError: names the one that is missing.
    """
    if folders is None:
        return find_own_toolchain(os.environ.get("PATH", ""))
    tools = (find_tool("cmake", folders), find_tool("ninja", folders))
    return (find_gcc(folders), *tools, *find_make(folders))


@cache
def find_own_toolchain(path: str) -> tuple[ExternalPackage, ...]:
    """Find the toolchain beside this Python and on a PATH, once for all MPIs."""
    on_path = [Path(entry) for entry in path.split(os.pathsep) if entry]
    return find_toolchain([Path(sys.executable).parent, *on_path])


def find_gcc(folders: Sequence[Path]) -> ExternalPackage:
    """Find the first GCC that works, with C++ and Fortran if they are beside it."""
    for folder in list_tool_candidates("gcc", folders):
        version = read_tool_version([str(folder / "gcc"), "-dumpfullversion", "-dumpversion"])
        if version:
            names = {"c": "gcc", "cxx": "g++", "fortran": "gfortran"}
            compilers = {
                language: str(folder / name) for language, name in names.items() if is_executable(folder / name)
            }
            languages = ",".join({"cxx": "c++"}.get(language, language) for language in compilers)
            spec = f"gcc@{version} languages='{languages}'"
            return ExternalPackage("gcc", spec, str(folder.parent), compilers)
    raise SpackEnvironmentError("no gcc on PATH: Spack's environments are compiled with GCC")


def find_tool(name: str, folders: Sequence[Path]) -> ExternalPackage:
    """Find the first ``name`` that prints its version."""
    for folder in list_tool_candidates(name, folders):
        if version := read_tool_version([str(folder / name), "--version"]):
            return ExternalPackage(name, f"{name}@{version}", str(folder.parent))
    raise SpackEnvironmentError(f"no {name} beside {sys.executable} nor on PATH: pip install {name}")


def find_make(folders: Sequence[Path]) -> Iterator[ExternalPackage]:
    """Find the first ``make`` that is GNU Make, if there is one. Spack calls it by this name."""
    for folder in list_tool_candidates("make", folders):
        if version := read_tool_version([str(folder / "make"), "--version"], "GNU Make"):
            yield ExternalPackage("gmake", f"gmake@{version}", str(folder.parent))
            return


def list_tool_candidates(name: str, folders: Sequence[Path]) -> Iterator[Path]:
    """List folders with ``name`` that are the ``bin`` of a prefix, as Spack expects."""
    return (folder for folder in folders if folder.name == "bin" and is_executable(folder / name))


def is_executable(path: Path) -> bool:
    """Return whether ``path`` is an executable file."""
    return path.is_file() and os.access(path, os.X_OK)


def read_tool_version(command: list[str], words: str = "") -> str | None:
    """Read the version number after ``words`` in a command's output; None if it fails or prints none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = NUMBER.search(done.stdout.partition(words)[2] if words else done.stdout)
    return match.group() if done.returncode == 0 and match else None


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
VERSION = re.compile(r"[0-9][A-Za-z0-9_.-]*")
#: Spack replaces other characters in some of its paths, and expands some.
SAFE_PATH = re.compile(r"/[A-Za-z0-9_+./-]*")


@dataclass(frozen=True)
class SpackEnvironment:
    """A Spack environment that is ready for ``spack -e DIRECTORY install``."""

    directory: Path
    prefix: Path  #: prefix of the MPI, as Spack gets it
    changed: bool  #: whether it will be solved again

    @property
    def lock(self) -> Path:
        """Spack's solution, present after the first install."""
        return self.directory / "spack.lock"


def write_environment(
    work: Path,
    source: Path,
    spack: Spack,
    mpi: FacadeMpi,
    toolchain: Sequence[ExternalPackage] | None = None,
    sources: MirroredSources | None = None,
) -> SpackEnvironment:
    """Write or update the environment of one MPI.

    :param work: work directory; everything is below its folder ``spack``
    :param source: root of Plumbline's sources
    :param sources: sources of a mirror, which Spack tries first
    :raises SpackEnvironmentError: if it cannot be made on this machine, in one line.
    """
    layout = SpackLayout(work)
    check_names(mpi, (work, source, Path(mpi.prefix), *([sources.folder] if sources else [])))
    try:
        return assemble_environment(layout, source, spack, mpi, toolchain or find_toolchain(), sources)
    except OSError as error:
        raise SpackEnvironmentError(f"{error.filename}: {error.strerror}") from None


def assemble_environment(
    layout: SpackLayout,
    source: Path,
    spack: Spack,
    mpi: FacadeMpi,
    toolchain: Sequence[ExternalPackage],
    sources: MirroredSources | None,
) -> SpackEnvironment:
    """Assemble the parts of an environment, one after the other."""
    (layout.root / "links").mkdir(parents=True, exist_ok=True)  # Spack makes its other folders itself
    ours = source / "spack_envs"
    recipes = build_closed_recipes(layout.recipes, spack.packages, ours / "spack_repo" / "plumbline")
    substitutes = sources.substitutes if sources else ()
    replaced = write_repository(layout.mirrored, recipes.plumbline, substitutes)
    prefix = prefix_for_spack(mpi, layout.facades)
    directory = layout.environment(mpi.name)
    common = {layout.environments / "common" / path.name: path for path in ours.glob("common/*.yaml")}
    copies = {directory / "spack.yaml": ours / mpi.family / "spack.yaml"} | common
    wanted = {copy: files.read_text(path) for copy, path in copies.items()}
    inputs = hashlib.sha256("\0".join([spack.version, *wanted.values()]).encode()).hexdigest()
    settings = {
        "config": layout.config(recipes),
        "bootstrap": {"enable": False},
        "repos:": replaced | {"plumbline": str(recipes.plumbline), "builtin": str(recipes.builtin)},
        "mirrors:": build_mirror_section(sources, os.environ.get("PLUMBLINE_SPACK_MIRROR")),
        "concretizer": {"static_analysis": True},
        "develop": {"mpicost": {"spec": "mpicost@main", "path": str(source / "suite")}},
        "packages": build_packages_section(mpi, prefix, toolchain, recipes),
    }
    wanted[directory / "machine.yaml"] = render_machine_yaml(mpi.name, inputs, settings)
    return SpackEnvironment(directory, prefix, update_directory(directory, wanted))


def check_names(mpi: FacadeMpi, paths: Sequence[Path]) -> None:
    """Refuse what Spack would misread. Raises SpackEnvironmentError naming the value and the fix."""
    if mpi.family not in PACKAGES:
        families = ", ".join(PACKAGES)
        raise SpackEnvironmentError(
            f"{mpi.name}: no Spack environment for family {mpi.family!r} (have {families})"
        )
    if not NAME.fullmatch(mpi.name) or mpi.name == "common":
        raise SpackEnvironmentError(f"environment {mpi.name!r}: not a name (letters, digits, _ . + -)")
    if not VERSION.fullmatch(mpi.version):
        raise SpackEnvironmentError(f"{mpi.name}: {mpi.version!r} is not a version number")
    for path in paths:
        if not SAFE_PATH.fullmatch(str(path)):
            raise SpackEnvironmentError(
                f"{str(path)!r}: Spack needs an absolute path of letters, digits and _ + . - only"
            )


def build_mirror_section(sources: MirroredSources | None, address: str | None) -> dict[str, Any]:
    """Build the section ``mirrors``: ours, if there is one, followed by the site's own."""
    site = {"site": {"url": address, "source": True, "binary": False}} if address else {}
    return ({"plumbline": sources.entry} if sources else {}) | site


def build_packages_section(
    mpi: FacadeMpi, prefix: Path, toolchain: Sequence[ExternalPackage], recipes: Recipes
) -> dict[str, Any]:
    """Build the section ``packages``: this MPI and the toolchain as externals, and only BUILT compiled.

    A double colon in Spack's files (one at the end of a key here) overrides the site's own files.
    """
    family = find_family(mpi.family)
    name = family.package
    spec = f"{name}@={mpi.version}{family.variants}"
    mpi_package = ExternalPackage(name, spec, str(prefix), modules=tuple(mpi.modules))
    externals = [mpi_package, *toolchain]
    given = {external.package for external in externals}
    closed = {*recipes.closed, *TOOLS} - given
    section: dict[str, Any] = {package: {"buildable": False} for package in sorted(closed)}
    section |= {f"{package}:": {"buildable": True} for package in BUILT}
    section |= {f"{external.package}:": build_external_entry(external) for external in externals}
    section["mpi:"] = {"buildable": False, "require": [f"{name}@={mpi.version}"]}
    section["all:"] = {"require": [f"target={platform.machine()}"]}
    return section


def build_external_entry(external: ExternalPackage) -> dict[str, Any]:
    entry: dict[str, Any] = {"spec": external.spec, "prefix": external.prefix}
    if external.compilers:
        entry["extra_attributes"] = {"compilers": external.compilers}
    if external.modules:
        entry["modules"] = list(external.modules)
    return {"buildable": False, "externals": [entry]}


def render_machine_yaml(name: str, inputs: str, settings: dict[str, Any]) -> str:
    """Render ``machine.yaml``. If two repositories have the same package, the first one counts."""
    head = f"# Written by Plumbline for {name}; changes are overwritten.\n# Other inputs: {inputs[:16]}\n"
    return head + yaml.safe_dump(settings, sort_keys=False, width=1000)


def update_directory(directory: Path, wanted: dict[Path, str]) -> bool:
    """Write what differs; the old solution is removed first, so that a killed process leaves no stale one."""
    changed = any(files.is_different(path, text) for path, text in wanted.items())
    if changed:
        (directory / "spack.lock").unlink(missing_ok=True)
    for path, text in wanted.items():
        files.write_text(path, text)
    return changed
