"""The prefix of an MPI as Spack expects it: the MPI's own, or a facade that looks like one.

Spack builds with ``PREFIX/bin/mpicc``. Debian's MPIs share the prefix /usr, where that is whichever of them is
the default: without a facade the wrong one is taken, silently. Intel's recipe wants the layout of
oneAPI, ``PREFIX/mpi/VERSION/bin``, which the wheels do not have.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Protocol

from spack_envs import files

TOOLS = ("mpicc", "mpicxx", "mpic++", "mpif77", "mpif90", "mpifort", "mpiexec", "mpirun")
SHARED_PREFIXES = (Path("/"), Path("/usr"), Path("/usr/local"))
INTEL_FOLDERS = ("bin", "lib", "include", "etc", "env", "opt", "share")


class Mpi(Protocol):
    """What must be known of an MPI. Paths are absolute."""

    name: str  #: of the environment, such as ``mpich-5.0.2``
    family: str  #: ``mpich``, ``openmpi`` or ``intel-mpi``
    version: str
    prefix: str
    mpicc: str
    mpiexec: str


def prefix_for_spack(mpi: Mpi, facade: Path) -> Path:
    """The prefix to give to Spack; ``facade`` is made, or brought up to date, if one is needed.

    Raises OSError if it cannot be made.
    """
    if mpi.family == "intel-mpi":
        make_intel_facade(Path(mpi.prefix), mpi.version, facade)
        return facade
    if is_its_own(Path(mpi.prefix), Path(mpi.mpicc)):
        return Path(mpi.prefix)
    make_bin_facade(Path(mpi.mpicc), Path(mpi.mpiexec), facade)
    return facade


def is_its_own(prefix: Path, mpicc: Path) -> bool:
    """Whether ``prefix`` belongs to this MPI alone and has its compiler wrapper where Spack looks."""
    return prefix not in SHARED_PREFIXES and mpicc == prefix / "bin" / "mpicc"


def make_intel_facade(prefix: Path, version: str, facade: Path) -> None:
    """``facade/mpi/VERSION/...`` with links to the folders of ``prefix``."""
    component = facade / "mpi" / component_version(version)
    clear_others(facade / "mpi", {component.name})
    present = {name for name in INTEL_FOLDERS if (prefix / name).is_dir()}
    clear_others(component, present)
    for name in sorted(present):
        files.link(component / name, prefix / name)


def component_version(version: str) -> str:
    """The folder that oneAPI has for a version: two numbers from 2021.11 on, before that all."""
    year, _, rest = version.partition(".")
    release = re.match(r"\d+", rest)
    numbers = (int(year) if year.isdecimal() else 0, int(release.group()) if release else 0)
    return ".".join(version.split(".")[:2]) if numbers >= (2021, 11) else version


def make_bin_facade(mpicc: Path, mpiexec: Path, facade: Path) -> None:
    """``facade/bin/TOOL`` for the tools that stand beside ``mpicc`` with the same ending.

    They are scripts, not links, because several MPIs find their files by the name they are called.
    """
    ending = mpicc.name.removeprefix("mpicc")
    targets = {tool: mpicc.with_name(tool + ending) for tool in TOOLS}
    targets = {tool: path for tool, path in targets.items() if path.exists()}
    targets |= {"mpicc": mpicc, "mpiexec": mpiexec}
    clear_others(facade / "bin", set(targets))
    for tool, path in targets.items():
        script = f'#!/bin/sh\nexec {shlex.quote(str(path))} "$@"\n'
        files.write_text(facade / "bin" / tool, script, mode=0o755)


def clear_others(folder: Path, names: set[str]) -> None:
    """Remove what an earlier facade had beside ``names``."""
    if folder.is_dir():
        for entry in folder.iterdir():
            if entry.name not in names:
                shutil.rmtree(
                    entry
                ) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
