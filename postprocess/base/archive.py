"""One file out of a folder, the same bytes whoever packs the same files; and back, without trust."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from postprocess.base import files
from postprocess.base.errors import UsageError

LARGEST = 4 << 30  #: bytes of all files of an archive together
MOST_FILES = 1_000_000
DEEPEST = 50  #: folders of a name
MAGIC = slice(257, 262)  #: where the first block of an archive says what it is


def pack_folder(folder: Path, names: Sequence[str], path: Path) -> None:
    """Pack files of a folder, in this order, without times, owners and rights.

    :raises UsageError: if a file cannot be read, or the archive cannot be written
    """
    stream = io.BytesIO()
    try:
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for name in names:
                data = files.read_regular(folder / name)
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        files.replace_files({path: stream.getvalue()})
    except OSError as error:
        where = error.filename or path
        raise UsageError(f"{where}: {error.strerror}; choose another place") from None


def is_archive(path: Path) -> bool:
    """Return whether a file begins as an archive does, whatever its name."""
    try:
        with files.open_regular(path) as stream:
            return stream.read(tarfile.BLOCKSIZE)[MAGIC] == tarfile.POSIX_MAGIC[:5]
    except OSError:
        return False


def unpack_archive(path: Path, folder: Path) -> None:
    """Unpack an archive into an empty folder: regular files below it, and nothing else.

    :raises UsageError: if it is none, or holds what no archive of ours does
    """
    fix = "it is no archive of ./plumbline offer seal"
    try:
        stream = io.BytesIO(files.read_regular(path))
        with tarfile.open(fileobj=stream, mode="r:") as archive:
            _unpack_members(archive, path, folder)
    except (tarfile.TarError, EOFError, ValueError, ArithmeticError, RecursionError) as error:
        raise UsageError(f"{path}: {error}; {fix}") from None  # tarfile trusts numbers and lengths
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; {fix}") from None


def _unpack_members(archive: tarfile.TarFile, path: Path, folder: Path) -> None:
    total = 0
    for number, member in enumerate(archive):
        name = PurePosixPath(member.name)
        total += member.size
        plain = member.isreg() and not member.issparse()  # a hole may be larger than any memory
        plain = plain and 0 < len(name.parts) <= DEEPEST
        if name.is_absolute() or ".." in name.parts or not plain or "\\" in member.name:
            raise UsageError(f"{path}: {member.name!r} is no plain file below it; do not open it")
        if number >= MOST_FILES or total > LARGEST:
            raise UsageError(f"{path}: is larger than {LARGEST} bytes; do not open it")
        stream = archive.extractfile(member)
        assert stream
        target = folder / name
        if target.exists():
            raise UsageError(f"{path}: {member.name!r} is there twice; do not open it")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(stream.read())
