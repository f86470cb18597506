"""Fetch one release of a git repository: whole or not at all, and without waiting on a dead network.

A fetch that failed is remembered for a day: without a network no session waits for one again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from postprocess.base.files import read_text, write_text
from postprocess.base.processes import run_captured

ANSWER_SECONDS = 10.0  #: an upstream that has not answered by then is not reachable
FETCH_SECONDS = 1800.0
LEFTOVER_SECONDS = 86400.0

#: Never ask for a password, and give up a transfer that has stalled for 20 s.
QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ConnectTimeout=5",
    "GIT_HTTP_LOW_SPEED_LIMIT": "1000",
    "GIT_HTTP_LOW_SPEED_TIME": "20",
}
REMEMBERED = 86400.0  #: seconds


class FetchError(Exception):
    """A release cannot be had. The text is one line."""


def fetch_release(address: str, tag: str, target: Path, timeout: float = ANSWER_SECONDS) -> None:
    """Put the files of ``tag`` into ``target``, unless another process has done so meanwhile.

    :param patience: seconds that upstream has to give its first answer
    :raises FetchError: if git is missing, upstream silent or without the tag, or the disk full.
    """
    refs = [f"refs/tags/{tag}", f"refs/heads/{tag}"]
    if not run_git(["ls-remote", "--", address, *refs], address, timeout).strip():
        raise FetchError(f"{address}: has no release {tag}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(target.parent)
        temporary = Path(tempfile.mkdtemp(prefix=".incoming-", dir=target.parent))
    except OSError as error:
        raise FetchError(f"{error.filename}: {error.strerror}") from None
    try:
        options = ["--quiet", "--depth=1", f"--branch={tag}"]
        run_git(["clone", *options, "--", address, str(temporary)], address, FETCH_SECONDS)
        temporary.chmod(0o755)
        move_into_place(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def run_git(arguments: list[str], address: str, seconds: float) -> str:
    """Run a git command, and return its standard output.

    :raises FetchError: if git is missing, fails or takes longer than ``seconds``. Its helpers are stopped too.
    """
    if shutil.which("git") is None:
        raise FetchError(f"{address}: git is not on PATH")
    command = ["git", "-c", "advice.detachedHead=false", *arguments]
    try:
        done = run_captured(command, {**QUIET, **os.environ}, seconds)
    except subprocess.TimeoutExpired:
        raise FetchError(f"{address}: no answer in {seconds:g} s") from None
    if done.returncode != 0:
        raise FetchError(f"{address}: {extract_git_error(done.stderr)}")
    return done.stdout


def extract_git_error(errors: str) -> str:
    """Extract what git says is wrong, without the address, which it repeats."""
    lines = [line for line in errors.splitlines() if line.startswith(("fatal:", "error:"))]
    text = lines[0].partition(": ")[2] if lines else "git failed"
    return re.sub(r"^unable to access '[^']*': ", "", text)


def move_into_place(temporary: Path, target: Path) -> None:
    """Give the copy its name; another process that was quicker has made an equal one."""
    try:
        temporary.rename(target)
    except OSError as error:
        if not target.is_dir():
            raise FetchError(f"{target}: {error.strerror}") from None


def remove_leftovers(folder: Path) -> None:
    """Remove what processes that were killed more than a day ago have left."""
    for path in folder.glob(".incoming-*"):
        if time.time() - path.stat().st_mtime > LEFTOVER_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True)
class RefusedFetches:
    """What could not be fetched, in a file: when, and why. A file that cannot be read or written is as none."""

    path: Path
    again: bool = False  #: whether what failed is tried all the same

    def fetch(self, what: str, attempt: Callable[[], None]) -> None:
        """Fetch something, unless that failed within a day.

        :raises FetchError: with the reason, of then or now
        """
        known = {} if self.again else self._read()
        when, reason = known.get(what, (0.0, ""))
        if 0.0 <= time.time() - when < REMEMBERED:
            raise FetchError(reason)
        try:
            attempt()
        except FetchError as error:
            known = self._read() | {what: (time.time(), str(error))}
            with suppress(OSError):
                write_text(self.path, json.dumps(known, indent=1))
            raise

    def _read(self) -> dict[str, tuple[float, str]]:
        """Read what is remembered; nothing from a file of another form."""
        try:
            told = json.loads(read_text(self.path))
            return {str(key): (float(when), str(why)) for key, (when, why) in told.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}
