"""Show the progress of a session: lines that stay, and a line on what goes on now.

On a terminal that line is the last one and is redrawn, with a bar. In a pipe it is printed every half minute.
"""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.progress_bar import ProgressBar
from rich.status import Status
from rich.table import Table
from rich.text import Text

from postprocess.base.errors import UsageError
from postprocess.base.files import read_text, write_text
from postprocess.base.formats import INDENT, duration, wrap_all
from postprocess.base.os_errors import describe_fault, keep_trace
from postprocess.base.sanitize import sanitize_line


def read_setup_seconds() -> dict[str, float]:
    """Return the seconds that the ``plumbline`` script took to make the virtual environment, if it made one.

    They are removed from the environment, so that another Plumbline started from here does not count them too.
    """
    seconds = float(os.environ.pop("PLUMBLINE_SET_UP_SECONDS", "0"))
    return {"set-up": seconds} if seconds else {}


SAYS, DOES = "plumbline: says: ", "plumbline: does: "  #: prefixes of a line for :meth:`Progress.pass_on`


def tell_starter(kind: str, text: str) -> None:
    """Print a line for the process that started this one: ``SAYS`` to keep it, ``DOES`` for what goes on."""
    print(sanitize_line(f"{kind}{text}"), flush=True)


PIPE_SECONDS = 30.0  #: between two lines on what goes on, in a pipe
BAR_WIDTH = 12  #: columns
LEAST_LEFT = 0.1  #: seconds; the time left is never shown as less
OVERDUE = 3.0  #: times the mean of the finished steps; a longer step makes the estimate void
MOST_TOLD = 50  #: notes that are remembered


def format_left(seconds: float) -> str:
    return duration(max(seconds, LEAST_LEFT))


@dataclass
class CurrentStep:
    """The current phase, how far it has come, and what it is doing."""

    phase: str
    begun: float  #: time on the monotonic clock, in seconds
    expected: float | None = None  #: seconds that the phase takes, as estimated before
    done: int = 0
    total: int = 0  #: 0 if the phase has no steps
    doing: str = ""
    since: float = 0.0  #: when ``doing`` began
    waiting: float = 0.0  #: seconds that the current job has waited in the queue so far
    waited: float = 0.0  #: seconds that earlier jobs waited
    spent: float = 0.0  #: seconds until the last step was finished

    def estimate_left(self) -> float | None:
        """Estimate the seconds that are left, from the finished steps or else from ``expected``.

        None if nothing is known, while a job waits, if more time has passed than was expected, or if a step
        takes several times as long as the finished ones. The waiting times of jobs are left out: they do not
        predict those of later jobs.
        """
        if self.waiting:
            return None
        spent = self.measure_spent()
        if self.done and self.total:
            longest = OVERDUE * self.spent / self.done
            overdue = longest and spent - self.spent > longest
            return None if overdue else spent / self.done * (self.total - self.done)
        left = (self.expected or 0.0) - spent
        return left if left > 0 else None

    def measure_spent(self) -> float:
        """Return the seconds that the phase has run, without the time that jobs waited."""
        return time.monotonic() - self.begun - self.waited

    def count(self, done: int, total: int) -> None:
        """Record how many steps are finished."""
        self.end_wait()
        if done != self.done:
            self.spent = self.measure_spent()
        self.done, self.total = done, total

    def begin(self, doing: str) -> None:
        self.end_wait()
        self.doing, self.since = doing, time.monotonic()

    def wait(self, why: str) -> None:
        """Record that what began last is still waiting."""
        self.doing, self.waiting = why, time.monotonic() - (self.since or self.begun)

    def end_wait(self) -> None:
        self.waited, self.waiting = self.waited + self.waiting, 0.0

    @property
    def amount(self) -> str:
        """How far the phase is and how much is left: ``12/63, about 2 min 05 s left``; empty if unknown."""
        left = self.estimate_left()
        parts = [f"{self.done}/{self.total}"] if self.total else []
        parts += [f"about {format_left(left)} left"] if left is not None else []
        return ", ".join(parts)

    @property
    def line(self) -> str:
        spent = f"{self.phase}, {duration(time.monotonic() - self.begun)}"
        return ": ".join(filter(None, [spent, self.amount, self.doing]))

    def __rich__(self) -> Table:
        """Render the step as one line of a terminal."""
        row = Table.grid(padding=(0, 1, 0, 0))
        cells: list[Text | ProgressBar] = []
        for text in filter(None, (self.phase, self.amount)):
            row.add_column(no_wrap=True, min_width=cell_len(text))
            cells.append(Text(text))
        if self.total:
            row.add_column(min_width=BAR_WIDTH, max_width=BAR_WIDTH)
            cells.append(ProgressBar(self.total, self.done, width=BAR_WIDTH))
        if self.doing:
            row.add_column(no_wrap=True, overflow="ellipsis")
            cells.append(Text(self.doing))
        row.add_row(*cells)
        return row


