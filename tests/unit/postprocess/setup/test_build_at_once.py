"""Builds of several MPIs beside each other, by commands that stand for Spack's."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from postprocess.base.processes import find_processes
from postprocess.base.workdir import WorkDirectory
from postprocess.setup import build_programs as building
from postprocess.setup.build_programs import BuildOutcome, build_at_once
from site_configs.schema.variables import SESSION
from spack_envs.installation import FAILURE
from spack_envs.provide import Spack
from tests.support.paths import ROOT

MPIS = ("mpich-1", "mpich-2")
SPACK = Spack(Path("/bin/spack"), Path("/packages"), "1.1.0", "PATH")

#: Ends well once all builds have begun.
MEET = """
import json, pathlib, sys, time
result = pathlib.Path(sys.argv[-1])
name = result.parent.stem
names = "program prefix spec place key".split()
result.write_text(json.dumps(dict.fromkeys(names, name)))
limit = time.monotonic() + 60
while len(list(result.parent.parent.glob("*/*.json"))) < 2 and time.monotonic() < limit:
    time.sleep(0.01)
print("all have begun:", len(list(result.parent.parent.glob("*/*.json"))))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(building.os, "cpu_count", lambda: 2)
    return tmp_path / "builds"


def build_by(program: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[BuildOutcome]:
    """Build for two MPIs by a program in Python, which gets the words of the real one."""
    monkeypatch.setattr(building, "start_module", lambda *_: [sys.executable, "-c", program])
    return build_at_once(WorkDirectory(folder.parent, ROOT), SPACK, MPIS, "osu", folder)


def test_builds_run_beside_each_other(folder, monkeypatch):
    outcomes = build_by(MEET, folder, monkeypatch)
    assert [each.done and each.done.place for each in outcomes] == list(MPIS)
    for name in MPIS:
        assert (folder / f"{name}.osu" / building.LOG).read_text() == "all have begun: 2\n"


@pytest.mark.parametrize("without_source", [False, True])
def test_build_that_fails_says_why(folder, monkeypatch, without_source):
    """The reason is the last line, and the kind of failure is beside it."""
    kind = f"import pathlib; p = pathlib.Path(sys.argv[-1]).parent / {FAILURE!r}; "
    kind += f"""p.write_text('{{"without_source": {str(without_source).lower()}}}'); """
    program = f"import sys; {kind}print('and so on'); sys.exit('no such compiler')"
    outcomes = build_by(program, folder, monkeypatch)
    assert [each.environment for each in outcomes] == list(MPIS)
    for each in outcomes:
        told = (each.done, each.problem, each.without_source)
        assert told == (None, "no such compiler", without_source)


def test_interrupt_leaves_no_build_behind(folder, monkeypatch, request):
    def interrupt() -> None:
        while len(find_processes(SESSION, str(folder))) < len(MPIS):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGUSR1)

    # Not SIGINT itself: the processes that tests run in ignore it.
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGUSR1, before))
    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        build_by("import time; time.sleep(600)", folder, monkeypatch)
    assert not find_processes(SESSION, str(folder))
