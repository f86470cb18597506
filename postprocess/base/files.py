"""Write files whole or not at all, even if the writer is killed.

All data goes to hidden ``.tmp`` files beside the targets first. A killed writer leaves such files behind, never
half a target. Missing folders are made. Functions raise OSError unless they say otherwise.
"""

import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from postprocess.base.errors import explaining

LARGEST = 1 << 30  #: bytes of a file that may be read whole
#: Kinds of files that are refused, by the test of their mode. A folder is not among them.
NO_FILES = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
PART = 1 << 16  #: bytes per read of a file of unknown size


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading, without waiting for a pipe or a device.

    Raises OSError, also if it is not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            words = [name for is_kind, name in NO_FILES if is_kind(mode)] + ["is not a regular file"]
            raise OSError(errno.EINVAL, " ".join(words), str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path) -> bytes:
    """Read a whole regular file. A pipe, a device or an endless file is refused without waiting.

    Raises OSError, also if it is not a regular file or is larger than ``LARGEST``.
    """
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > LARGEST:
            raise OSError(errno.EFBIG, f"is larger than {LARGEST} bytes", str(path))
        if size:
            return stream.read(size)
        return read_growing(stream)


def read_growing(stream: BinaryIO) -> bytes:
    """Read a file whose size the system does not report, as below ``/proc``, in parts."""
    parts: list[bytes] = []
    while (part := stream.read(PART)) and len(parts) < LARGEST // PART:
        parts.append(part)
    return b"".join(parts)


def read_text(path: Path, errors: str = "strict") -> str:
    """Read a whole regular file of UTF-8 text, as :func:`read_regular` does.

    :param errors: how to handle bytes that are not UTF-8, as in ``bytes.decode``
    :raises ValueError: if it is not UTF-8 and ``errors`` is not given.
    """
    return read_regular(path).decode(errors=errors)


def create_file(path: Path, data: bytes) -> None:
    """Write a new file. Raises FileExistsError, and changes nothing, if it exists."""
    temporary = _beside(path)
    try:
        _write(temporary, data, path)
        _publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def replace_files(files: Mapping[Path, bytes], durable: bool = True) -> None:
    """Write files that belong together, replacing earlier ones.

    No file is renamed before all are written, so a full disk changes none of them.

    :param durable: whether to flush them to disk before renaming; if not, call :func:`sync_files` afterwards
    """
    temporaries = {path: _beside(path) for path in files}
    try:
        for path, data in files.items():
            _write(temporaries[path], data, path, durable)
        for path, temporary in temporaries.items():
            _rename(temporary, path)
    finally:
        for temporary in temporaries.values():
            temporary.unlink(missing_ok=True)


def sync_files(paths: Iterable[Path]) -> None:
    """Flush files to disk that were written with ``durable=False``; flushing all at once is faster."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _beside(path: Path) -> Path:
    """Return the name of a temporary file that no other writer uses."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, "its folder is a file", str(path)) from None
    return path.parent / f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp"


def _write(path: Path, data: bytes, target: Path, durable: bool = True) -> None:
    """Write a temporary file. An OSError names the target, because that is the file people know."""
    try:
        with path.open("xb") as stream:
            stream.write(data)
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
    except OSError as error:
        error.filename = str(target)
        raise


def _rename(temporary: Path, path: Path) -> None:
    """Rename a temporary file. An OSError names the target, because that is the file people know."""
    try:
        os.replace(temporary, path)
    except OSError as error:
        error.filename = str(path)
        raise


def _publish(temporary: Path, path: Path) -> None:
    """Give the file its name unless the name is taken. A link, unlike a rename, replaces nothing."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # no hard links here: the next best is to check, then rename
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "is there already", str(path)) from None
        os.replace(temporary, path)


MARK = b"sha256 of this file with zeros here: "
BLANK = b"0" * 64
PLACEHOLDER = (MARK + BLANK).decode()  #: the file must contain this text; the last occurrence is filled in


def seal_data(data: bytes) -> bytes:
    """Return the data with its checksum in the last placeholder. Raises ValueError if it has none."""
    place = data.rfind(MARK + BLANK)
    if place < 0:
        raise ValueError("the file has no placeholder for a seal")
    digest = hashlib.sha256(data).hexdigest().encode()
    start = place + len(MARK)
    return data[:start] + digest + data[start + len(BLANK) :]


def is_intact(data: bytes) -> bool:
    """Return whether the data has a seal and is unchanged since it was sealed."""
    place = data.rfind(MARK)
    start = place + len(MARK)
    stated = data[start : start + len(BLANK)]
    blank = data[:start] + BLANK + data[start + len(BLANK) :]
    return place >= 0 and hashlib.sha256(blank).hexdigest().encode() == stated


def is_different(path: Path, text: str) -> bool:
    """Return whether ``path`` is anything but a file with exactly this text."""
    try:
        return read_regular(path).decode() != text
    except (OSError, UnicodeDecodeError):
        return True


def write_text(path: Path, text: str, mode: int = 0o644) -> bool:
    """Make ``path`` a file with this text, whole or not at all. Return whether it changed.

    Raises OSError if it cannot be written.
    """
    if not is_different(path, text):
        return False
    temporary = _beside(path)
    try:
        _write(temporary, text.encode(), path)
        temporary.chmod(mode)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return True


def make_symlink(path: Path, target: Path) -> bool:
    """Make ``path`` a symbolic link to ``target``. Return whether it changed.

    Raises OSError if it cannot be made.
    """
    if path.is_symlink() and Path(os.readlink(path)) == target:
        return False
    temporary = _beside(path)
    try:
        temporary.symlink_to(target)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return True


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder, then rename it to ``target`` unless another process was quicker.

    Raises OSError if it cannot be made or renamed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".incoming-", dir=target.parent))
    try:
        yield temporary
        temporary.chmod(0o755)
        try:
            temporary.rename(target)
        except OSError as error:
            if not target.is_dir():
                error.filename = str(target)
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_summary(path: Path, data: dict[str, Any]) -> None:
    """Write a summary as JSON, whole or not at all. A device (``/dev/stdout``) is written to, never replaced.

    :raises UsageError: if the file cannot be written.
    """
    write_output(path, json.dumps(data, indent=1, allow_nan=False) + "\n")


def write_output(path: Path, text: str) -> None:
    """Write text to a path that a user chose, whole or not at all. A device is written to, never replaced.

    :raises UsageError: if the file cannot be written.
    """
    with explaining(f"{path}: cannot be written", "make room or choose another place"):
        if path.is_symlink() or (path.exists() and not path.is_file()):
            path.write_text(text)
        else:
            replace_files({path: text.encode()})
