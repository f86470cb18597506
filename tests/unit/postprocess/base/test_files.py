"""A file is there whole, or it is not there."""

import errno
import os
import stat
from pathlib import Path

import pytest

from postprocess.base import files


def names(folder) -> list[str]:
    return sorted(os.listdir(folder))


def test_a_new_file_in_a_new_folder(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    files.create_file(path, b"data")
    assert path.read_bytes() == b"data"
    assert names(path.parent) == ["file"]


def without_links(*_):
    raise PermissionError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("links", [True, False])
def test_create_never_replaces(tmp_path, monkeypatch, links):
    """On a file system without hard links too."""
    if not links:
        monkeypatch.setattr(os, "link", without_links)
    path = tmp_path / "file"
    files.create_file(path, b"first")
    with pytest.raises(FileExistsError):
        files.create_file(path, b"second")
    assert path.read_bytes() == b"first"
    assert names(tmp_path) == ["file"]


def test_replace_changes_none_unless_all_are_on_disk(tmp_path, monkeypatch):
    one, two = tmp_path / "one", tmp_path / "two"
    files.replace_files({one: b"1", two: b"2"})
    flush, calls = os.fsync, []

    def full_on_the_second(descriptor):
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", full_on_the_second)
    with pytest.raises(OSError, match="No space left"):
        files.replace_files({one: b"11", two: b"22"})
    assert (one.read_bytes(), two.read_bytes()) == (b"1", b"2")
    assert names(tmp_path) == ["one", "two"]


WAYS = [files.create_file, lambda path, data: files.replace_files({path: data})]


@pytest.mark.parametrize("write", WAYS)
def test_data_is_on_disk_before_it_has_its_name(tmp_path, monkeypatch, write):
    path = tmp_path / "file"
    seen = []

    def look(descriptor):
        seen.append((os.fstat(descriptor).st_size, path.exists()))

    monkeypatch.setattr(os, "fsync", look)
    write(path, b"data")
    assert seen == [(4, False)]


@pytest.mark.parametrize("write", WAYS)
def test_a_folder_that_is_a_file_is_an_error(tmp_path, write):
    (tmp_path / "folder").write_text("no folder")
    with pytest.raises(NotADirectoryError, match="its folder is a file"):
        write(tmp_path / "folder" / "file", b"data")


def test_others_may_read_as_the_umask_allows(tmp_path):
    previous = os.umask(0o027)
    try:
        files.create_file(tmp_path / "file", b"data")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def identity(path: Path) -> tuple[int, int]:
    """What changes if a file is written or replaced."""
    status = path.lstat()
    return status.st_ino, status.st_mtime_ns


def test_other_text_is_written_and_the_same_not_again(tmp_path):
    path = tmp_path / "a" / "b.txt"
    for text in ("one\n", "two\n"):
        assert files.write_text(path, text)
        assert path.read_text() == text
    before = identity(path)
    assert not files.write_text(path, "two\n")
    assert identity(path) == before
    path.write_bytes(b"\xff\xfe")  # no text
    assert files.write_text(path, "two\n")
    assert path.read_text() == "two\n"


def test_mode_is_set(tmp_path):
    files.write_text(tmp_path / "run", "#!/bin/sh\n", mode=0o755)
    assert os.access(tmp_path / "run", os.X_OK)


def test_link_is_made_kept_and_moved(tmp_path):
    path = tmp_path / "links" / "lib"
    assert files.make_symlink(path, tmp_path / "one")
    before = identity(path)
    assert not files.make_symlink(path, tmp_path / "one")
    assert identity(path) == before
    assert files.make_symlink(path, tmp_path / "two")
    assert os.readlink(path) == str(tmp_path / "two")
