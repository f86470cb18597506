"""Runs ``./plumbline`` as a user would, in a work directory of its own, with faults planted on the way."""

from __future__ import annotations

import glob
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from site_configs.common import work_directory
from site_configs.mpi.inventory import inventory_file
from tests.support.paths import ROOT

COMPILE_ONCE = Path(__file__).with_name("compile_once.sh")
SHARED = ("venv", "mpi")  #: of the real work directory; too large to have twice
LIMIT = 300  #: seconds after which a command counts as hung
#: Commands whose launches flush by default: each trial takes as long as the last-level cache is large.
FLUSHING = ("run", "nightly", "confirm", "calibrate", "compare", "guidelines", "selftest")


def unwrap(text: str) -> list[str]:
    """Return the sentences of a text, each in one line, wherever it was wrapped."""
    return re.sub(r"\n +", " ", text).splitlines()


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    status: int
    output: str
    errors: str
    summary: dict[str, Any] = field(default_factory=dict)

    def expect(self, status: int) -> Ended:
        """This command, which must have ended with this exit status."""
        assert self.status == status, self.output + self.errors
        return self

    @property
    def said(self) -> str:
        """Return what it printed, in one line, so that wrapped sentences are found."""
        return " ".join(self.output.split())

    def verdicts(self) -> dict[str, str]:
        """Verdict of each case by ``environment routine bytes``."""
        return {
            f"{case['environment']} {case['routine']} {case['bytes']}": case["verdict"]
            for case in self.summary["cases"]
        }

    def reasons(self) -> set[str]:
        """The different reasons of all cases."""
        return {case["reason"] for case in self.summary["cases"]}


def unflushed(words: Sequence[str]) -> list[str]:
    """The words of a command, whose launches leave the caches warm unless the words say ``--cache``."""
    told = any(word.partition("=")[0] == "--cache" for word in words)
    warm = () if told or words[0] not in FLUSHING else ("--cache", "warm")
    return [*words, *warm]


def borrow_inventory(home: Path) -> None:
    """Tell a work directory what is known of the MPIs that it borrows: only their place is another."""
    told = inventory_file(work_directory())
    if not told.exists():
        return
    known = json.loads(told.read_text())
    files = known.pop("files")  # with the real paths, by which it is known that nothing has changed
    text = json.dumps(known)
    real = work_directory() / "mpi"
    for place in (real, real.resolve()):
        text = text.replace(f"{place}/", f"{home / 'mpi'}/")
    inventory_file(home).write_text(json.dumps({**json.loads(text), "files": files}))


@dataclass(frozen=True)
class Workshop:
    """A work directory of its own that borrows the large parts of the real one. Built without Spack."""

    home: Path
    path: str = ""  #: goes before the real search path
    spack: bool = False

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        for name in SHARED:
            link = self.home / name
            if not link.exists():
                link.symlink_to(work_directory() / name)
        if not inventory_file(self.home).exists():
            borrow_inventory(self.home)

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Of every command."""
        path = os.pathsep.join(filter(None, [self.path, os.environ["PATH"]]))
        own = {"PLUMBLINE_HOME": str(self.home), "PATH": path}
        if self.spack:
            building = {"PLUMBLINE_NO_SPACK": "0"}
        else:
            building = {"PLUMBLINE_NO_SPACK": "1", "CMAKE_C_COMPILER_LAUNCHER": str(COMPILE_ONCE)}
        return {**os.environ, **own, **building, **(more or {})}

    def command(self, *words: str) -> list[str]:
        """A command as it is started: without a large flush, launches or a wait that nobody asked for."""
        quick = {"--confirm-after": "0", "--launches": "1"} if words[0] in ("nightly", "run") else {}
        if "--seconds-per-layout" in words:
            del quick["--launches"]
        more = [word for flag, value in quick.items() if flag not in words for word in (flag, value)]
        return [sys.executable, str(ROOT / "plumbline"), *unflushed(words), *more]

    def start(self, *words: str, **more: str) -> subprocess.Popen[str]:
        """Start a command and do not wait for it."""
        return subprocess.Popen(
            self.command(*words),
            env=self.environment(more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, **more: str) -> Ended:
        process = self.start(*words, **more)
        try:
            output, errors = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
            raise AssertionError(f"{words} hung; it said:\n{output}\n{errors}") from None
        return Ended(process.returncode, output, errors)

    def wait_for_first_launch(self) -> None:
        """Wait until a launch is over: the output of the next one is there, which no dry run makes."""
        deadline = time.monotonic() + LIMIT
        pattern = str(self.home / "sessions/*/reframe/stage/**/rfm_job.out")
        while time.monotonic() < deadline:
            if len(glob.glob(pattern, recursive=True)) > 1:  # which bears that folders go meanwhile
                return
            time.sleep(0.05)
        raise AssertionError("no launch ended")

    def measure(self, *words: str, command: str = "run", **more: str) -> Ended:
        """Run ``run``, or ``nightly``, with these words, and read the summary it writes."""
        file = self.home / "summary.json"
        file.unlink(missing_ok=True)
        ended = self.run(command, "--json", str(file), *words, **more)
        if not file.exists():
            raise AssertionError(f"no summary; exit status {ended.status}\n{ended.output}\n{ended.errors}")
        return Ended(ended.status, ended.output, ended.errors, json.loads(file.read_text()))
