"""MPI implementations from the Python package index: three in a minute, without root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from postprocess.base import files
from site_configs.mpi.probe import Candidate

LOCKS = Path(__file__).parent.parent / "wheels_lock"
FAMILIES = tuple(sorted(lock.stem for lock in LOCKS.glob("*.lock")))


class WheelError(Exception):
    """One line: which MPI could not be had from the package index, and why."""


def read_locked_version(family: str) -> str:
    """Read the version that the family's lock file pins."""
    first = files.read_text(LOCKS / f"{family}.lock").split()[0]
    return first.partition("==")[2]


def install_wheels(family: str, root: Path, folder: Path | None = None) -> Candidate:
    """Install a family's wheels below ``root`` once, and return its compiler wrapper and launcher.

    :param folder: of wheels, the only place to take them from; None for the package index
    :raises WheelError: if the index has no wheel for this machine or cannot be reached.
    """
    prefix = root / f"{family}-{read_locked_version(family)}"
    if not prefix.exists():
        unfinished = root / f"{prefix.name}.{os.getpid()}.unfinished"
        try:
            pip_install(family, unfinished, folder)
            unfinished.rename(prefix)
        except OSError as error:
            if not prefix.exists():
                raise WheelError(f"{family}: {error}") from None
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return Candidate(prefix / "bin" / "mpicc", prefix / "bin" / "mpiexec", "wheel", prefix=prefix)


def pip_install(family: str, prefix: Path, folder: Path | None) -> None:
    """Install a family's wheels without dependencies into its own prefix (``--target`` would lose ``lib``).

    Intel's wheel asks for a libfabric that the index does not have and one node does not need.
    """
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
    lock = ["--require-hashes", "-r", str(LOCKS / f"{family}.lock")]
    only = ["--isolated", "--no-index", "--find-links", str(folder)] if folder else []
    pip = [sys.executable, "-I", "-m", "pip", "install", *only]
    command = [*pip, *options, *lock, "--prefix", str(prefix)]
    prefix.mkdir(parents=True)
    result = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
    if result.returncode != 0:
        said = (result.stderr.strip() or "pip failed").splitlines()
        errors = [line for line in said if line.startswith("ERROR: ")]
        raise WheelError(f"{family}: {(errors or said)[-1]}")
