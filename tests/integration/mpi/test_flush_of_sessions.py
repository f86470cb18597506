"""What sessions of tests flush, on a real MPI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.mpi import of_family
from tests.support.plumbline_runner import Workshop

pytestmark = pytest.mark.long

ONE_CASE = ("--program", "mpicost", "--routine", "barrier", "--processes", "2", "--trials", "2")


def launches(workshop: Workshop) -> list[dict[str, Any]]:
    """The run record of each launch of all sessions that judge; others read transports."""
    judging = [path.parent for path in workshop.home.glob("sessions/*/summary.json")]
    files = [file for session in judging for file in session.glob("raw/*.jsonl")]
    return [json.loads(file.read_text().splitlines()[0]) for file in files]


def test_what_sessions_flush(tmp_path: Path) -> None:
    """Nothing; and with ``--cache flush`` as much as the caches hold, which few trials show."""
    workshop, name = Workshop(tmp_path / "home"), of_family("mpich").name
    for words, cache in (((), "warm"), (("--cache", "flush"), "flush")):
        ended = workshop.measure("--environment", name, *ONE_CASE, "--strict", *words)
        (case,) = ended.summary["cases"]
        assert (case["verdict"], case["variant"].partition("-")[0]) == ("no-reference", cache)
    warm, flushed = sorted(launches(workshop), key=lambda run: run["flush_bytes"])
    assert (warm["cache"], warm["flush_bytes"]) == ("warm", 0)
    assert flushed["cache"] == "flush"
    assert flushed["flush_bytes"] >= max(cache["bytes"] for cache in flushed["caches"])