@dataclass
class Progress:
    """Progress of a session on standard output. ``phases`` holds the seconds of each phase."""

    console: Console = field(default_factory=lambda: Console(highlight=False, soft_wrap=True, emoji=False))
    phases: dict[str, float] = field(default_factory=read_setup_seconds)
    #: Printed as notes, and repeated in summary and report.
    notes: list[str] = field(default_factory=list)
    #: Steps of Plumbline that failed after everything was measured. Any of them fails the session.
    faults: list[str] = field(default_factory=list)
    traces: Path | None = None  #: folder for the tracebacks of these faults
    status: Status | None = None
    step: CurrentStep | None = None
    #: Seconds that a phase takes, as estimated before it begins; used once.
    expected: dict[str, float] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    before: float = 0.0  #: seconds of the phases before ``began``

    def __post_init__(self) -> None:
        self.before = sum(self.phases.values())

    def say(self, text: str, indent: str = "", command: str = "") -> None:
        """Print a sentence in lines of 80 columns.

        :param indent: blanks before each line
        :param command: that it ends with, which is never broken
        """
        for line in wrap_all([text], indent, command):
            self.say_whole(line)

    def say_whole(self, text: str) -> None:
        """Print one unbroken line: a command, a path, a row of a table."""
        self.console.print(sanitize_line(text), markup=False)

    def note(self, text: str) -> None:
        """Print a sentence that the reader of the report must see as well."""
        self.notes.append(text)
        self.say(f"note: {text}")

    def note_once(self, text: str, told: Path) -> None:
        """Note something that does not change between sessions, once per work directory.

        :param told: the file of earlier notes; if it cannot be written, the note comes again
        """
        try:
            notes = json.loads(read_text(told))
        except (OSError, ValueError):
            notes = []
        if isinstance(notes, list) and text in notes:
            return
        self.note(text)
        with suppress(OSError):
            last = notes[-MOST_TOLD:] if isinstance(notes, list) else []
            write_text(told, json.dumps([*last, text], indent=1))

    def fault(self, step: str, error: Exception) -> None:
        """Note that a step of Plumbline itself failed. The session fails, and keeps what it has."""
        self.faults.append(step)
        trace = keep_trace(self.traces, error) if self.traces else None
        where = f" (all of it: {trace})" if trace else ""
        self.note(f"{step}: {describe_fault(error)}; what was measured is kept{where}")

    @contextmanager
    def keeping(self, step: str, users: bool = True) -> Iterator[None]:
        """Run a step that no verdict depends on. If it fails, the rest goes on, and the session fails.

        :param users: whether this also holds for errors that the user can mend, such as a full disk
        """
        try:
            yield
        except Exception as error:
            if not users and isinstance(error, (UsageError, OSError)):
                raise
            self.fault(step, error)

    def now(self, text: str) -> None:
        """Show what goes on now: at once on a terminal, with the next line in a pipe."""
        if self.step:
            self.step.begin(sanitize_line(text))

    def pass_on(self, line: str) -> None:
        """Show a line that a process printed by :func:`tell_starter`; ignore its other lines."""
        if line.startswith(SAYS):
            self.say(line.removeprefix(SAYS))
        elif line.startswith(DOES):
            self.now(line.removeprefix(DOES))

    def wait(self, text: str) -> None:
        """Show why what began last is waiting, and stop estimating the end meanwhile."""
        if self.step:
            self.step.wait(sanitize_line(text))
        if not self.console.is_terminal:
            self.say(text, INDENT)

    def count(self, done: int, total: int) -> None:
        """Show how many steps of the phase are finished."""
        if self.step:
            self.step.count(done, total)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase of the session. Phases of the same name add up."""
        begin = time.monotonic()
        self.step = step = CurrentStep(name, begin, self.expected.pop(name, None))
        with self.console.status(step) as status, self._telling_a_pipe(step):
            self.status = status
            try:
                yield
            finally:
                self.status = self.step = None
                spent = time.monotonic() - begin
                self.phases[name] = self.phases.get(name, 0.0) + spent
        if step.total:
            self.say(f"{name}: {step.done} of {step.total} done in {duration(spent)}")

    @contextmanager
    def _telling_a_pipe(self, step: CurrentStep) -> Iterator[None]:
        """Print what goes on from time to time if there is no terminal."""
        if self.console.is_terminal or self.console.quiet:
            yield
            return
        over = threading.Event()

        def tell() -> None:
            while not over.wait(PIPE_SECONDS):
                try:
                    self.say(step.line, INDENT)
                except (OSError, ValueError):  # the reader is gone: the session reports that itself
                    return

        teller = threading.Thread(target=tell, daemon=True)
        teller.start()
        try:
            yield
        finally:
            over.set()
            teller.join()

    def move(self, source: str, target: str, seconds: float) -> None:
        """Move seconds from one phase to another."""
        self.phases[source] = max(0.0, self.phases.get(source, 0.0) - seconds)
        self.phases[target] = self.phases.get(target, 0.0) + seconds

    def split(self) -> str:
        """Return the seconds in total and of each phase, as text; the rest is ``other``."""
        total = self.before + time.monotonic() - self.began
        parts = {**self.phases, "other": max(total - sum(self.phases.values()), 0.0)}
        spans = (f"{name} {duration(seconds)}" for name, seconds in parts.items() if seconds >= 0.05)
        return f"{duration(total)}: {', '.join(spans)}"
