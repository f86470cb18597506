"""What a person sees while a session runs: one line per step, and on a terminal what goes on now."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.status import Status
from rich.text import Text

from postprocess.base.errors import UsageError
from postprocess.base.faults import describe_fault, keep_trace
from postprocess.base.formats import duration
from postprocess.base.sanitize import sanitize_line


def read_setup_seconds() -> dict[str, float]:
    """Read the seconds that the script ``plumbline`` took to make the virtual environment, if it made one.

    It is told once: no other Plumbline that is started from here (by a test) made it.
    """
    seconds = float(os.environ.pop("PLUMBLINE_SET_UP_SECONDS", "0"))
    return {"set-up": seconds} if seconds else {}


@dataclass
class Progress:
    """Progress of a session on standard output. ``phases`` holds the seconds of each phase."""

    console: Console = field(
        default_factory=lambda: Console(highlight=False, soft_wrap=True, emoji=False)
    )
    phases: dict[str, float] = field(default_factory=read_setup_seconds)
    #: Said plainly, and repeated in summary and report.
    notes: list[str] = field(default_factory=list)
    #: Steps of ours that failed after everything was measured, each of which fails the session.
    faults: list[str] = field(default_factory=list)
    traces: Path | None = None  #: the folder that gets the traces of these faults
    status: Status | None = None

    def say(self, text: str) -> None:
        """Print one line."""
        self.console.print(sanitize_line(text), markup=False)

    def note(self, text: str) -> None:
        """Print one line that the reader of the report must see too."""
        self.notes.append(text)
        self.say(f"note: {text}")

    def fault(self, step: str, error: Exception) -> None:
        """Note that a step of ours failed by a fault of its own; the session fails, and keeps what it has."""
        self.faults.append(step)
        trace = keep_trace(self.traces, error) if self.traces else None
        where = f" (all of it: {trace})" if trace else ""
        self.note(f"{step}: {describe_fault(error)}; what was measured is kept{where}")

    @contextmanager
    def keeping(self, step: str, users: bool = True) -> Iterator[None]:
        """Do a step on which no verdict rests: whatever goes wrong, the rest goes on, and the session fails.

        :param users: whether this holds for what is the user's to mend, as a full disk, too
        """
        try:
            yield
        except Exception as error:
            if not users and isinstance(error, (UsageError, OSError)):
                raise
            self.fault(step, error)

    def now(self, text: str) -> None:
        """Show what goes on now, on a terminal only."""
        if self.status:
            self.status.update(Text(sanitize_line(text)))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a part of the session; parts of one name add up."""
        begin = time.monotonic()
        with self.console.status(name) as status:
            self.status = status
            try:
                yield
            finally:
                self.status = None
                spent = time.monotonic() - begin
                self.phases[name] = self.phases.get(name, 0.0) + spent

    def move(self, source: str, target: str, seconds: float) -> None:
        """Count time that was spent in one phase towards another."""
        self.phases[source] = max(0.0, self.phases.get(source, 0.0) - seconds)
        self.phases[target] = self.phases.get(target, 0.0) + seconds

    def split(self) -> str:
        """Return the seconds of each phase, as text."""
        return ", ".join(f"{name} {duration(seconds)}" for name, seconds in self.phases.items())
