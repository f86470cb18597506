"""Comparisons that are killed between two of their passes."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from postprocess.features.compare import data
from postprocess.features.compare.data import ComparisonPass
from tests.support.plumbline_runner import LIMIT, Workshop

PATIENCE = 1.8 * LIMIT  #: seconds; below the limit of a test, which then ends what it has started


def list_block(folder: Path, block: int) -> list[ComparisonPass]:
    """List the passes of a block that are written down."""
    path = folder / data.FILE
    stored = data.read_comparison(path).passes if path.exists() else ()
    return [each for each in stored if each.block == block]


def kill_when(process: subprocess.Popen[str], is_there: Callable[[], bool]) -> str:
    """Kill a command and all of its process group once something is there; return what it said."""
    end = time.monotonic() + PATIENCE
    try:
        while not is_there():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end, "what it was to write is not there"
            time.sleep(0.1)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0]


def start_comparison(workshop: Workshop, folder: Path, *words: str) -> subprocess.Popen[str]:
    """Start a comparison in a process group of its own."""
    return subprocess.Popen(
        workshop.command("compare", *words, "--output", str(folder)),
        env=workshop.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def kill_after_first_pass(workshop: Workshop, folder: Path, block: int, *words: str) -> bytes:
    """Begin a comparison, kill it after the first pass of a block, and return its whole lines."""
    begun = start_comparison(workshop, folder, *words)
    kill_when(begun, lambda: bool(list_block(folder, block)))
    assert len(list_block(folder, block)) == 1, "it was killed too late"
    written = (folder / data.FILE).read_bytes()
    return written[: written.rfind(b"\n") + 1]
