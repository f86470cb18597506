"""How a job ended that did not end by itself: a scheduler's backend writes it down, programs read it."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from postprocess.base.records import read_record

#: In the directory of a job that was given up. The name is that of the first backend that wrote one.
ENDED = "slurm_ended.json"
#: Begins a line of a backend on standard output that tells of a job that waits, for people.
WAITS = "plumbline: waiting: "


class Ending(str, Enum):
    """How a job ended that did not end by itself, where that decides the verdict."""

    NEVER_STARTED = "never-started"
    TIMED_OUT = "timed-out"
    TAKEN_AWAY = "taken-away"  #: its nodes were, while it ran


@dataclass(frozen=True)
class Ended:
    """How a job ended, for programs; and why, for people."""

    how: Ending
    reason: str


def write_ended(directory: Path, ended: Ended) -> None:
    """Keep how a job of this directory ended. Where that cannot be written, its launch counts as crashed."""
    with suppress(OSError):
        (directory / ENDED).write_text(json.dumps(asdict(ended)))


def read_ended(directory: Path) -> Ended | None:
    """Read how the job of a directory ended; None if that is not told."""
    try:
        return read_record(directory / ENDED, Ended)
    except (OSError, ValueError):
        return None
