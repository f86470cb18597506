"""MPI implementations from the Python package index: three in a minute, without root."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from postprocess.base import files
from site_configs.mpi.family import LAYERS
from site_configs.mpi.probe import Candidate

LOCKS = Path(__file__).parent.parent / "wheels_lock"
FAMILIES = tuple(sorted(lock.stem for lock in LOCKS.glob("*.lock")))
PINNED = re.compile(r"^([\w-]+)==", re.M)  #: package in a line of a lock file
NEVER = "99999"  #: a version that is never released
PLACEHOLDER = "0.0.0"  #: a version that holds the name of a package, and no MPI
OFFERED = re.compile(r"\(from versions: ([^)]+)\)")  #: what pip says of a version that is not there


class WheelError(Exception):
    """One line: which MPI could not be had from the package index, and why."""


def find_lock(name: str) -> Path:
    """Return the lock file of a family of MPIs, or of a library below them."""
    own = LOCKS / f"{name}.lock"
    return LOCKS / "layers" / own.name if name in LAYERS else own


def read_locked_version(family: str) -> str:
    """Read the version that the family's lock file pins."""
    first = files.read_text(find_lock(family)).split()[0]
    return first.partition("==")[2]


def find_wheel_prefix(family: str, root: Path, version: str = "") -> Path:
    """Return where a version of a family, or the pinned one, is or would be installed below ``root``."""
    return root / f"{family}-{version or read_locked_version(family)}"


def list_requirements(family: str, version: str) -> list[str]:
    """List what pip is told to install: the pinned files by their hashes, or another version by its number."""
    lock = find_lock(family)
    if version in ("", read_locked_version(family)):
        return ["--require-hashes", "-r", str(lock)]
    return [f"{name}=={version}" for name in PINNED.findall(files.read_text(lock))]


def install_wheels(family: str, root: Path, folder: Path | None = None, version: str = "") -> Candidate:
    """Install a family's wheels below ``root`` once, and return its compiler wrapper and launcher.

    :raises WheelError: as of :func:`install_prefix`
    """
    prefix = install_prefix(family, root, folder, version)
    return Candidate(prefix / "bin" / "mpicc", prefix / "bin" / "mpiexec", "wheel", prefix=prefix)


def install_prefix(family: str, root: Path, folder: Path | None = None, version: str = "") -> Path:
    """Install the wheels of a family, or of a library below MPIs, below ``root`` once; return their prefix.

    :param folder: of wheels, the only place to take them from; None for the package index
    :param version: another one than the lock file pins
    :raises WheelError: if the index has no wheel for this machine or cannot be reached.
    """
    prefix = find_wheel_prefix(family, root, version)
    if not prefix.exists():
        unfinished = root / f"{prefix.name}.{os.getpid()}.unfinished"
        try:
            pip_install(family, unfinished, folder, version)
            unfinished.rename(prefix)
        except OSError as error:
            if not prefix.exists():
                raise WheelError(f"{family}: {error}") from None
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return prefix


def pip_install(family: str, prefix: Path, folder: Path | None, version: str = "") -> None:
    """Install a family's wheels without dependencies into its own prefix (``--target`` would lose ``lib``).

    Intel's wheel asks for a libfabric that the index does not have and one node does not need.
    """
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
    only = ["--isolated", "--no-index", "--find-links", str(folder)] if folder else []
    pip = [sys.executable, "-I", "-m", "pip", "install", *only]
    command = [*pip, *options, *list_requirements(family, version), "--prefix", str(prefix)]
    prefix.mkdir(parents=True)
    result = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
    if result.returncode != 0:
        said = (result.stderr.strip() or "pip failed").splitlines()
        if nearest := list_nearest_versions(version, said):
            raise WheelError(
                f"{family} {version}: the package index has no such wheel for this machine; "
                f"the nearest are {', '.join(nearest)}"
            )
        errors = [line for line in said if line.startswith("ERROR: ")]
        raise WheelError(f"{family}: {(errors or said)[-1]}")


def list_nearest_versions(version: str, said: Sequence[str]) -> list[str]:
    """List the offered versions next to one that is not, as pip names them; empty if it names none."""
    offered = next((match[1].split(", ") for line in said if (match := OFFERED.search(line))), [])
    known = [each for each in offered if version and each[:1].isdigit()]
    ordered = sorted({*known, version}, key=split_version)
    place = ordered.index(version) if version else 0
    return [each for each in ordered[max(place - 2, 0) : place + 3] if each in known]


def list_offered_versions(family: str, folder: Path | None = None) -> list[str]:
    """List the versions of which there are wheels for this machine, the oldest first, the last build of each.

    pip names them where it is asked for one that does not exist.

    :param folder: of wheels, the only place to look; None for the package index
    :raises WheelError: if there are none, or the index cannot be reached
    """
    package = PINNED.findall(files.read_text(find_lock(family)))[0]
    only = ["--isolated", "--no-index", "--find-links", str(folder)] if folder else []
    options = ["--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--dry-run"]
    command = [sys.executable, "-I", "-m", "pip", "install", *only, *options, f"{package}=={NEVER}"]
    said = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
    match = OFFERED.search(said.stderr)
    offered = [word for word in match[1].split(", ") if word[:1].isdigit()] if match else []
    latest = {each.partition(".post")[0]: each for each in sorted(offered, key=split_version)}
    latest.pop(PLACEHOLDER, None)
    if not latest:
        errors = [line for line in said.stderr.splitlines() if line.startswith("ERROR: ")]
        raise WheelError(f"{family}: no wheel for this machine: {(errors or ['pip failed'])[-1]}")
    return list(latest.values())


def split_version(version: str) -> list[tuple[int, str]]:
    """Split a version so that its numbers sort as numbers."""
    return [(int(digits or 0), rest) for digits, rest in re.findall(r"(\d*)([^\d]*)", version)]
