"""Verify a mirror's files against its manifest: none may be damaged, missing or foreign.

Standard library only: the script ``plumbline`` verifies before any package is installed.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.files import open_regular
from spack_envs.mirror.manifest_schema import NAME, Manifest, MirrorFile, decode_manifest

INCOMING = ".incoming-"  #: what is not complete yet has a name that begins so
MOST_BYTES = 16_000_000  #: of a manifest
BLOCK = 1 << 20


class MirrorError(UsageError):
    """A mirror that must not be used. One line: which file of it, what is wrong, and the fix."""


def describe_python() -> tuple[str, str]:
    """Describe version and platform of this Python, by which wheels are chosen: ``3.11``, ``linux-x86_64``."""
    name = f"{sys.implementation.name} " if sys.implementation.name != "cpython" else ""
    return name + ".".join(platform.python_version_tuple()[:2]), sysconfig.get_platform()


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a mirror.

    :raises MirrorError: if there is none that can be used.
    """
    path = folder / NAME
    again = f"./plumbline mirror create {folder} where there is a network makes it anew"
    if folder.exists() and not folder.is_dir():
        raise MirrorError(f"{folder}: is not a directory; name the directory of a mirror")
    try:
        with open_regular(path) as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ValueError("is too large")
        return decode_manifest(data)
    except FileNotFoundError:
        raise MirrorError(f"{folder}: is no mirror (it has no {NAME}); {again}") from None
    except OSError as error:
        raise MirrorError(f"{path}: {error.strerror}; {again}") from None
    except ValueError as error:
        raise MirrorError(f"{path}: {error}; {again}") from None


def describe_file(folder: Path, path: str) -> MirrorFile:
    """Describe a file by its size in bytes and its checksum. Raises OSError if it cannot be read."""
    digest, size = hashlib.sha256(), 0
    with open_regular(folder / path) as file:
        while block := file.read(BLOCK):
            digest.update(block)
            size += len(block)
    return MirrorFile(path, size, digest.hexdigest())


def find_mirror_faults(folder: Path, manifest: Manifest, under: str = "") -> Iterator[str]:
    """Find the faults of the files of a mirror, one line each.

    :param under: look only at the files below this folder of the mirror
    """
    wanted = [file for file in manifest.files if file.path.startswith(under)]
    for file in wanted:
        if problem := find_file_fault(folder, file):
            yield f"{folder / file.path}: {problem}; ./plumbline mirror create mends it, or copy it again"
    known = {file.path for file in wanted}
    for path in list_present(folder, under):
        if path not in known and path != NAME:
            yield f"{folder / path}: is not in {NAME}; remove it"


def find_file_fault(folder: Path, file: MirrorFile) -> str:
    """Find the fault of one file; empty if there is none."""
    try:
        status = (folder / file.path).lstat()
        if not stat.S_ISREG(status.st_mode):
            return "is not a plain file"
        if status.st_size != file.bytes:
            return f"is damaged: has {status.st_size} bytes, not {file.bytes}"
        if describe_file(folder, file.path).sha256 != file.sha256:
            return f"is damaged: is not what {NAME} says (sha256)"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return ""


def list_present(folder: Path, under: str = "") -> Iterator[str]:
    """List the paths of all files and links in a mirror, sorted."""
    for top, folders, files in os.walk(folder / under):
        folders.sort()
        links = [name for name in folders if Path(top, name).is_symlink()]
        for name in sorted([*files, *links]):
            yield Path(top, name).relative_to(folder).as_posix()


def verify_files(folder: Path, manifest: Manifest, under: str = "") -> None:
    """Make sure that a mirror is whole.

    :raises MirrorError: naming the first file that is damaged, missing or foreign, and how many more are.
    """
    found = list(find_mirror_faults(folder, manifest, under))
    if found:
        more = f" (and {len(found) - 1} more; ./plumbline mirror check)" if found[1:] else ""
        raise MirrorError(found[0] + more)


def check_python(folder: Path, manifest: Manifest) -> None:
    """Make sure that the wheels of a mirror are for this Python.

    :raises MirrorError: telling for which they are.
    """
    made_for, here = (manifest.python, manifest.platform), describe_python()
    if made_for != here:
        raise MirrorError(
            f"{folder}: its wheels are for Python {' on '.join(made_for)}, and this is {' on '.join(here)}; "
            "start Plumbline with that Python, or make the mirror with this one"
        )
