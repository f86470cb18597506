"""ReFrame as ``python -m`` from the root, so that checks and sites can import shared code."""

import os
import select
import signal
import tempfile
import time
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

from site_configs.reframe_loading import load_reframe
from site_configs.schema.variables import SESSION


def copy_variables_quickly() -> None:
    """Let ReFrame copy the variables of a test for each derived class in a sixth of the time.

    It copies all 42 of them for each class, which takes a sixth of the time of a dry run. It also copies their
    types, which never change, and uses the generic protocol for objects that do not define their own.
    """
    from reframe.core import fields, variables

    def copy_variable(variable: Any, memo: dict[int, Any]) -> Any:
        copied = memo[id(variable)] = object.__new__(type(variable))
        for name in variables.TestVar.__slots__:
            try:
                value = object.__getattribute__(variable, name)
            except AttributeError:  # has no name or owner yet
                continue
            object.__setattr__(copied, name, deepcopy(value, memo))
        return copied

    fields.TypedField.__deepcopy__ = lambda field, _: field
    variables.TestVar.__deepcopy__ = copy_variable


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


def write_no_test_cases() -> None:
    """Let ReFrame write no JSON of each test that ended, which only its ``--restore-session`` reads.

    It is a tenth of the time of a dry run.
    """
    from reframe.frontend import executors

    executors.jsonext = SimpleNamespace(dump=lambda *_, **__: None)


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
    # It would leave its first log in /tmp whenever it refuses something. Jobs keep their TMPDIR.
    tempfile.tempdir = os.environ[SESSION]
    load_reframe()
    from reframe.frontend.cli import main

    copy_variables_quickly()
    disable_expansion()
    look_up_only_what_logs_show()
    write_no_test_cases()
    end_pauses_at_exits()
    main()
