"""Pack files into one archive with reproducible bytes, and unpack archives from untrusted sources.

An archive is read by rebuilding it: each block must equal the one that :func:`pack_folder` writes for that name
and size. So nothing can hide before, between or behind its files.
"""

import io
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from postprocess.base import files
from postprocess.base.errors import UsageError

MOST_FILES = 50_000  #: most files in an archive; the same limit holds for folders
LONGEST = 4096  #: bytes of a name
DEEPEST = 12  #: levels of folders in a name
MAGIC = slice(257, 262)  #: where the first block of a tar archive has its magic
BLOCK = tarfile.BLOCKSIZE
#: The first bytes of compressed files.
COMPRESSED = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PK\x03\x04", "zip"),
)
FIX = "it is not an archive of ./plumbline offer seal"
ANEW = "ask for the archive as it was sealed"


@dataclass(frozen=True)
class PackedFile:
    name: str
    start: int  #: offset of its first byte
    size: int


def pack_folder(folder: Path, names: Sequence[str], path: Path) -> None:
    """Pack files of a folder in this order, without times, owners and permissions.

    :raises UsageError: if a file cannot be read, or the archive cannot be written
    """
    stream = io.BytesIO()
    try:
        for name in names:
            data = files.read_regular(folder / name)
            stream.write(build_header(name, len(data)))
            stream.write(data + bytes(-len(data) % BLOCK))
        stream.write(build_end(stream.tell()))
        files.replace_files({path: stream.getvalue()})
    except OSError as error:
        where = error.filename or path
        raise UsageError(f"{where}: {error.strerror}; choose another place") from None


def build_header(name: str, size: int) -> bytes:
    """Build the header of a file."""
    entry = tarfile.TarInfo(name)
    entry.size = size
    return entry.tobuf(tarfile.GNU_FORMAT)


def build_end(length: int) -> bytes:
    """Build the end of an archive that has ``length`` bytes so far."""
    return bytes(2 * BLOCK + -(length + 2 * BLOCK) % tarfile.RECORDSIZE)


def is_archive(path: Path) -> bool:
    """Return whether a file is a tar archive or a compressed file, judged by its first bytes."""
    try:
        with files.open_regular(path) as stream:
            begin = stream.read(BLOCK)
        packed = any(begin.startswith(prefix) for prefix, _ in COMPRESSED)
        return packed or begin[MAGIC] == tarfile.POSIX_MAGIC[:5]
    except OSError:
        return False


def unpack_archive(path: Path, folder: Path) -> None:
    """Unpack an archive into an empty folder. Only regular files inside the folder are accepted.

    :raises UsageError: if it is not an archive, or holds anything that :func:`pack_folder` does not write
    """
    try:
        data = files.read_regular(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; {FIX}") from None
    for begin, name in COMPRESSED:
        if data.startswith(begin):
            raise UsageError(f"{path}: is compressed by {name}; {ANEW}")
    packed_files = list_files(path, data)
    try:
        for parent in {(folder / file.name).parent for file in packed_files}:
            parent.mkdir(parents=True, exist_ok=True)
        for file in packed_files:
            (folder / file.name).write_bytes(memoryview(data)[file.start : file.start + file.size])
    except OSError as error:
        where = error.filename or folder
        raise UsageError(f"{where}: {error.strerror}; cannot unpack {path}") from None


def list_files(path: Path, data: bytes) -> list[PackedFile]:
    """List the files of an archive after checking every byte of it.

    :raises UsageError: if a byte differs from what :func:`pack_folder` writes
    """
    packed_files: list[PackedFile] = []
    names: set[str] = set()
    folders: set[PurePosixPath] = set()
    for file in _walk(path, data):
        if file.name in names or PurePosixPath(file.name) in folders:
            raise UsageError(f"{path}: {file.name[:200]!r} is there twice; do not open it")
        names.add(file.name)
        folders.update(PurePosixPath(file.name).parents)
        if len(names) > MOST_FILES or len(folders) > MOST_FILES:
            raise UsageError(f"{path}: has more than {MOST_FILES} files or folders; do not open it")
        packed_files.append(file)
    if clash := next((file.name for file in packed_files if PurePosixPath(file.name) in folders), ""):
        raise UsageError(f"{path}: {clash[:200]!r} is a file and a folder; do not open it")
    return packed_files


def is_plain(name: str) -> bool:
    """Return whether a name is a relative path without ``..``, and not too deep."""
    parts = PurePosixPath(name).parts
    odd = name.startswith("/") or ".." in parts or "\\" in name or "\0" in name
    return not odd and 0 < len(parts) <= DEEPEST and "/".join(parts) == name


def _describe_odd(path: Path, name: str) -> str:
    return f"{path}: {name[:200]!r} is not a plain file below it; do not open it"


def _walk(path: Path, data: bytes) -> Iterator[PackedFile]:
    place = 0
    while data[place : place + BLOCK].strip(b"\0"):
        name, size = _read_header(path, data, place)
        if not is_plain(name):
            raise UsageError(_describe_odd(path, name))
        header = build_header(name, size)
        if data[place : place + len(header)] != header:
            raise UsageError(f"{path}: {name[:200]!r} was packed by another program; {ANEW}")
        start = place + len(header)
        place = start + size + -size % BLOCK
        if place > len(data):
            raise UsageError(f"{path}: is cut off within {name[:200]!r}; copy it again")
        if data[start + size : place].strip(b"\0"):
            raise UsageError(f"{path}: has bytes hidden behind {name[:200]!r}; {ANEW}")
        yield PackedFile(name, start, size)
    end = build_end(place)
    if not place and not data.strip(b"\0"):
        raise UsageError(f"{path}: is empty; {FIX}")
    if len(data) < place + len(end):
        raise UsageError(f"{path}: is cut off behind {place} bytes; copy it again")
    if data[place:] != end:
        behind = len(data) - place - len(end)
        raise UsageError(f"{path}: has {behind} bytes behind its end; {ANEW}")


def _read_header(path: Path, data: bytes, place: int) -> tuple[str, int]:
    """Read the name and the size of the file whose header begins at ``place``."""
    entry = _parse_block(path, data, place)
    if entry.type == tarfile.GNUTYPE_LONGNAME:
        start = place + BLOCK
        if not 0 < entry.size <= LONGEST + 1:
            raise UsageError(_describe_odd(path, f"a name of {entry.size} letters"))
        name = data[start : start + entry.size - 1].decode(errors="surrogateescape")
        entry = _parse_block(path, data, start + entry.size + -entry.size % BLOCK)
        entry.name = name
    if entry.type in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE):
        raise UsageError(f"{path}: has headers for other programs; {FIX}")
    if entry.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
        raise UsageError(_describe_odd(path, entry.name))
    if entry.size < 0:
        raise UsageError(f"{path}: {entry.name[:200]!r} has {entry.size} bytes; {FIX}")
    return entry.name, entry.size


def _parse_block(path: Path, data: bytes, place: int) -> tarfile.TarInfo:
    block = data[place : place + BLOCK]
    if place and len(block) < BLOCK:
        raise UsageError(f"{path}: is cut off behind {place} bytes; copy it again")
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError, ArithmeticError) as error:
        if place and len(data) % tarfile.RECORDSIZE:
            raise UsageError(f"{path}: is cut off or damaged at byte {place}; copy it again") from None
        raise UsageError(f"{path}: {error}; {FIX}") from None
