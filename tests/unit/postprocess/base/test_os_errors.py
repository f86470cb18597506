"""Errors of the operating system: each names its file, and what helps."""

import errno
import fcntl
import os
import resource
import subprocess
import sys

import pytest

from postprocess.base import files, os_errors
from postprocess.base.errors import UsageError
from postprocess.base.os_errors import describe_os_error, is_lack_of_memory, lock_file
from tests.support.faults import Declared, each_of, plants
from tests.support.paths import ROOT

NUMBERS = {
    errno.ENOSPC: plants("lost", "a disk that is full", "a file that is open", "", 2,
        "/plumbline/file: No space left on device; make room there, or choose another work directory with"),
    errno.EDQUOT: plants("lost", "a quota that is used up", "a file that is open", "", 2,
        "/plumbline/file: Disk quota exceeded; make room there, or choose another work directory"),
    errno.EROFS: plants("lost", "a file system that nobody may write", "the work directory", "", 2,
        "/plumbline/file: Read-only file system; choose another work directory with PLUMBLINE_HOME"),
    errno.EMFILE: plants("environment", "too few open files", "`ulimit -n`", "", 2,
        "open files: raise it with ulimit -n"),
}  # fmt: skip


@pytest.mark.parametrize("number", each_of(NUMBERS))
def test_an_error_of_an_open_file_names_it_and_what_helps(tmp_path, number, declared: Declared):
    work = tmp_path / "plumbline"
    work.mkdir()

    class Refusing:
        name = str(work / "file")

        def fileno(self) -> int:
            return 3

    def write(stream: object) -> None:
        raise OSError(number, os.strerror(number))

    with pytest.raises(OSError) as caught:
        write(Refusing())
    declared.check((), 2, [describe_os_error(caught.value, work)])


@plants("lost", "no file locks, with three numbers of errors", "a lock of the work directory", "", 2,
        "lock: this file system has no file locks (flock); choose another work directory with")  # fmt: skip
def test_a_file_system_without_locks_is_told(tmp_path, monkeypatch, declared: Declared):
    for number in (os_errors.NOT_SUPPORTED, errno.ENOTSUP, errno.ENOLCK):

        def refuse(*_: object, number: int = number) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(fcntl, "flock", refuse)
        with (tmp_path / "lock").open("w") as stream, declared.raises(UsageError):
            lock_file(stream, tmp_path / "lock", fcntl.LOCK_EX)


def test_a_program_on_a_file_system_without_execution_is_told(tmp_path, monkeypatch):
    program = tmp_path / "program"
    program.write_text("")
    program.chmod(0o755)
    error = PermissionError(errno.EACCES, "Permission denied", str(program))
    assert "noexec" not in describe_os_error(error, tmp_path / "work")
    here = os.statvfs(tmp_path)
    flagged = type("Found", (), {"f_flag": here.f_flag | os.ST_NOEXEC})
    monkeypatch.setattr(os, "statvfs", lambda _: flagged)
    told = describe_os_error(error, tmp_path / "work")
    assert "its file system lets no program be started (noexec); set TMPDIR" in told


def limited(code: str, limit: int) -> subprocess.CompletedProcess[str]:
    """Run Python with this much memory."""
    return subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_is_reserved_for_a_file_follows_its_size(tmp_path):
    small = tmp_path / "small"
    small.write_text("x" * 1000)
    code = (
        "from pathlib import Path; from postprocess.base.files import read_regular; "
        f"print(len(read_regular(Path({str(small)!r}))), len(read_regular(Path('/proc/self/status'))) > 99)"
    )
    done = limited(code, 500_000_000)
    assert done.stdout == "1000 True\n", done.stderr
    assert files.read_regular(small) == b"x" * 1000


@plants("environment", "too little memory for the libraries", "`ulimit -v`", "", 2,
        "memory: this shell allows a process 400000 kB of memory (ulimit -v); raise it")  # fmt: skip
def test_a_shell_with_too_little_memory_is_told_so(tmp_path, declared: Declared):
    code = f"from postprocess.main import main; sys.exit(main({str(ROOT)!r}, {str(tmp_path)!r}, ['list']))"
    done = limited(code, 400_000 * 1024)
    assert "report" not in done.stderr
    declared.check((), done.returncode, [done.stderr])


def test_which_errors_are_a_lack_of_memory(monkeypatch):
    library = ImportError("failed to map segment", path="/x/libopenblas.so")
    assert is_lack_of_memory(MemoryError()) and not is_lack_of_memory(library)
    monkeypatch.setattr(os_errors, "read_limit", lambda _: 1 << 30)
    assert is_lack_of_memory(library) and not is_lack_of_memory(ValueError("x"))


def test_a_work_directory_that_the_kernel_calls_not_there_has_its_fix(tmp_path):
    work = tmp_path / "none"
    error = FileNotFoundError(errno.ENOENT, "No such file or directory", str(work))
    assert describe_os_error(error, work).endswith("; choose another work directory with PLUMBLINE_HOME")
    below = FileNotFoundError(errno.ENOENT, "No such file or directory", str(work / "file"))
    assert describe_os_error(below, work) == f"{work / 'file'}: No such file or directory"
