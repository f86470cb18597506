"""Describe errors of the operating system in one line: the file, the meaning, and the fix.

Uses the standard library only, because the start script needs it before there is a virtual environment.
"""

import errno
import fcntl
import os
import resource
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any

from postprocess.base import files
from postprocess.base.errors import UsageError

FOLDER = "faults"  #: below the work directory


def keep_trace(folder: Path, error: BaseException) -> Path | None:
    """Write the traceback of an error to a new file in ``folder``. Return its path, or None if that fails."""
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%fZ")
    path = folder / f"{stamp}-{os.getpid()}.txt"
    text = "".join(traceback.format_exception(error))
    try:
        files.create_file(path, text.encode(errors="backslashreplace"))
    except OSError:
        return None
    return path


def describe_fault(error: BaseException) -> str:
    """Describe an error by its type and its message."""
    return f"{type(error).__name__}: {error}".rstrip(": ")


NOT_SUPPORTED = 524  #: ENOTSUPP of the kernel; the C library has no text for it
NO_LOCKS = (errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL, NOT_SUPPORTED)
FULL = (errno.ENOSPC, errno.EDQUOT)  #: a disk, or the quota of a user
CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR)  #: a place that cannot be written to
SMALLEST_MEMORY = 800_000 * 1024  #: bytes of address space that the numerical libraries need to start


def describe_os_error(error: OSError, work: Path) -> str:
    """Describe an error in one line: file, meaning, fix.

    :param work: the work directory, which PLUMBLINE_HOME chooses
    """
    place = find_file(error) or (str(work) if error.errno in FULL else "input or output")
    reason = error.strerror or str(error)
    fix = choose_fix(error, place, work)
    return f"{place}: {reason}{f'; {fix}' if fix else ''}"


def choose_fix(error: OSError, place: str, work: Path) -> str:
    """Choose the fix for an error; empty if its text says enough."""
    number = error.errno
    if number == errno.ENOMEM:
        return describe_memory_limit()
    if number == errno.EFBIG and (limit := read_limit(resource.RLIMIT_FSIZE)):
        return f"this shell allows a file {format_kib(limit)} (ulimit -f)"
    if number == errno.EMFILE:
        limit = read_limit(resource.RLIMIT_NOFILE)
        return f"this shell allows a process {limit} open files: raise it with ulimit -n"
    if number == errno.EAGAIN and (limit := read_limit(resource.RLIMIT_NPROC)):
        return f"this shell allows {limit} processes: end some, or raise it with ulimit -u"
    if number == errno.EACCES and is_without_execution(place):
        return "its file system lets no program be started (noexec); " + choose_place(place, work)
    if number in FULL:
        return f"make room there, or {choose_place(place, work)}"
    closed = number in CLOSED or Path(place) == work  # which the kernel's own folders call not there
    return choose_place(place, work) if closed and is_below(place, work) else ""


def choose_place(place: str, work: Path) -> str:
    """Say how to choose another place, depending on what the place is for."""
    if is_below(place, work):
        return "choose another work directory with PLUMBLINE_HOME"
    if is_below(place, Path(tempfile.gettempdir())):
        return "set TMPDIR to a folder of another file system"
    return "name another place"


def is_below(place: str, folder: Path) -> bool:
    return Path(folder).absolute() in (path := Path(place).absolute()).parents or path == folder


def is_without_execution(place: str) -> bool:
    """Return whether a file is executable but its file system is mounted ``noexec``."""
    try:
        refused = os.statvfs(place).f_flag & os.ST_NOEXEC
        return bool(refused and os.path.isfile(place) and os.stat(place).st_mode & 0o111)
    except OSError:
        return False


def find_file(error: OSError) -> str | None:
    """Find the file of an error.

    Python names none for an open file, so look in the frames of the traceback too.
    """
    if error.filename is not None:
        return os.fsdecode(error.filename) if not isinstance(error.filename, int) else None
    frames: list[TracebackType] = []
    trace = error.__traceback__
    while trace:
        frames.append(trace)
        trace = trace.tb_next
    for frame in reversed(frames):
        values = list(frame.tb_frame.f_locals.values())
        if name := next(filter(None, map(read_name, values)), None):
            return name
        if path := next((value for value in values if isinstance(value, Path)), None):
            return str(path)
    return None


def read_name(value: Any) -> str:
    """Read the name of an open file; empty for anything else."""
    name = getattr(value, "name", None) if hasattr(value, "fileno") else None
    return name if isinstance(name, str) else ""


@contextmanager
def lock_errors(
    place: str | Path, fix: str = "choose another work directory with PLUMBLINE_HOME"
) -> Iterator[None]:
    """Explain why a file cannot be locked in the block. A lock that another process holds is passed on.

    :raises UsageError: if the file system has no locks, or locking fails
    """
    try:
        yield
    except BlockingIOError:
        raise
    except OSError as error:
        if error.filename is not None:
            raise
        lockless = error.errno in NO_LOCKS
        reason = "this file system has no file locks (flock)" if lockless else error.strerror
        raise UsageError(f"{place}: {reason}; {fix}, on another file system") from None


def lock_file(stream: Any, place: str | Path, operation: int) -> None:
    """Lock an open file or folder, as ``fcntl.flock`` does.

    :raises UsageError: if its file system has no locks
    :raises BlockingIOError: if another process holds the lock and ``operation`` does not wait
    """
    with lock_errors(place):
        fcntl.flock(stream, operation)


def read_limit(which: int) -> int:
    """Read a limit of this process; 0 if it is unlimited."""
    limit = resource.getrlimit(which)[0]
    return 0 if limit == resource.RLIM_INFINITY else limit


def format_kib(number: int) -> str:
    """Format bytes in kB, as the shell's ``ulimit`` does."""
    return f"{number // 1024} kB"


def describe_memory_limit() -> str:
    """Describe the limit that a process met when it ran out of memory."""
    limit = read_limit(resource.RLIMIT_AS) or read_limit(resource.RLIMIT_DATA)
    if limit:
        fix = "raise it, or use another node"
        return f"this shell allows a process {format_kib(limit)} of memory (ulimit -v); {fix}"
    return "this machine has no memory left; end other programs, or use another node"


def check_memory_limit() -> None:
    """Check that the shell's memory limit lets the numerical libraries start.

    With less memory they end silently or hang. Under any limit they get one thread, which needs the least.

    :raises UsageError: if the limit is too small
    """
    if not (limit := read_limit(resource.RLIMIT_AS)):
        return
    if limit < SMALLEST_MEMORY:
        needed = f"at least {format_kib(SMALLEST_MEMORY)} are needed"
        raise UsageError(f"memory: {describe_memory_limit()}; {needed}")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def is_lack_of_memory(error: BaseException) -> bool:
    """Return whether an error is due to a lack of memory, such as a library that cannot be mapped."""
    if isinstance(error, MemoryError):
        return True
    library = isinstance(error, ImportError) and ".so" in f"{error.path or ''} {error}"
    return bool(library and read_limit(resource.RLIMIT_AS))
