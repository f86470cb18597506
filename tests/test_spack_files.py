"""Files that are touched only if they change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spack_envs import files


def identity(path: Path) -> tuple[int, int]:
    """What changes if a file is written or replaced."""
    status = path.lstat()
    return status.st_ino, status.st_mtime_ns


def test_writes_and_says_so(tmp_path):
    path = tmp_path / "a" / "b.txt"
    assert files.write_text(path, "one\n")
    assert path.read_text() == "one\n"
    assert files.write_text(path, "two\n")
    assert path.read_text() == "two\n"


def test_same_text_is_not_written_again(tmp_path):
    path = tmp_path / "b.txt"
    files.write_text(path, "one\n")
    before = identity(path)
    assert not files.write_text(path, "one\n")
    assert identity(path) == before


def test_mode_is_set(tmp_path):
    files.write_text(tmp_path / "run", "#!/bin/sh\n", mode=0o755)
    assert os.access(tmp_path / "run", os.X_OK)


def test_file_that_is_not_text_is_replaced(tmp_path):
    path = tmp_path / "b.txt"
    path.write_bytes(b"\xff\xfe")
    assert files.write_text(path, "one\n")
    assert path.read_text() == "one\n"


def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "b.txt"
    files.write_text(path, "one\n")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        files.write_text(path, "two\n")
    assert path.read_text() == "one\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["b.txt"]


def test_link_is_made_kept_and_moved(tmp_path):
    path = tmp_path / "links" / "lib"
    assert files.link(path, tmp_path / "one")
    before = identity(path)
    assert not files.link(path, tmp_path / "one")
    assert identity(path) == before
    assert files.link(path, tmp_path / "two")
    assert os.readlink(path) == str(tmp_path / "two")
