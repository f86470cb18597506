"""Nights killed at random moments, one after the other: what ended well is kept once, and nothing else.

The last one is killed after a launch, so that each run of this test has a launch to keep.

30 rounds instead of 2: ``PLUMBLINE_THOROUGH=1``.
"""

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from postprocess.results import store
from postprocess.results.query import read_headlines
from tests.support.faults import Declared, plants
from tests.support.mpi import Installation
from tests.support.plumbline_runner import LIMIT, Workshop
from tests.support.thorough import rounds

pytestmark = pytest.mark.long

LAUNCHES = "4"
ENDED = "sessions/*/raw/*.exit"  #: a file of each launch that ended


def words(mpi: Installation, launches: str) -> list[str]:
    """The smallest night there is. Strict: without a reference its exit status is 1."""
    chosen = ["--environment", mpi.name, "--mpis", mpi.family, "--program", "mpicost"]
    chosen += ["--routine", "barrier", "--processes", "2", "--trials", "5"]
    return ["nightly", *chosen, "--launches", launches, "--strict"]


def begin(workshop: Workshop, mpi: Installation, log: Path) -> subprocess.Popen[bytes]:
    """Begin a night in a process group of its own."""
    with log.open("ab") as stream:
        return subprocess.Popen(
            workshop.command(*words(mpi, LAUNCHES)),
            env=workshop.environment(),
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )


def kill(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Kill a night and all of its group after some time; false if it ended before."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def kill_after_launch(workshop: Workshop, process: subprocess.Popen[bytes]) -> None:
    """Kill a night and all of its group once a launch of it has ended."""
    before = len(list(workshop.home.glob(ENDED)))
    deadline = time.monotonic() + LIMIT
    while len(list(workshop.home.glob(ENDED))) <= before:
        assert process.poll() is None and time.monotonic() < deadline, "no launch ended"
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def ended_well(session: Path) -> int:
    """How many launches of a session have exit code 0 and whole records, by their files alone."""
    request = session / "request.json"
    if request.exists() and "UCX_LOG_LEVEL" in request.read_text():
        return 0  # it was to tell of its transports, and is removed when it has
    codes = [path for path in session.glob("raw/*.exit") if path.read_text() == "0\n"]
    records = [path.with_suffix(".jsonl") for path in codes]
    lines = [path.read_text().splitlines() for path in records if path.exists()]
    return sum(bool(line) and json.loads(line[-1])["record"] == "end" for line in lines)


def begun(workshop: Workshop) -> int:
    """How many nights have a folder: a kill before that hits nothing."""
    return len(list(workshop.home.glob("sessions/*")))


def kept(workshop: Workshop) -> dict[Path, bytes]:
    """What is in the store, each session of it whole."""
    paths = store.list_sessions(workshop.home / "store")
    for path in paths:
        store.read_session(path)
    return {path: path.read_bytes() for path in paths}


def keeps(workshop: Workshop, before: dict[Path, bytes]) -> dict[Path, bytes]:
    """Read the store, and check that nothing has changed that was there before."""
    now = kept(workshop)
    assert {path: now[path] for path in before} == before
    return now


@plants("lost", "SIGKILL of the driver and its process group at random moments, night after night",
        "a night", "no-reference", 1, "that ended are stored")  # fmt: skip
def test_nights_killed_at_random_moments_lose_nothing_and_count_nothing_twice(
    mpich: Installation, tmp_path: Path, declared: Declared
) -> None:
    workshop, log = Workshop(tmp_path / "home"), tmp_path / "log"
    assert workshop.run(*words(mpich, "1")).status == 1  # builds
    began = time.monotonic()
    begin(workshop, mpich, log).wait(timeout=LIMIT)
    lasts = time.monotonic() - began
    seed = random.randrange(1 << 32)
    drawn, before, hits, kills = random.Random(seed), kept(workshop), 0, 0
    print(f"seed {seed}, a night lasts {lasts:.1f} s")
    deadline = time.monotonic() + 30 * lasts * rounds(2, 30)
    while hits < rounds(2, 30):
        assert time.monotonic() < deadline, "hardly a kill hits"
        nights = begun(workshop)
        killed = kill(begin(workshop, mpich, log), drawn.uniform(0, lasts))
        kills += killed
        hits += killed and begun(workshop) > nights
        before = keeps(workshop, before)
    kill_after_launch(workshop, begin(workshop, mpich, log))
    before = keeps(workshop, before)
    ended = workshop.measure(*words(mpich, "1")[1:], command="nightly")
    killed_last, _ = sorted(keeps(workshop, before).keys() - before.keys())
    rows = store.read_session(killed_last)
    assert f"launches that ended are stored: {rows.height}" in ended.said
    assert set(rows["verdict"]) == {"no-reference"} and set(rows["mode"]) == {"interrupted"}
    assert set(rows["reason"]) == {"the session was interrupted before it was judged"}
    assert killed_last.stem not in set(read_headlines(workshop.home / "store")["session"])
    assert "interrupted" not in workshop.run(*words(mpich, "1")).said
    keeps(workshop, before)
    declared.check(ended.verdicts().values(), ended.status, [ended.said])
    sessions = sorted((workshop.home / "sessions").iterdir())
    counts = {session.name: ended_well(session) for session in sessions}
    stored = {path.stem: store.read_session(path).height for path in kept(workshop)}
    assert stored == {name: count for name, count in counts.items() if count}
    print(f"{hits} of {kills} random kills hit one of {len(sessions)} nights; launches kept: {counts}")
