"""The jars of MPJ Express and of what it needs: pinned by their content, as Debian packs them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from postprocess.base import files
from site_configs.mpi.wheels import LOCKS

PINS = LOCKS / "bindings" / "mpj.sha256"  #: as ``sha256sum`` writes them
#: Debian's packages with the jars, and where they put them
PACKAGES = (
    "libmpj-java",
    "liblog4j1.2-java",
    "libcommons-cli-java",
    "libcommons-codec-java",
    "libcommons-io-java",
)
FOLDERS = (Path("usr/share/mpj/lib"), Path("usr/share/java"))
FETCH_LIMIT = 300.0  #: seconds


class JarError(Exception):
    """One line: which jar could not be had, and why."""


def read_pinned_jars() -> Iterator[tuple[str, str]]:
    """Read name and SHA-256 of each jar."""
    for line in files.read_text(PINS).splitlines():
        pinned, name = line.split()
        yield name, pinned


def list_installed_folders() -> list[Path]:
    """List where jars may be installed: of ``MPJ_HOME``, if that is set, else Debian's."""
    own = os.environ.get("MPJ_HOME")
    debian = [Path("/", folder) for folder in FOLDERS]
    return [Path(own, "lib"), Path(own).parent / "java", debian[1]] if own else debian


def copy_jar(name: str, pinned: str, folders: Sequence[Path], target: Path) -> None:
    """Copy a jar from the first folder that has the pinned one.

    :raises JarError: if none has it
    """
    found = [folder / name for folder in folders if (folder / name).exists()]
    for jar in found:
        content = files.read_regular(jar)
        if hashlib.sha256(content).hexdigest() == pinned:
            (target / name).write_bytes(content)
            return
    if found:
        raise JarError(f"{found[0]}: is not the file that {PINS.name} pins")
    raise JarError(f"{folders[0] / name} is missing; Debian has it in {PACKAGES[0]}")


def copy_jars(folders: Sequence[Path], target: Path) -> dict[str, str]:
    """Copy every pinned jar into a folder. Returns the reason of each that is in none of the folders."""
    target.mkdir(parents=True, exist_ok=True)
    lacking = {}
    for name, pinned in read_pinned_jars():
        try:
            copy_jar(name, pinned, folders, target)
        except JarError as error:
            lacking[name] = str(error)
    return lacking


def can_fetch() -> bool:
    """Return whether Debian's packages can be fetched and unpacked here, which needs no root."""
    return all(shutil.which(name) for name in ("apt-get", "dpkg-deb"))


def gather_jars(target: Path) -> dict[str, str]:
    """Put every pinned jar into a folder: those that are there or installed, else from Debian's packages.

    :returns: the reason of each that could not be had
    """
    folders = [*list_installed_folders(), target]
    lacking = copy_jars(folders, target)
    if not lacking or not can_fetch():
        return lacking
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
        try:
            return copy_jars([*folders, *fetch_packages(Path(scratch))], target)
        except JarError as error:
            return dict.fromkeys(lacking, str(error))


def fetch_packages(folder: Path) -> list[Path]:
    """Fetch Debian's packages and unpack them below a folder; the folders of their jars.

    :raises JarError: if apt-get or dpkg-deb fails
    """
    _run(["apt-get", "download", *PACKAGES], folder)
    for package in sorted(folder.glob("*.deb")):
        _run(["dpkg-deb", "-x", str(package), str(folder)], folder)
    return [folder / each for each in FOLDERS]


def _run(command: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=FETCH_LIMIT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JarError(f"{command[0]}: {error}") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()
        errors = [line for line in said if line.startswith("E: ")]
        raise JarError(f"{command[0]}: {(errors or said)[-1]}")
