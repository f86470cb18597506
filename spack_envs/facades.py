"""The prefix of an MPI for Spack: the MPI's own, or a facade, a folder of links that looks like one.

Spack builds with ``PREFIX/bin/mpicc`` and looks for ``PREFIX/include/mpi.h``. Debian's MPIs share the prefix
/usr, where ``mpicc`` is whichever of them is the default: without a facade the wrong one is taken, silently.
Intel's recipe wants the layout of oneAPI, ``PREFIX/mpi/VERSION/bin``, which the wheels do not have.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from postprocess.base import files

TOOLS = ("mpicc", "mpicxx", "mpic++", "mpif77", "mpif90", "mpifort", "mpiexec", "mpirun")
SHARED_PREFIXES = (Path("/"), Path("/usr"), Path("/usr/local"))
INTEL_FOLDERS = ("bin", "lib", "include", "etc", "env", "opt", "share")


class FacadeMpi(Protocol):
    """What must be known of an MPI. Paths are absolute."""

    @property
    def name(self) -> str:
        """Its environment, such as ``mpich-5.0.2``."""

    @property
    def family(self) -> str:
        """``mpich``, ``openmpi`` or ``intel-mpi``."""

    @property
    def version(self) -> str:
        """Its release."""

    @property
    def prefix(self) -> str:
        """Where it is installed."""

    @property
    def mpicc(self) -> str:
        """Its compiler wrapper."""

    @property
    def mpiexec(self) -> str:
        """Its launcher."""

    @property
    def modules(self) -> Sequence[str]:
        """Without which it is not whole."""


def prefix_for_spack(mpi: FacadeMpi, facades: Path) -> Path:
    """Return the prefix to give to Spack. If it is a substitute prefix, make it below ``facades``.

    An MPI at another place has another facade: Spack tells installations apart by the prefix of their MPI.
    Raises OSError if it cannot be made.
    """
    if mpi.family != "intel-mpi" and is_own_prefix(Path(mpi.prefix), Path(mpi.mpicc)):
        return Path(mpi.prefix)
    place = "\0".join((mpi.prefix, mpi.mpicc, mpi.mpiexec))
    facade = facades / f"{mpi.name}-{hashlib.sha256(place.encode()).hexdigest()[:8]}"
    if mpi.family == "intel-mpi":
        make_intel_facade(Path(mpi.prefix), mpi.version, facade)
    else:
        make_bin_facade(Path(mpi.mpicc), Path(mpi.mpiexec), facade)
    return facade


def is_own_prefix(prefix: Path, mpicc: Path) -> bool:
    """Return whether ``prefix`` belongs to this MPI alone and has wrapper and header where Spack looks."""
    whole = mpicc == prefix / "bin" / "mpicc" and (prefix / "include" / "mpi.h").exists()
    return whole and prefix not in SHARED_PREFIXES


def make_intel_facade(prefix: Path, version: str, facade: Path) -> None:
    """Make ``facade/mpi/VERSION/...`` with links to the folders of ``prefix``."""
    component = facade / "mpi" / format_component_version(version)
    for name in INTEL_FOLDERS:
        if (prefix / name).is_dir():
            files.make_symlink(component / name, prefix / name)


def format_component_version(version: str) -> str:
    """Format the folder that oneAPI has for a version: two numbers from 2021.11 on, before that all."""
    year, _, rest = version.partition(".")
    release = re.match(r"\d+", rest)
    numbers = (int(year) if year.isdecimal() else 0, int(release.group()) if release else 0)
    return ".".join(version.split(".")[:2]) if numbers >= (2021, 11) else version


def make_bin_facade(mpicc: Path, mpiexec: Path, facade: Path) -> None:
    """Make ``facade/bin/TOOL`` for the tools beside ``mpicc`` with the same ending, and ``include``.

    They are scripts, not links, because several MPIs find their files by the name they are called.
    """
    ending = mpicc.name.removeprefix("mpicc")
    targets = {tool: mpicc.with_name(tool + ending) for tool in TOOLS}
    targets = {tool: path for tool, path in targets.items() if path.exists()}
    targets |= {"mpicc": mpicc, "mpiexec": mpiexec}
    if include := find_header_folder(mpicc):
        files.make_symlink(facade / "include", include)
    for tool, path in targets.items():
        script = f'#!/bin/sh\nexec {shlex.quote(str(path))} "$@"\n'
        files.write_text(facade / "bin" / tool, script, mode=0o755)


def find_header_folder(mpicc: Path) -> Path | None:
    """Find the folder with ``mpi.h`` among those that a wrapper compiles with."""
    try:
        done = subprocess.run([mpicc, "-show"], capture_output=True, text=True, timeout=60, check=True)
        words = shlex.split(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    folders = [Path(word[2:]) for word in words if word.startswith("-I")]
    return next((folder for folder in folders if (folder / "mpi.h").exists()), None)
