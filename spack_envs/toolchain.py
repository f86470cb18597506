"""The machine's compiler and build tools, as externals for Spack."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spack_envs.errors import SpackEnvironmentError

VERSION = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True)
class ExternalPackage:
    """A package that Spack takes as it is. ``compilers`` maps languages to executables."""

    package: str
    spec: str
    prefix: str
    compilers: dict[str, str] = field(default_factory=dict)
    modules: tuple[str, ...] = ()  #: that Spack loads where it builds with it


def find_toolchain(folders: Sequence[Path] | None = None) -> tuple[ExternalPackage, ...]:
    """Find GCC, CMake, Ninja and, if it is there, GNU Make, which mpicost does without.

    :param folders: where to look; by default beside this Python (the wheels), then PATH.
    :raises SpackEnvironmentError: naming the one that is missing.
    """
    if folders is None:
        folders = [Path(sys.executable).parent, *list_search_path()]
    tools = (find_tool("cmake", folders), find_tool("ninja", folders))
    return (find_gcc(folders), *tools, *find_make(folders))


def list_search_path() -> list[Path]:
    """List the folders of PATH."""
    return [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]


def find_gcc(folders: Sequence[Path]) -> ExternalPackage:
    """Find the first GCC that answers, with C++ and Fortran where they stand beside it."""
    for folder in list_tool_candidates("gcc", folders):
        version = read_tool_version([str(folder / "gcc"), "-dumpfullversion", "-dumpversion"])
        if version:
            names = {"c": "gcc", "cxx": "g++", "fortran": "gfortran"}
            found = {
                language: str(folder / name) for language, name in names.items() if is_executable(folder / name)
            }
            languages = ",".join({"cxx": "c++"}.get(language, language) for language in found)
            spec = f"gcc@{version} languages='{languages}'"
            return ExternalPackage("gcc", spec, str(folder.parent), found)
    raise SpackEnvironmentError("no gcc on PATH: Spack's environments are compiled with GCC")


def find_tool(name: str, folders: Sequence[Path]) -> ExternalPackage:
    """Find the first ``name`` that answers with its version."""
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
    """List folders that hold ``name`` where a Spack prefix has it, which is in ``bin``."""
    return (folder for folder in folders if folder.name == "bin" and is_executable(folder / name))


def is_executable(path: Path) -> bool:
    """Return whether ``path`` is a file that may be run."""
    return path.is_file() and os.access(path, os.X_OK)


def read_tool_version(command: list[str], words: str = "") -> str | None:
    """Read the version number after ``words`` in what a command prints, or None if it fails or prints none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = VERSION.search(done.stdout.partition(words)[2] if words else done.stdout)
    return match.group() if done.returncode == 0 and match else None
