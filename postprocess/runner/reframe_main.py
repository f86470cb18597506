"""ReFrame as ``python -m`` from the root, so that checks and sites can import shared code."""

import ctypes
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from types import FrameType, ModuleType, SimpleNamespace

from site_configs.schema.variables import SESSION

SET_PARENT_DEATH_SIGNAL = 1  #: PR_SET_PDEATHSIG of prctl(2)


def find_callers_quickly() -> None:
    """Make ReFrame find the user of a deprecated variable from stack frames alone.

    It reads the source behind each frame even if no warning follows: 20 ms per test and per line of its log,
    which is half of the time of a dry run.
    """
    from reframe.core import warnings

    def stack() -> Iterator[SimpleNamespace]:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            yield SimpleNamespace(frame=frame)
            frame = frame.f_back

    def find_module(frame: FrameType) -> ModuleType | None:
        return sys.modules.get(frame.f_globals.get("__name__", ""))

    warnings.inspect = SimpleNamespace(stack=stack, getmodule=find_module)


HOME = "${HOME}/"  #: prefix of ReFrame's own defaults


def disable_expansion() -> None:
    """Make ReFrame use paths and values as they are; it would run commands inside them.

    Nothing quotes a path for ReFrame. Only its own defaults in the home directory are expanded.
    """
    from reframe.utility import osext

    def expand_home(text: str) -> str:
        return os.path.expanduser("~/") + text[len(HOME) :] if text.startswith(HOME) else text

    osext.expandvars = expand_home
    setattr(os.path, "expandvars", expand_home)  # noqa: B010 - assigned, its overloads would be asked for


def look_up_only_what_logs_show() -> None:
    """Look up only those facts of a test that the log prints, which is its name.

    ReFrame looks up every parameter and variable of the test per line, even for lines that it does not write: a
    quarter of the time of a dry run.
    """
    from reframe.core import logging

    look_up_all = logging.LoggerAdapter._update_check_extras

    def look_up(self: logging.LoggerAdapter) -> None:
        formats = [getattr(handler.formatter, "_fmt", "check_") for handler in self.logger.handlers]
        if self.check is None or "check_" in "".join(formats).replace("(check_info)", ""):
            look_up_all(self)
        else:
            self.extra["check_info"] = self.check.info()

    logging.LoggerAdapter._update_check_extras = look_up


def end_pauses_at_exits() -> None:
    """End a pause between two of ReFrame's looks at its jobs as soon as a child process ends.

    Its looks become rarer while a job runs: a local launch of 1.3 s was noticed after 1.7 s.
    """
    from reframe.frontend.executors import policies

    exits, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a Python handler nothing is written
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def pause(seconds: float) -> None:
        while select.select([exits], [], [], 0)[0]:
            os.read(exits, 4096)  # what ended during the look itself, such as a scheduler's command
        select.select([exits], [], [], seconds)

    policies.time = SimpleNamespace(time=time.time, sleep=pause)


if __name__ == "__main__":
    # SIGTERM makes ReFrame end its jobs, so that none outlives a killed driver.
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    # It would leave its first log in /tmp whenever it refuses something. Jobs keep their TMPDIR.
    tempfile.tempdir = os.environ[SESSION]
    from reframe.frontend.cli import main  # takes a moment, in which a driver may die

    find_callers_quickly()
    disable_expansion()
    look_up_only_what_logs_show()
    end_pauses_at_exits()
    main()
