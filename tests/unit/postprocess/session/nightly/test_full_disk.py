"""A disk that is full at any write of a session: one line, exit status 2, and nothing that was kept is damaged.

Every moment instead of a few: ``PLUMBLINE_THOROUGH=1``.
"""

import errno
import os
import random
import re
import sys
from pathlib import Path

from postprocess.results import store
from postprocess.results.query import FOLDER
from tests.support.faults import plants
from tests.support.thorough import THOROUGH
from tests.unit.postprocess.session.nightly.test_imported import plumbline_import, ran, write

FEW = 3  #: of about 30 moments


class FullDisk:
    """Counts what a process does that needs room in a folder, and refuses one of it.

    One for all tests: no audit hook can be taken away.
    """

    def __init__(self) -> None:
        self.folder, self.count, self.full_at = "", 0, -1
        sys.addaudithook(self.hear)

    def watch(self, folder: Path, full_at: int) -> None:
        """Refuse the step of this number, from 0, in a folder."""
        self.folder, self.count, self.full_at = str(folder), 0, full_at

    def hear(self, event: str, words: tuple) -> None:
        """Hear of an event of Python's own."""
        if not self.folder:
            return
        if event == "open" and (words[2] or 0) & (os.O_WRONLY | os.O_RDWR):
            self.step(words[0])
        elif event == "os.rename":
            self.step(words[1])
        elif event == "os.mkdir" and not os.path.isdir(words[0]):
            self.step(words[0])

    def step(self, path: object) -> None:
        """Count a step, and refuse it if it is the one."""
        name = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
        if str(name).startswith(self.folder) and not DISPENSABLE.search(str(name)):
            self.count += 1
            if self.count == self.full_at + 1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(name))

    def sync(self, descriptor: int) -> None:
        """What was written may not fit where it is to be."""
        self.step(os.readlink(f"/proc/self/fd/{descriptor}"))


#: A page goes without the index of the store, which is made of it again, and nobody needs the link to a session
DISPENSABLE = re.compile(rf"/{FOLDER}(/|$)|/latest$")
DISK = FullDisk()


@plants("lost", "a file system that is full at any one write, sync, rename or new folder",
        "the end of a session", "", 2, "No space left on device")  # fmt: skip
def test_a_disk_that_is_full_at_any_moment_loses_nothing(tmp_path, capfd, monkeypatch, declared):
    home, said = tmp_path / "home", []
    monkeypatch.setattr(os, "fsync", DISK.sync)

    def bring(name: str, full_at: int) -> int:
        report = write(tmp_path / f"{name}.json", ran(tmp_path / name, name))
        DISK.watch(home, full_at)
        try:
            return plumbline_import(home, report)
        finally:
            DISK.folder = ""

    def kept() -> dict[Path, bytes]:
        store.read_sessions(home / "store")
        return {path: path.read_bytes() for path in store.list_sessions(home / "store")}

    assert bring("first", -1) == bring("second", -1) == 1
    moments = range(DISK.count)
    for moment in moments if THOROUGH else sorted(random.sample(moments, FEW)):
        before = kept()
        capfd.readouterr()
        status, line = bring(f"t{moment}", moment), capfd.readouterr().err
        assert line.startswith("plumbline: ") and line.count("\n") == 1, (moment, line)
        assert status == 2
        said.append(line)
        after = kept()
        assert {path: after[path] for path in before} == before
        new = len(after) - len(before)
        again = bring(f"t{moment}", -1)
        assert (new, again) in ((0, 1), (1, 2)), moment  # what is stored is not imported again
        assert len(kept()) == len(before) + 1
    declared.check((), 2, said)
